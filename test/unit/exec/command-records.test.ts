import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BufferedRequests } from '../../../src/exec/buffered-requests.js';
import { CommandRecords, JsonlKeys } from '../../../src/exec/command-records.js';
import type { TailChunk } from '../../../src/files/jsonl-tail.js';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../../src/record/record-batch.js';
import { parseRecordLine } from '../../../src/record/record-line.js';
import { parseSpanId, type TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { decodeBody } from '../../fake/decode-at-once.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { MemoryConsumer } from '../../fake/memory-consumer.js';
import { SAMPLES } from '../../fake/sample-run.js';

const protobuf = new ProtobufCodec();
const json = new JsonCodec();

interface Body {
  readonly signal: Signal;
  readonly bytes: Buffer;
}

function bodiesOf(run: string): Body[] {
  const folder = join(SAMPLES, run, 'otlp');
  return readdirSync(folder)
    .sort()
    .map((name) => ({ signal: name.includes('traces') ? 'traces' : 'logs', bytes: readFileSync(join(folder, name)) }));
}

function linesOf(run: string): string[] {
  return readFileSync(join(SAMPLES, run, 'otel.jsonl'), 'utf8')
    .trimEnd()
    .split('\n');
}

/** What tells a record from others; OTLP has no event id and, of logs, no span name. */
function keyOf(record: TelemetryRecord): string {
  if (record.recordType !== 'LogRecord') return `${record.recordType} ${record.spanId}`;
  return `log ${record.spanId} ${record.timeUnixNano} ${record.eventType} ${record.body}`;
}

/** A file that others may write as well: what does not come over OTLP is theirs. */
const SHARED = { isOtlpExpected: true, isShared: true };
/** A file that the command alone writes, whose engine sends nothing by itself. */
const ALONE = { isOtlpExpected: false, isShared: false, isWritten: async () => false, onTrace() {}, onSeen() {} };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-records-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Lines that a test adds to while they are read. */
class LiveLines implements AsyncIterable<TailChunk> {
  private readonly chunks: TailChunk[] = [];
  private isEnded = false;
  private wake: () => void = () => {};

  add(lines: readonly string[]): void {
    const list = lines.map((text, index) => ({ number: index + 1, offset: 0, endOffset: 0, bytes: Buffer.from(text) }));
    this.chunks.push({ lines: list, rejects: [], position: undefined });
    this.wake();
  }

  end(): void {
    this.isEnded = true;
    this.wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TailChunk> {
    for (;;) {
      const chunk = this.chunks.shift();
      if (chunk !== undefined) yield chunk;
      else if (this.isEnded) return;
      else {
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
      }
    }
  }
}

/** Takes a body in as the command's port does. */
async function take(records: CommandRecords, { signal, bytes }: Body): Promise<void> {
  if (!(await records.bufferUnread(signal, bytes))) await records.buffer(decodeBody(signal, bytes), signal, bytes);
}

/** Brings both ways together in the given order; each turn takes a range of lines, or a body. */
async function bringIn(
  lines: readonly string[],
  bodies: readonly Body[],
  turns: readonly number[],
  maxMemoryBytes = 1_000_000,
  file: Partial<typeof SHARED> = {},
): Promise<TelemetryRecord[]> {
  const target = new MemoryConsumer();
  const live = new LiveLines();
  const buffered = new BufferedRequests({
    path: join(folder, 'held.otlp.jsonl'),
    maxMemoryBytes,
    codecs: async () => ({ protobuf, json }),
  });
  const records = new CommandRecords({
    lines: live,
    buffered,
    decode: async (signal, bytes) => decodeBody(signal, bytes),
    target,
    async onRejects() {},
    hasUnreadLines: async () => false,
    ...ALONE,
    ...file,
    clock: new FakeClock(),
  });
  const running = records.run(new AbortController().signal);
  const [linesLeft, bodiesLeft] = [[...lines], [...bodies]];
  for (const turn of [...turns, Number.MAX_SAFE_INTEGER]) {
    const body = turn === 0 ? bodiesLeft.shift() : undefined;
    if (body === undefined) live.add(linesLeft.splice(0, turn));
    else await take(records, body);
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const body of bodiesLeft) await take(records, body);
  live.end();
  records.end();
  await running;
  await buffered.close();
  return target.deliveries.flatMap(({ batches }) => batches.flatMap((batch) => batch.records));
}

/** A body, or so many lines. */
const turns = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 200 })), { maxLength: 12 });

