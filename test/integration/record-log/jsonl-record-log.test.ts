import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Appended, loggedRecords } from '../../../src/log/appended.js';
import { JsonlRecordLog } from '../../../src/log/jsonl-record-log.js';
import { PassthroughSegments } from '../../../src/log/passthrough-segments.js';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import { RecordLogFiles } from '../../../src/log/record-log-files.js';
import { batchOfAccount } from '../../../src/otlp/wire/item-chunk.js';
import { accountOf, ofAccount, type Resource, UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import { ConsumeError, type Delivery, type RecordBatch } from '../../../src/record/record-batch.js';
import { formatRecordLine, parseRecordLine } from '../../../src/record/record-line.js';
import type { LogRecord, SpanId, TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { traceIdOf } from '../../fake/memory-record-log.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { sampleDeliveries } from '../../fake/sample-deliveries.js';
import { sampleLines, sampleRecords, sampleTraceId } from '../../fake/sample-run.js';
import { untilTurned } from '../../tool/until.js';

const RUN = 'build-clean';
const traceId = sampleTraceId(RUN);
const records = sampleRecords(RUN);
const other: Resource = {
  attributes: { 'service.name': 'dbt-core', step: '2' },
  scope: { name: 'dbt-core', version: '' },
};

let folder: string;
let clock: FakeClock;
let logger: RecordingLogger;
let log: JsonlRecordLog;
let appended: Appended[];
/** Records that listeners were notified of, made while their pieces were lent. */
let notified: LoggedRecord[];
let listener: () => void;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-log-'));
  await open();
});

