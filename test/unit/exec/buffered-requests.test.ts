import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { BufferedRequests } from '../../../src/exec/buffered-requests.js';
import type { ExportRequest } from '../../../src/otlp/export-request.js';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import { SAMPLES } from '../../fake/sample-run.js';

const protobuf = new ProtobufCodec();
const json = new JsonCodec();
const body = readFileSync(join(SAMPLES, 'build-mixed', 'otlp', '002-traces.bin'));
const expected = protobuf.decode('traces', body);
const request = { signal: 'traces', traceIds: [], hasPassthrough: false, sinceMs: 0 } as const;

let dir: string;
let path: string;
let buffered: BufferedRequests;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-held-'));
  path = join(dir, 'held.jsonl');
  buffered = new BufferedRequests({ path, maxMemoryBytes: body.length * 2, codecs: async () => ({ protobuf, json }) });
});
afterEach(async () => {
  await buffered.close();
  rmSync(dir, { recursive: true });
});

const add = async (count: number) => {
  for (let index = 0; index < count; index++) await buffered.add(request, Uint8Array.from(body));
};
const drained = async () => {
  const found: ExportRequest[] = [];
  await buffered.drain(
    () => true,
    async ({ signal }, bytes) => void found.push(protobuf.decode(signal, bytes)),
  );
  return found;
};
const lineCount = () => readFileSync(path, 'utf8').split('\n').length - 1;

it('keeps requests in memory up to its limit, writes those beyond it, and gives all of them back', async () => {
  await add(2);
  expect(existsSync(path)).toBe(false);
  await add(2);
  expect(lineCount()).toBe(2);
  expect(await drained()).toEqual([expected, expected, expected, expected]);
  expect(buffered.count).toBe(0);
});

it('has room in memory again for what was let go', async () => {
  await add(2);
  await drained();
  await add(2);
  expect(existsSync(path)).toBe(false);
});

it('keeps what was not taken', async () => {
  await add(3);
  await expect(
    buffered.drain(
      () => true,
      () => Promise.reject(new Error('not now')),
    ),
  ).rejects.toThrow('not now');
  expect(buffered.count).toBe(3);
  expect(await drained()).toHaveLength(3);
});

it('writes all that is left as OTLP JSON lines', async () => {
  await add(3);
  await buffered.saveAll();
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => json.decode('traces', Buffer.from(line)))).toEqual([expected, expected, expected]);
  expect(await drained()).toHaveLength(3);
});

it('says so where its file was cut short, and lets nothing go that it did not hand over', async () => {
  await add(3);
  truncateSync(path, 10);
  await expect(drained()).rejects.toThrow();
  expect(buffered.count).toBe(1);
});