describe.each(['build-clean', 'build-mixed-fusion', 'fail-fast', 'interrupted', 'parse'])('a run (%s)', (run) => {
  const lines = linesOf(run);
  const bodies = bodiesOf(run);
  const all = lines.map((line) => keyOf(parseRecordLine(line)));

  it.each([
    ['its own', {}],
    ['shared with others', SHARED],
  ])('is its JSONL (%s), record by record, whatever came first, and nothing of its OTLP', async (_whose, file) => {
    await fc.assert(
      fc.asyncProperty(turns, async (order) => {
        const records = await bringIn(lines, bodies, order, undefined, file);
        expect(records.slice(0, lines.length).map(({ line }) => line)).toEqual(lines);
        expect(lackingIn(lines, records)).toEqual([]);
      }),
      { numRuns: 12 },
    );
  });

  it.each([
    ['spans', (line: string) => line.startsWith('{"record_type":"LogRecord"')],
    ['what is below a warning', (line: string) => /"severity_number":(1[3-9]|2\d)/.test(line)],
    ['DEBUG logs', (line: string) => !/"record_type":"LogRecord".*"severity_number":[1-5],/.test(line)],
    ['ends of spans', (line: string) => !line.startsWith('{"record_type":"SpanEnd"')],
    ['everything', () => false],
  ])('is complete where the JSONL lacks %s, each record once', async (_what, isKept) => {
    const kept = lines.filter(isKept);
    const complete = new Set(
      [...kept, ...overOtlp(bodies)].map((one) => (kept.includes(one) ? keyOf(parseRecordLine(one)) : one)),
    );
    await fc.assert(
      fc.asyncProperty(turns, fc.constantFrom(0, 1_000_000), async (order, maxMemoryBytes) => {
        const records = await bringIn(kept, bodies, order, maxMemoryBytes);
        const keys = records.map(keyOf);
        expect(new Set(keys)).toEqual(complete);
        expect(keys).toHaveLength(complete.size);
      }),
      { numRuns: 6 },
    );
  });

  it('has no record in its OTLP that its JSONL does not know', () => {
    expect(overOtlp(bodies).filter((key) => !all.includes(key))).toEqual([]);
  });
});

describe('log records that are equal', () => {
  it('are counted: what came more often over OTLP than in the JSONL is lacking', () => {
    const log = linesOf('build-clean')
      .map(parseRecordLine)
      .find(({ recordType }) => recordType === 'LogRecord');
    if (log === undefined) throw new Error('no log record');
    fc.assert(
      fc.property(fc.nat(5), fc.nat(5), (jsonlCount, otlpCount) => {
        const keys = new JsonlKeys();
        for (let count = 0; count < jsonlCount; count++) keys.note(log);
        const lacking = Array.from({ length: otlpCount }, () => keys.lacks(log)).filter(Boolean);
        expect(lacking).toHaveLength(Math.max(0, otlpCount - jsonlCount));
      }),
    );
  });
});

describe('a log record whose span a level filter keeps out of the JSONL', () => {
  const records = linesOf('build-clean').map(parseRecordLine);
  const log = records.find((record) => record.recordType === 'LogRecord' && record.spanId !== null);
  const start = records.find((record) => record.recordType === 'SpanStart' && record.spanId === log?.spanId);
  if (log?.recordType !== 'LogRecord' || start === undefined) throw new Error('no log record of a span');

  it.each([
    ['under none', null],
    ['under one further up', parseSpanId('00f067aa0ba902b7') ?? null],
  ])('is found where it stands %s, once', (_where, spanId) => {
    const keys = new JsonlKeys();
    keys.note({ ...log, spanId });
    expect(keys.lacks(start)).toBe(true);
    expect([keys.lacks(log), keys.lacks(log)]).toEqual([false, true]);
  });

  it('is another one, where the JSONL has its span', () => {
    const keys = new JsonlKeys();
    keys.note(start);
    keys.note({ ...log, spanId: null });
    expect(keys.lacks(log)).toBe(true);
  });
});