afterEach(async () => {
  await close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(
  maxQueuedRecords = 200_000,
  maxOpenLogs = 2,
  maxOpenBytes = 32 * 2 ** 20,
  maxEndedBytes?: number,
): Promise<void> {
  clock = new FakeClock();
  logger = new RecordingLogger();
  appended = [];
  notified = [];
  listener = () => {};
  log = new JsonlRecordLog(
    {
      ...{ dataFolder: folder, durability: 'fsync', maxOpenLogs, maxOpenBytes, maxQueuedRecords, nameHoldMs: 6000 },
      ...(maxEndedBytes !== undefined && { maxEndedBytes }),
    },
    {
      clock,
      logger,
      passthrough: new PassthroughSegments(join(folder, 'foreign'), { isSynced: true, listeners: [] }),
      listeners: [
        {
          onAppended: (event) => {
            appended.push(event);
            notified.push(...event.pieces.flatMap(loggedRecords));
            listener();
          },
        },
      ],
    },
  );
  await log.start();
}

function close(): Promise<void> {
  return log.shutdown(AbortSignal.timeout(1000));
}

function delivery(batch: readonly TelemetryRecord[], resource: Resource = UNKNOWN_RESOURCE): Delivery {
  return { batches: [{ traceId, resource, records: batch }], passthrough: [] };
}

function path(file = 'telemetry.jsonl'): string {
  return join(folder, 'runs', traceId, file);
}

function lines(): string[] {
  return readFileSync(path(), 'utf8').split('\n').slice(0, -1);
}

async function read(fromOffset = 0): Promise<LoggedRecord[]> {
  const files = new RecordLogFiles(
    folder,
    () => {},
    (id) => log.durableLength(id),
  );
  const found: LoggedRecord[] = [];
  for await (const chunk of files.read(traceId, { fromOffset })) found.push(...chunk);
  return found;
}

/** A log record as OTLP brings it. */
function overOtlp(record: LogRecord): LogRecord {
  const { line: _line, ...rest } = record;
  return { ...rest, spanName: null, eventId: null };
}

const logsOf = (list: readonly TelemetryRecord[]) => list.filter((record) => record.recordType === 'LogRecord');
const spansOf = (list: readonly TelemetryRecord[]) => list.filter((record) => record.recordType !== 'LogRecord');

describe('the record log', () => {
  it("holds a run's JSONL byte for byte as the engine wrote it", async () => {
    await log.consume(delivery(records));
    expect(lines()).toEqual(sampleLines(RUN));
  });

  it("keeps a trace its first sender's account's, whichever sender adds to it, also after a restart", async () => {
    const half = Math.floor(records.length / 2);
    const theirs = ofAccount(other, 10_002);
    await log.consume(delivery(records.slice(0, half), theirs));
    await close();
    await open();
    // Says nothing of an account.
    await log.consume(delivery([]));
    await log.consume(delivery(records.slice(half), other));
    expect((await read()).map(({ resource }) => resource)).toEqual(records.map(() => theirs));
    expect(lines()).toEqual(sampleLines(RUN));
  });

  it("keeps a trace the first account's, whichever sender adds to it", async () => {
    const batches = [...sampleDeliveries(RUN)].flatMap((one) => one.batches);
    const [first, ...rest] = batches;
    if (first === undefined) throw new Error('no batch');
    await log.consume({ batches: [first], passthrough: [] });
    await log.consume({ batches: rest.map((batch) => batchOfAccount(batch, 10_002)), passthrough: [] });
    const found = await read();
    expect(found.length).toBeGreaterThan(100);
    expect(new Set(found.map(({ resource }) => accountOf(resource)))).toEqual(new Set([null]));
  });

  it('writes once what is sent twice, at once, later, and after a restart', async () => {
    await Promise.all([log.consume(delivery(records)), log.consume(delivery(records))]);
    await log.consume(delivery(records));
    await close();
    await open();
    await log.consume(delivery(records));
    expect(lines()).toEqual(sampleLines(RUN));
    expect(appended).toEqual([]);
  });

  it('writes equal log records with event ids of their own, in whatever delivery they come, also after a restart', async () => {
    const [first] = logsOf(records).map((record) => record as LogRecord);
    if (first === undefined) throw new Error('no log record');
    const named = (eventId: string) => ({ ...overOtlp(first), spanName: 'a', eventId });
    await log.consume(delivery([named('one')]));
    await log.consume(delivery([named('two')]));
    await close();
    await open();
    await log.consume(delivery([named('two'), named('one'), named('three')]));
    await log.consume(delivery([overOtlp(first)]));
    expect(lines().map((line) => JSON.parse(line).event_id)).toEqual(['one', 'two', 'three']);
  });

  it('writes each span once whether it comes in a page, as records, half of it, or again', async () => {
    const consumeAll = async () => {
      for (const page of sampleDeliveries(RUN)) {
        await log.consume(page);
        page.release?.();
      }
    };
    const half = spansOf(records).filter((_, index) => index % 3 === 0);
    await log.consume(delivery(half));
    await consumeAll();
    await consumeAll();
    await close();
    await open();
    await consumeAll();
    const written = lines().map((line) => parseRecordLine(line));
    const keys = spansOf(written).map((record) => `${record.recordType} ${record.spanId}`);
    expect(new Set(keys).size).toBe(keys.length);
    expect(new Set(keys)).toEqual(new Set(spansOf(records).map((record) => `${record.recordType} ${record.spanId}`)));
    expect(appended).toEqual([]);
  });

  it('tells of spans in pages the records that it wrote', async () => {
    for (const page of sampleDeliveries(RUN)) {
      await log.consume(page);
      page.release?.();
    }
    const bytes = readFileSync(path());
    for (const { record, offset, endOffset } of notified) {
      expect(bytes.toString('utf8', offset, endOffset)).toBe(`${formatRecordLine(record)}\n`);
    }
    expect(notified.at(-1)?.endOffset).toBe(bytes.length);
  });

  it('keeps two equal log records without event ids of one delivery, and only those two when it is repeated', async () => {
    const [first] = logsOf(records).map((record) => ({ ...overOtlp(record as LogRecord), spanName: 'a' }));
    if (first === undefined) throw new Error('the sample has a log record');
    await log.consume(delivery([first, first]));
    await log.consume(delivery([first, first]));
    expect(lines()).toHaveLength(2);
  });

  it('tells its listeners each record once, with its place in the file', async () => {
    await Promise.all([log.consume(delivery(records.slice(0, 100))), log.consume(delivery(records.slice(50)))]);
    expect(notified.map(({ record }) => record.line)).toEqual(sampleLines(RUN));
    const bytes = readFileSync(path());
    for (const { record, offset, endOffset } of notified) {
      expect(bytes.toString('utf8', offset, endOffset)).toBe(`${record.line}\n`);
    }
  });

  it.each([1, 7, 300])(
    'cuts off a torn last line of which %i bytes were written, and takes the record when it comes again',
    async (kept) => {
      await log.consume(delivery(records.slice(0, 20)));
      await close();
      appendFileSync(path(), (sampleLines(RUN)[20] ?? '').slice(0, kept));
      await open();
      await log.consume(delivery(records.slice(20)));
      expect(lines()).toEqual(sampleLines(RUN));
    },
  );

  it('remembers whose each record is, also after a restart', async () => {
    await log.consume(delivery(records.slice(0, 10)));
    await log.consume(delivery(records.slice(10, 20), other));
    await close();
    await open();
    await log.consume(delivery(records.slice(20, 30)));
    const owners = (await read()).map(({ resource }) => resource.attributes.step ?? '1');
    expect(owners).toEqual([...Array(10).fill('1'), ...Array(10).fill('2'), ...Array(10).fill('1')]);
  });

  it('reads from any line on', async () => {
    await log.consume(delivery(records));
    const all = await read();
    const later = await read(all[17]?.offset);
    expect(later).toEqual(all.slice(17));
  });

  it('closes the log used longest ago when too many are open, and goes on with it later', async () => {
    await log.consume(delivery(records.slice(0, 5)));
    for (const id of ['a', 'b', 'c']) {
      const trace = id.repeat(32) as typeof traceId;
      const passthroughRecords = records
        .slice(0, 5)
        .map(({ line: _line, ...record }) => ({ ...record, traceId: trace }));
      await log.consume({
        batches: [{ traceId: trace, resource: UNKNOWN_RESOURCE, records: passthroughRecords as TelemetryRecord[] }],
        passthrough: [],
      });
    }
    expect(log.durableLength(traceId)).toBeUndefined();
    await log.consume(delivery(records));
    expect(lines()).toEqual(sampleLines(RUN));
  });

  it('gives others their turn between the parts of a delivery of very many traces', async () => {
    const many = log.consume({
      batches: Array.from({ length: 1000 }, (_, index) => ofTrace(index + 1)),
      passthrough: [],
    });
    let isManyDone = false;
    void many.then(() => {
      isManyDone = true;
    });
    await log.consume(delivery(records.slice(0, 5)));
    expect(isManyDone).toBe(false);
    await many;
    expect(appended.filter(({ traceId: id }) => id !== traceId)).toHaveLength(1000);
  });

  it('leaves a delivery of very many traces to be sent again when it has to stop in the midst of it', async () => {
    const many = log.consume({
      batches: Array.from({ length: 1000 }, (_, index) => ofTrace(index + 1)),
      passthrough: [],
    });
    await untilTurned(() => appended.length > 0);
    const refused = expect(many).rejects.toThrow('shutting down');
    await close();
    await refused;
    await open();
  });

  it('asks senders to wait when too much is queued', async () => {
    await close();
    await open(220);
    const first = log.consume(delivery(records.slice(0, 200)));
    await expect(log.consume(delivery(records.slice(200)))).rejects.toThrow(ConsumeError);
    await first;
    await log.consume(delivery(records.slice(200)));
    expect(lines()).toEqual(sampleLines(RUN));
  });

  it('refuses, says why and recovers when its folder cannot be written', async () => {
    await log.consume(delivery(records.slice(0, 10)));
    await close();
    await open();
    renameSync(join(folder, 'runs'), join(folder, 'away'));
    writeFileSync(join(folder, 'runs'), 'in the way');
    await expect(log.consume(delivery(records.slice(10)))).rejects.toMatchObject({ code: 'unavailable' });
    expect(logger.lines.some(({ level }) => level === 'error')).toBe(true);
    rmSync(join(folder, 'runs'));
    renameSync(join(folder, 'away'), join(folder, 'runs'));
    await log.consume(delivery(records.slice(10)));
    expect(lines()).toEqual(sampleLines(RUN));
  });
});

describe('a log record without the name of its span', () => {
  it('waits for its span and gets its name', async () => {
    const logs = logsOf(records).map(overOtlp);
    await log.consume(delivery(logs));
    expect(lines()).toEqual([]);
    await log.consume(delivery(spansOf(records)));
    const written = (await read()).map(({ record }) => record).filter(({ recordType }) => recordType === 'LogRecord');
    expect(written.map(({ spanName }) => spanName)).toEqual(logsOf(records).map(({ spanName }) => spanName));
    expect(readFileSync(path('pending.jsonl'), 'utf8')).toBe('');
  });

  it('is written once where its span came before it', async () => {
    await log.consume(delivery(spansOf(records)));
    const logs = logsOf(records);
    const ofSpans = logs.filter(({ spanId }) => spansOf(records).some((span) => span.spanId === spanId));
    expect(ofSpans.length).toBeGreaterThan(0);
    await log.consume(delivery(ofSpans.map(overOtlp)));
    expect(existsSync(path('pending.jsonl'))).toBe(false);
    const written = (await read()).map(({ record }) => record).filter(({ recordType }) => recordType === 'LogRecord');
    expect(written.map(({ spanName }) => spanName)).toEqual(ofSpans.map(({ spanName }) => spanName));
  });

  it('keeps whose it is when several that wait are taken up again', async () => {
    const logs = logsOf(records).map(overOtlp);
    await log.consume({
      batches: [{ traceId, resource: UNKNOWN_RESOURCE, records: logs.slice(0, 2) }],
      passthrough: [],
    });
    await log.consume({ batches: [{ traceId, resource: other, records: logs.slice(2, 4) }], passthrough: [] });
    const waiting = readFileSync(path('pending.jsonl'));
    await close();
    writeFileSync(path(), '');
    writeFileSync(path('resources.jsonl'), '');
    writeFileSync(path('pending.jsonl'), waiting);
    await open();
    await untilTurned(() => log.durableLength(traceId) === 0);
    clock.advance(7000);
    await log.flushPending();
    expect((await read()).map(({ resource }) => resource)).toEqual([UNKNOWN_RESOURCE, UNKNOWN_RESOURCE, other, other]);
  });

  it('is written before the batch that brings the name, so that a span’s events come before the span', async () => {
    const logs = logsOf(records).map(overOtlp);
    await log.consume(delivery(logs));
    await log.consume(delivery(spansOf(records)));
    const types = (await read()).map(({ record }) => record.recordType);
    expect(types.slice(0, logs.length)).toEqual(logs.map(() => 'LogRecord'));
  });

  it('is not lost when the bridge dies while it waits', async () => {
    await log.consume(delivery(logsOf(records).map(overOtlp)));
    await close();
    await open();
    await log.consume(delivery(spansOf(records)));
    expect(lines()).toHaveLength(records.length);
  });

  it('is written after the hold with a name made of its content, when its span never comes', async () => {
    const logs = logsOf(records);
    await log.consume(delivery(logs.map(overOtlp)));
    clock.advance(5000);
    await log.flushPending();
    expect(lines()).toEqual([]);
    clock.advance(2000);
    await log.flushPending();
    const written = (await read()).map(({ record }) => record.spanName);
    expect(written).toEqual(logs.map(({ spanName }) => spanName));
  });

  it('counts as waiting until its listeners have heard that it is written', async () => {
    await log.consume(delivery(logsOf(records).map(overOtlp)));
    const sinceMs = log.pendingSinceMs(traceId);
    const seen: unknown[] = [];
    listener = () => seen.push(log.pendingSinceMs(traceId));
    clock.advance(7000);
    await log.flushPending();
    expect([sinceMs, seen, log.pendingSinceMs(traceId)]).toEqual([expect.any(Number), [sinceMs], undefined]);
  });

  it('waits no longer once the process of its resource has ended', async () => {
    const process = records.filter(({ eventType }) => eventType.endsWith('.Process'));
    await log.consume(delivery(logsOf(records).slice(0, 1).map(overOtlp)));
    await log.consume(delivery(process));
    expect(lines()).toHaveLength(3);
  });

  it('waits on where another command of the same resource goes on when that process has ended', async () => {
    const process = records.filter(({ eventType }) => eventType.endsWith('.Process'));
    const end = process.find((one) => one.recordType === 'SpanEnd');
    const ended = end?.recordType === 'SpanEnd' ? end.endTimeUnixNano : 0n;
    const [first] = logsOf(records).filter(({ spanId }) => spanId !== end?.spanId);
    if (first === undefined) throw new Error('the sample has no log records');
    await log.consume(delivery(process));
    // What is in the log says so to one that is opened again, too.
    await close();
    await open();
    await log.consume(delivery([overOtlp({ ...first, timeUnixNano: ended + 1n })]));
    expect(lines()).toHaveLength(2);
    await log.consume(delivery([overOtlp({ ...first, timeUnixNano: ended })]));
    expect(lines()).toHaveLength(3);
  });
});

describe('who waits for an answer', () => {
  it('hears that all is durable, and has time to answer, before listeners hear of it', async () => {
    const seen: string[] = [];
    listener = () => seen.push('heard');
    const answer = async () => {
      seen.push(`durable: ${lines().length}`);
      // An answer is some promises away.
      for (let hop = 0; hop < 50; hop++) await undefined;
      seen.push('answered');
    };
    await log.consume({ ...delivery(records), onDurable: () => void answer() });
    expect(seen).toEqual([`durable: ${records.length}`, 'answered', 'heard']);
  });

  it('hears nothing of what could not be written, and of others what could', async () => {
    await log.consume(delivery(records.slice(0, 10)));
    const known = { ...delivery(records.slice(0, 10)) };
    const others = { batches: [ofTrace(7)], passthrough: [] };
    rmSync(path());
    const told: string[] = [];
    const consumed = [
      log.consume({ ...known, onDurable: () => told.push('known') }),
      log.consume({ ...others, onDurable: () => told.push('others') }),
    ];
    expect((await Promise.allSettled(consumed)).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(told).toEqual(['others']);
  });

  it('waits for a trace that is being removed; other traces of the same delivery do not', async () => {
    const [first, second] = [ofTrace(1), ofTrace(2)];
    let letGo = () => {};
    const removed = log.whileClosed([first.traceId], () => new Promise<void>((resolve) => (letGo = resolve)));
    let isDurable = false;
    const onDurable = () => {
      isDurable = true;
    };
    const consumed = log.consume({ batches: [first, second], passthrough: [], onDurable });
    await untilTurned(() => appended.length === 1);
    await log.whileClosed([second.traceId], async () => {});
    expect(isDurable).toBe(false);
    letGo();
    await Promise.all([removed, consumed]);
    expect(appended.map((one) => one.traceId)).toEqual([second.traceId, first.traceId]);
  });
});

describe('the log of a run that has ended', () => {
  const END = records.slice(0, -5);
  const LATE = records.slice(-5);
  const ended = (id = traceId) => log.noteEnded(id, log.durableLength(id) ?? 0);
  const isOpen = (id = traceId) => log.durableLength(id) !== undefined;

  it('stays open while those that have ended take little, and is closed before others', async () => {
    await log.consume({ batches: [ofTrace(1), ofTrace(2)], passthrough: [] });
    ended(traceIdOf(2));
    expect(isOpen(traceIdOf(2))).toBe(true);
    await log.consume({ batches: [ofTrace(3)], passthrough: [] });
    expect([1, 2, 3].map((number) => isOpen(traceIdOf(number)))).toEqual([true, false, true]);
  });

  it('is closed beyond their bound, and recognises what comes again or late', async () => {
    await close();
    await open(200_000, 256, 32 * 2 ** 20, 0);
    await log.consume(delivery(END));
    ended();
    expect(isOpen()).toBe(false);
    await log.consume(delivery(END));
    expect(lines()).toEqual(sampleLines(RUN).slice(0, -5));
    ended();
    await log.consume(delivery([...END.slice(-3), ...LATE]));
    expect(lines()).toEqual(sampleLines(RUN));
    expect(notified.map(({ record }) => formatRecordLine(record))).toEqual(sampleLines(RUN));
  });

  it('still has the names of spans for log records that come late', async () => {
    await close();
    await open(200_000, 256, 32 * 2 ** 20, 0);
    const late = logsOf(records).filter(({ spanId }) => spansOf(records).some((span) => span.spanId === spanId));
    await log.consume(delivery(spansOf(records)));
    ended();
    await log.consume(delivery(late.map(overOtlp)));
    const names = lines()
      .map(parseRecordLine)
      .flatMap((record) => (record.recordType === 'LogRecord' ? [record.spanName] : []));
    expect(names).toEqual(late.map(({ spanName }) => spanName));
  });

  it('stays open where more of it has come, is coming, or waits for the name of its span', async () => {
    await close();
    await open(200_000, 256, 32 * 2 ** 20, 0);
    await log.consume(delivery(spansOf(records).slice(0, 10)));
    const before = log.durableLength(traceId) ?? 0;
    await log.consume(delivery(spansOf(records).slice(10, 20)));
    log.noteEnded(traceId, before);
    expect(isOpen()).toBe(true);
    const coming = log.consume(delivery(spansOf(records).slice(20, 40)));
    ended();
    await coming;
    expect(isOpen()).toBe(true);
    await log.consume(
      delivery(
        logsOf(records)
          .slice(0, 1)
          .map((record) => ({ ...overOtlp(record), spanId: OTHER_SPAN })),
      ),
    );
    ended();
    expect(isOpen()).toBe(true);
  });
});

describe('what may go wrong on the disk', () => {
  it('brings no folder back that was removed while what waits for a name is written', async () => {
    await close();
    await open(200_000, 256);
    const [record] = logsOf(records).map(overOtlp);
    if (record === undefined) throw new Error('the sample has no log records');
    // More than are written at the same time.
    const traceIds = Array.from({ length: 70 }, (_, index) => traceIdOf(index + 1));
    const batches = traceIds.map((id) => ({
      traceId: id,
      resource: UNKNOWN_RESOURCE,
      records: [{ ...record, traceId: id }],
    }));
    await log.consume({ batches, passthrough: [] });
    let removing: Promise<void> | undefined;
    listener = () => {
      removing ??= log.whileClosed(traceIds, async () => {
        for (const id of traceIds) rmSync(join(folder, 'runs', id), { recursive: true });
      });
    };
    clock.advance(7000);
    await log.flushPending();
    await removing;
    expect(appended.length).toBeLessThan(traceIds.length);
    expect(readdirSync(join(folder, 'runs'))).toEqual([]);
  });

  it('keeps the number of open files small when one delivery has thousands of traces', async () => {
    let mostFiles = 0;
    await close();
    await open();
    listener = () => {
      mostFiles = Math.max(mostFiles, readdirSync('/dev/fd').length);
    };
    const before = readdirSync('/dev/fd').length;
    const batches = Array.from({ length: 2000 }, (_, index) => ofTrace(index + 1));
    await log.consume({ batches, passthrough: [] });
    expect(mostFiles - before).toBeLessThan(200);
    expect(readdirSync(join(folder, 'runs'))).toHaveLength(2000);
  });

  it('keeps open what there is memory for, the latest in any case, and writes what waits in those that it closes', async () => {
    await close();
    await open(200_000, 256, 1);
    await log.consume(delivery(logsOf(records).slice(0, 3).map(overOtlp)));
    expect(existsSync(path())).toBe(true);
    expect(lines()).toEqual([]);
    await log.consume({ batches: [ofTrace(1)], passthrough: [] });
    expect(lines()).toHaveLength(3);
    await log.consume({ batches: [ofTrace(2)], passthrough: [] });
    const isOpen = [traceId, traceIdOf(1), traceIdOf(2)].map((id) => log.durableLength(id) !== undefined);
    expect(isOpen).toEqual([false, false, true]);
    await close();
    await open();
    for (const number of [1, 2]) await log.consume({ batches: [ofTrace(number)], passthrough: [] });
    expect([1, 2].map((number) => log.durableLength(traceIdOf(number)) !== undefined)).toEqual([true, true]);
  });

  it('refuses, and does not take into a file without a name, when its folder is removed', async () => {
    await log.consume({ ...delivery(records.slice(0, 10)), passthrough: [PASSTHROUGH] });
    rmSync(join(folder, 'runs'), { recursive: true });
    rmSync(join(folder, 'foreign'), { recursive: true });
    // Known already, yet gone.
    await expect(log.consume(delivery(records.slice(0, 10)))).rejects.toMatchObject({ code: 'unavailable' });
    await expect(log.consume({ batches: [], passthrough: [PASSTHROUGH] })).rejects.toMatchObject({
      code: 'unavailable',
    });
    await log.consume({ ...delivery(records.slice(10, 20)), passthrough: [PASSTHROUGH] });
    expect(lines()).toEqual(sampleLines(RUN).slice(10, 20));
    expect(readFileSync(join(folder, 'foreign', '00000001.otlp.jsonl'), 'utf8')).toBe(`${PASSTHROUGH.body}\n`);
    expect(logger.lines.map(({ level }) => level)).toEqual(['error', 'info']);
  });

  it('takes up what waited for a name, whether the trace goes on or not', async () => {
    await log.consume(delivery(logsOf(records).map(overOtlp)));
    const waiting = readFileSync(path('pending.jsonl'));
    await close();
    writeFileSync(path(), '');
    writeFileSync(path('pending.jsonl'), waiting);
    await open();
    await untilTurned(() => log.durableLength(traceId) === 0);
    clock.advance(7000);
    await log.flushPending();
    expect(lines()).toHaveLength(logsOf(records).length);
  });

  it('writes what waits for a name when it ends, and before it closes the log of a trace', async () => {
    const [first] = logsOf(records).map(overOtlp);
    if (first === undefined) throw new Error('the sample has a log record');
    const ids = ['a', 'b', 'c'].map((letter) => letter.repeat(32) as typeof traceId);
    const lengths = () => ids.map((id) => statSync(join(folder, 'runs', id, 'telemetry.jsonl')).size > 0);
    for (const id of ids) {
      const batch = { traceId: id, resource: UNKNOWN_RESOURCE, records: [{ ...first, traceId: id }] };
      await log.consume({ batches: [batch], passthrough: [] });
    }
    expect(lengths()).toEqual([true, false, false]);
    await close();
    expect(lengths()).toEqual([true, true, true]);
  });

  it.each(['resources.jsonl', 'pending.jsonl'])('goes on when %s is damaged or was removed', async (file) => {
    await log.consume(delivery([...spansOf(records), ...logsOf(records).slice(0, 1).map(overOtlp)]));
    await close();
    for (const damage of ['{"id":1,"res\n\0\0\0\n{}\n[]\n{"id":7,"offset":0}\n', undefined]) {
      if (damage === undefined) rmSync(path(file), { force: true });
      else writeFileSync(path(file), damage);
      await open();
      await log.consume(delivery(records));
      expect(await read()).toHaveLength(lines().length);
      await close();
    }
    await open();
    expect(new Set((await read()).map(({ record }) => record.spanId))).toEqual(
      new Set(records.map(({ spanId }) => spanId)),
    );
  });
});

const PASSTHROUGH = { signal: 'traces' as const, body: '{"resourceSpans":[]}', recordCount: 1 };

const OTHER_SPAN = 'abcdef0123456789' as SpanId;

function ofTrace(number: number): RecordBatch {
  const id = number.toString(16).padStart(32, '0') as typeof traceId;
  const [first] = spansOf(records);
  if (first === undefined) throw new Error('the sample has a span');
  const { line: _line, ...span } = first;
  return { traceId: id, resource: UNKNOWN_RESOURCE, records: [{ ...span, traceId: id } as TelemetryRecord] };
}

describe('telemetry of other services', () => {
  it('is kept as it came and read from a place on', async () => {
    const body = '{"resourceSpans":[]}';
    await log.consume({ batches: [], passthrough: [{ signal: 'traces', body, recordCount: 1 }] });
    await log.consume({ batches: [], passthrough: [{ signal: 'logs', body: '{"resourceLogs":[]}', recordCount: 1 }] });
    const segments = new PassthroughSegments(join(folder, 'foreign'), { isSynced: true, listeners: [] });
    await segments.start();
    const entries = [];
    for await (const entry of segments.read()) entries.push(entry);
    expect(entries.map(({ signal }) => signal)).toEqual(['traces', 'logs']);
    const later = [];
    for await (const entry of segments.read(entries[0]?.next)) later.push(entry);
    expect(later).toEqual(entries.slice(1));
    expect(await segments.end()).toEqual(entries[1]?.next);
    await segments.close();
    expect(existsSync(join(folder, 'runs'))).toBe(false);
  });
});
