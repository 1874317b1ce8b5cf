import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { PublicSchema } from '../../src/otlp/public-schema.js';
import type { JsonObject } from '../../src/record/attributes.js';
import { messageBytes, messageJson, messageType } from '../tool/message-json.js';
import { pythonWith } from '../tool/python-venv.js';
import { readSchemaJson } from '../unit/otlp/schema-json.js';
import { filledMessage } from './filled-message.js';

/** A message as test/tool/dbt_protos_wire.py spells it. */
interface PythonMessage {
  readonly file: string;
  readonly message: string;
  readonly json: JsonObject;
  readonly hex: string;
}

const DBT_PROTOS = 'dbt-protos-1.0.615';
const files = Object.keys(readSchemaJson('telemetry-schema.json').files);
const schema = PublicSchema.load();
const fillings = (['ordinary', 'extreme', 'unknown enums'] as const).flatMap((values) =>
  [0, 1, 2, 3, 4].map((member) => ({ values, member })),
);
const written = new Map<string, PythonMessage[]>();
const readBack = new Map<string, PythonMessage[]>();

beforeAll(() => {
  const python = pythonWith(DBT_PROTOS);
  for (const line of runPython(python, 'write', '')) group(written, line);
  const ours = schema.messageNames.flatMap((message) => bytesOf(message).map(({ hex }) => ({ message, hex })));
  for (const line of runPython(python, 'read', ours.map((line) => `${JSON.stringify(line)}\n`).join(''))) {
    group(readBack, line);
  }
});

describe(`the .proto files and ${DBT_PROTOS}`, () => {
  it('have the same messages', () => {
    expect([...written.keys()].sort()).toEqual([...schema.messageNames].sort());
  });

  it.each(schema.messageNames)('have %s in the same file', (name) => {
    const path = messageType(name).filename?.replaceAll('\\', '/') ?? '';
    expect(path.endsWith(`/proto/${written.get(name)?.[0]?.file}`)).toBe(true);
  });

  it.each(schema.messageNames)('spell %s alike: what the package writes is read here and written again', (name) => {
    const messages = written.get(name) ?? [];
    expect(messages.length).toBeGreaterThanOrEqual(10);
    for (const { json, hex } of messages) {
      const decoded = messageJson(name, Buffer.from(hex, 'hex'));
      expect(decoded).toEqual(json);
      expect(Buffer.from(messageBytes(name, decoded)).toString('hex')).toBe(hex);
    }
  });

  it.each(schema.messageNames)('spell %s alike: what is written here the package reads and writes again', (name) => {
    const answers = readBack.get(name) ?? [];
    expect(answers).toHaveLength(fillings.length);
    for (const [index, ours] of bytesOf(name).entries()) {
      expect(answers[index]?.json).toEqual(ours.json);
      expect(answers[index]?.hex).toBe(ours.hex);
    }
  });
});

/** Every field set, with each member of a oneof once, in ordinary and extreme values and with unknown enum numbers. */
function bytesOf(name: string): { json: JsonObject; hex: string }[] {
  const message = schema.message(name);
  if (message === undefined) throw new Error(`no message ${name}`);
  return fillings.map((filling) => {
    const json = filledMessage(message, filling);
    return { json, hex: Buffer.from(messageBytes(name, json)).toString('hex') };
  });
}

function runPython(python: string, command: 'write' | 'read', input: string): PythonMessage[] {
  const script = join('test', 'tool', 'dbt_protos_wire.py');
  const output = execFileSync(python, [script, command, ...files], { input, encoding: 'utf8', maxBuffer: 64 << 20 });
  return output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

function group(messages: Map<string, PythonMessage[]>, line: PythonMessage): void {
  messages.set(line.message, [...(messages.get(line.message) ?? []), line]);
}