describe('requests of which the JSONL has brought everything', () => {
  it('are not buffered, and the others are', async () => {
    const [lines, bodies] = [linesOf('build-clean'), bodiesOf('build-clean')];
    const live = new LiveLines();
    const path = join(folder, 'held.otlp.jsonl');
    const buffered = new BufferedRequests({
      path,
      maxMemoryBytes: 10_000_000,
      codecs: async () => ({ protobuf, json }),
    });
    const target = new MemoryConsumer();
    const records = new CommandRecords({
      ...{ lines: live, buffered, target, clock: new FakeClock(), ...ALONE },
      decode: async (signal, bytes) => decodeBody(signal, bytes),
      hasUnreadLines: async () => false,
      async onRejects() {},
    });
    const running = records.run(new AbortController().signal);
    // The last span over OTLP is not among the lines yet.
    live.add(lines.slice(0, -1));
    await new Promise((resolve) => setImmediate(resolve));
    for (const body of bodies) await take(records, body);
    expect(buffered.count).toBeGreaterThan(0);
    expect(buffered.count).toBeLessThan(bodies.length);
    live.add(lines.slice(-1));
    live.end();
    records.end();
    await running;
    expect(target.deliveries.flatMap(({ batches }) => batches.flatMap((batch) => batch.records))).toHaveLength(
      lines.length,
    );
  });

  it('are distinguished from others by how often equal log records occur, and nothing counts as asked for those', () => {
    const log = linesOf('build-clean')
      .map(parseRecordLine)
      .find(({ recordType }) => recordType === 'LogRecord');
    if (log?.recordType !== 'LogRecord') throw new Error('no log record');
    fc.assert(
      fc.property(fc.nat(5), fc.array(fc.nat(4), { maxLength: 6 }), (jsonlCount, requests) => {
        const keys = new JsonlKeys();
        for (let count = 0; count < jsonlCount; count++) keys.note(log);
        let left = jsonlCount;
        for (const count of requests) {
          const logs = Array.from({ length: count }, () => log);
          expect(keys.hasAll({ spanIds: [], logs })).toBe(count <= left);
          if (count <= left) left -= count;
        }
        expect(Array.from({ length: 6 }, () => keys.lacks(log)).filter((isLacking) => !isLacking)).toHaveLength(left);
      }),
    );
  });
});

function overOtlp(bodies: readonly Body[]): string[] {
  return bodies.flatMap(({ signal, bytes }) =>
    decodeBody(signal, bytes).delivery.batches.flatMap(({ records }) => records.map((record) => keyOf(record))),
  );
}

/** Records that came beside the JSONL. */
function lackingIn(lines: readonly string[], records: readonly TelemetryRecord[]): string[] {
  return records.slice(lines.length).map(keyOf);
}

it('is not taken from its OTLP while lines of its JSONL wait to be read, however late they are', async () => {
  const [lines, bodies] = [linesOf('parse'), bodiesOf('parse')];
  const target = new MemoryConsumer();
  const live = new LiveLines();
  const path = join(folder, 'held.otlp.jsonl');
  const buffered = new BufferedRequests({ path, maxMemoryBytes: 1_000_000, codecs: async () => ({ protobuf, json }) });
  const clock = new FakeClock();
  let isUnread = true;
  const records = new CommandRecords({
    ...{ lines: live, buffered, target, clock, ...ALONE },
    decode: async (signal, bytes) => decodeBody(signal, bytes),
    hasUnreadLines: async () => isUnread,
    async onRejects() {},
  });
  const running = records.run(new AbortController().signal);
  for (const body of bodies) await take(records, body);
  const pass = async () => {
    clock.advance(5_000);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  await pass();
  await pass();
  expect(target.deliveries).toEqual([]);
  live.add(lines);
  await pass();
  isUnread = false;
  await pass();
  live.end();
  records.end();
  await running;
  await buffered.close();
  const taken = target.deliveries.flatMap(({ batches }) => batches.flatMap((batch) => batch.records));
  expect(taken.slice(0, lines.length).map(({ line }) => line)).toEqual(lines);
});
