import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';

const MIB = 1024 * 1024;
const PROTOBUF = { 'content-type': 'application/x-protobuf' };
const JSON_TYPE = { 'content-type': 'application/json' };

const sample = new URL('../fixture/samples/build-clean/', import.meta.url);
const bodies = readdirSync(new URL('otlp/', sample))
  .sort()
  .map((name) => ({ name, body: readFileSync(new URL(`otlp/${name}`, sample)) }));
const traceId: string = JSON.parse(readFileSync(new URL('otel.jsonl', sample), 'utf8').split('\n')[0] ?? '').trace_id;

let bridge: BridgeProcess;
/** What was accepted before the first bad body came. */
let accepted: Buffer;

beforeAll(async () => {
  bridge = await BridgeProcess.start();
  for (const { name, body } of bodies) expect(await send(signalOf(name), body)).toBe(200);
  await bridge.finished(traceId);
  accepted = log();
});
afterAll(() => bridge.remove());

type Body = Uint8Array<ArrayBuffer> | string;
type Headers = Readonly<Record<string, string>>;

async function send(signal: string, body: Body, headers: Headers = PROTOBUF): Promise<number> {
  const answer = await fetch(`${bridge.otlpUrl}/v1/${signal}`, { method: 'POST', headers, body });
  await answer.arrayBuffer();
  return answer.status;
}

function signalOf(name: string): string {
  return name.includes('traces') ? 'traces' : 'logs';
}

function log(): Buffer {
  return readFileSync(join(bridge.runFolder(traceId), 'telemetry.jsonl'));
}

function field(number: number, content: Uint8Array): Buffer<ArrayBuffer> {
  const head = [(number << 3) | 2];
  let rest = content.length;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) head.push((rest & 0x7f) | 0x80);
  return Buffer.concat([Buffer.from([...head, rest]), content]);
}

/** `levels` messages, each in the one before, of field numbers taken in turn. */
function nested(levels: number, numbers: readonly number[]): Buffer<ArrayBuffer> {
  let body = Buffer.alloc(0);
  for (let level = levels; level-- > 0; ) body = field(numbers[level % numbers.length] ?? 1, body);
  return body;
}

const first = bodies[0]?.body ?? Buffer.alloc(0);
const spans = (content: Uint8Array) => field(1, field(2, content));
const repeated = (part: Uint8Array, byteCount: number) =>
  Buffer.alloc(Math.floor(byteCount / part.length) * part.length, part);
const jsonSpan = (fields: string) => `{"resourceSpans":[{"scopeSpans":[{"spans":[{${fields}}]}]}]}`;
const deepValue = `${'{"arrayValue":{"values":['.repeat(50_000)}{}${']}}'.repeat(50_000)}`;

const BAD: readonly (readonly [string, number, () => Body, Headers])[] = [
  ['protobuf that is cut off', 400, () => first.subarray(0, -1), PROTOBUF],
  ['protobuf with a huge length', 400, () => Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x07]), PROTOBUF],
  ['protobuf with a varint of 100 bytes', 400, () => Buffer.alloc(100, 0xff), PROTOBUF],
  ['protobuf groups without end', 400, () => Buffer.alloc(MIB, 0x0b), PROTOBUF],
  ['an attribute nested deeply', 400, () => spans(field(2, field(9, field(2, nested(5000, [5, 1]))))), PROTOBUF],
  ['millions of empty spans', 400, () => spans(repeated(Buffer.from([0x12, 0]), 62 * MIB)), PROTOBUF],
  ['millions of empty attributes', 400, () => spans(field(2, repeated(Buffer.from([0x4a, 0]), 60 * MIB))), PROTOBUF],
  [
    'a gzip bomb',
    413,
    () => repeated(gzipSync(Buffer.alloc(16 * MIB)), MIB),
    { ...PROTOBUF, 'content-encoding': 'gzip' },
  ],
  ['a deflate bomb', 413, () => deflateSync(Buffer.alloc(80 * MIB)), { ...PROTOBUF, 'content-encoding': 'deflate' }],
  ['gzip that is none', 400, () => first, { ...PROTOBUF, 'content-encoding': 'gzip' }],
  ['gzip that is cut off', 400, () => gzipSync(first).subarray(0, -9), { ...PROTOBUF, 'content-encoding': 'gzip' }],
  ['a body beyond the limit', 413, () => Buffer.alloc(64 * MIB + 1), PROTOBUF],
  ['a coding that nobody knows', 415, () => first, { ...PROTOBUF, 'content-encoding': 'br' }],
  ['a type that nobody knows', 415, () => first, { 'content-type': 'text/plain' }],
  ['protobuf said to be JSON', 400, () => first, JSON_TYPE],
  ['JSON said to be protobuf', 400, () => jsonSpan(''), PROTOBUF],
  ['JSON nested deeply', 400, () => '['.repeat(MIB), JSON_TYPE],
  ['a JSON attribute nested deeply', 400, () => jsonSpan(`"attributes":[{"key":"a","value":${deepValue}}]`), JSON_TYPE],
  ['JSON with a list for a span id', 400, () => jsonSpan('"spanId":[]'), JSON_TYPE],
  ['millions of empty JSON objects', 400, () => `{"resourceSpans":[${'{},'.repeat(20 * MIB)}{}]}`, JSON_TYPE],
];

describe('a hostile sender', () => {
  test.each(BAD)('is answered for %s with %i', async (_name, status, body, headers) => {
    expect(await send('traces', body(), headers)).toBe(status);
    expect((await fetch(`${bridge.otlpUrl}/readyz`)).status).toBe(200);
    expect(log().equals(accepted)).toBe(true);
  });

  test('may send anything at random: it is taken or refused, and the process lives', async () => {
    const position = fc.nat(first.length - 1);
    const change = fc.record({ at: position, bytes: fc.uint8Array({ maxLength: 12 }), end: position });
    await fc.assert(
      fc.asyncProperty(change, async ({ at, bytes, end }) => {
        const body = Uint8Array.from(first);
        body.set(bytes.subarray(0, body.length - at), at);
        expect([200, 400]).toContain(await send('traces', body.subarray(0, Math.max(at, end))));
      }),
      { numRuns: 60 },
    );
    expect(bridge.child.exitCode).toBeNull();
  });

  // The last test: what is sent again after all this is known, and what was accepted first still stands first.
  test('does not damage what was accepted', async () => {
    for (const { name, body } of bodies) expect(await send(signalOf(name), body)).toBe(200);
    expect(log().subarray(0, accepted.length).equals(accepted)).toBe(true);
    for (const line of log().toString('utf8').split('\n').slice(0, -1)) expect(() => JSON.parse(line)).not.toThrow();
    expect(bridge.stderr).not.toContain('internal error');
    expect(await bridge.stop()).toBe(0);
  });
});
