import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { presentSchema } from './present-schema.js';
import { brokenPromises } from './schema-changes.js';
import { type JsonField, readSchemaJson, type SchemaJson } from './schema-json.js';

const versions = readdirSync(new URL('../../fixture/schema/history/', import.meta.url)).filter((name) =>
  name.endsWith('.json'),
);
const baseline = readSchemaJson('history/1.0.615.json');
const PROCESS = 'v1.public.events.fusion.process.Process';
const OUTCOME = 'v1.public.events.fusion.node.NodeOutcome';

describe('the history of the public schema', () => {
  it('has the version that the project started with', () => {
    expect(versions).toContain('1.0.615.json');
  });

  it.each(versions)('keeps every promise of %s: nothing removed, renumbered or retyped', (version) => {
    expect(brokenPromises(readSchemaJson(`history/${version}`), presentSchema())).toEqual([]);
  });

  it('takes additions as no fault', () => {
    const grown = {
      messages: { ...withProcess((fields) => [...fields, field(7, 'cores', 'uint32')]).messages, 'v1.New': [] },
      enums: { ...baseline.enums, [OUTCOME]: { ...baseline.enums[OUTCOME], NODE_OUTCOME_NEW: 9 } },
    };
    expect(brokenPromises(baseline, grown)).toEqual([]);
  });

  it.each<[string, (fields: readonly JsonField[]) => readonly JsonField[], string]>([
    ['removed', (fields) => fields.slice(1), 'package was removed'],
    ['renamed', (fields) => edit(fields, { name: 'program' }), 'package was removed'],
    ['renumbered', (fields) => edit(fields, { number: 9 }), 'package was renumbered to 9'],
    ['retyped', (fields) => edit(fields, { type: 'bytes' }), 'package was retyped from string to bytes'],
    [
      'repeated now',
      (fields) => edit(fields, { repeated: true }),
      'package was retyped from string to repeated string',
    ],
    [
      'optional now',
      (fields) => edit(fields, { optional: true }),
      'package was retyped from string to optional string',
    ],
    [
      'in a oneof now',
      (fields) => edit(fields, { oneof: 'o' }),
      'package was retyped from string to string of oneof o',
    ],
  ])('finds a field that is %s', (_change, change, fault) => {
    expect(brokenPromises(baseline, withProcess(change))).toEqual([`${PROCESS}.${fault}`]);
  });

  it.each<[string, Record<string, number>, string]>([
    ['removed', { NODE_OUTCOME_SKIPPED: -1 }, 'NODE_OUTCOME_SKIPPED was removed'],
    ['renumbered', { NODE_OUTCOME_SKIPPED: 7 }, 'NODE_OUTCOME_SKIPPED was renumbered to 7'],
  ])('finds an enum value that is %s', (_change, change, fault) => {
    const values = Object.entries({ ...baseline.enums[OUTCOME], ...change }).filter(([, number]) => number !== -1);
    const later = { ...baseline, enums: { ...baseline.enums, [OUTCOME]: Object.fromEntries(values) } };
    expect(brokenPromises(baseline, later)).toEqual([`${OUTCOME}.${fault}`]);
  });

  it('finds a message and an enum that are gone', () => {
    const { [PROCESS]: _message, ...messages } = baseline.messages;
    const { [OUTCOME]: _enum, ...enums } = baseline.enums;
    expect(brokenPromises(baseline, { messages, enums })).toEqual([
      `message ${PROCESS} was removed`,
      `enum ${OUTCOME} was removed`,
    ]);
  });
});

function withProcess(change: (fields: readonly JsonField[]) => readonly JsonField[]): SchemaJson {
  return { ...baseline, messages: { ...baseline.messages, [PROCESS]: change(baseline.messages[PROCESS] ?? []) } };
}

function edit(fields: readonly JsonField[], change: Partial<JsonField>): readonly JsonField[] {
  return fields.map((item) => (item.name === 'package' ? { ...item, ...change } : item));
}

function field(number: number, name: string, type: string): JsonField {
  return { number, name, type };
}
