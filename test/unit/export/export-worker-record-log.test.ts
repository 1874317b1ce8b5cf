import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RecordLogLines } from '../../../src/export/record-log-lines.js';
import type { AppendListener } from '../../../src/log/appended.js';
import { JsonlRecordLog } from '../../../src/log/jsonl-record-log.js';
import { PassthroughSegments } from '../../../src/log/passthrough-segments.js';
import { RecordLogFiles } from '../../../src/log/record-log-files.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import type { RunSummary } from '../../../src/run/verdict.js';
import { ExportBench } from '../../fake/export-bench.js';
import { sampleRecords, sampleTraceId } from '../../fake/sample-run.js';
import { untilTurned } from '../../tool/until.js';

const RUN = sampleTraceId('build-mixed');
const RECORDS = sampleRecords('build-mixed');
const never = new AbortController().signal;

let bench: ExportBench;
let folder: string;
beforeEach(async () => {
  bench = await ExportBench.open();
  folder = await mkdtemp(join(tmpdir(), 'run-bridge-export-log-'));
});
afterEach(async () => {
  await bench.close();
  await rm(folder, { recursive: true, force: true });
});

it('exports a real run from the record log on disk, half of it live and half after a restart', async () => {
  const listeners: AppendListener[] = [];
  const passthrough = new PassthroughSegments(join(folder, 'foreign'), { isSynced: false, listeners: [] });
  const log = new JsonlRecordLog(
    { dataFolder: folder, durability: 'os', maxOpenLogs: 4, maxQueuedRecords: 100_000, nameHoldMs: 0 },
    { clock: bench.clock, logger: bench.logger, passthrough, listeners },
  );
  await log.start();
  const reader = new RecordLogFiles(
    folder,
    () => {},
    (traceId) => log.durableLength(traceId),
  );
  const lines = new RecordLogLines(folder);
  const consume = (records: typeof RECORDS) =>
    log.consume({ batches: [{ traceId: RUN, resource: UNKNOWN_RESOURCE, records }], passthrough: [] });

  const first = await bench.worker({ deps: { reader, lines } });
  listeners.push(first);
  const half = Math.floor(RECORDS.length / 2);
  for (let from = 0; from < half; from += 10) await consume(RECORDS.slice(from, Math.min(half, from + 10)));
  await untilTurned(() => first.status().state === 'idle');
  listeners.pop();
  await consume(RECORDS.slice(half));
  const logBytes = await reader.lengthBytes(RUN);
  const nowMs = bench.clock.nowUnixMs();
  const run: RunSummary = {
    traceId: RUN,
    firstSeenUnixMs: nowMs,
    lastSeenUnixMs: nowMs,
    state: 'finished',
    logBytes,
    invocations: [],
  };
  bench.summaries.set(RUN, run);
  await bench.state.runs.save([{ ...run, summary: '{}', parquetBytes: null }]);
  const second = await bench.worker({ deps: { reader, lines } });
  await untilTurned(() => second.status().pendingRuns === 0);

  const ends = RECORDS.flatMap((record) => (record.recordType === 'SpanEnd' ? [record.spanName] : []));
  const bodies = RECORDS.flatMap((record) => (record.recordType === 'LogRecord' ? [record.body] : []));
  expect(bench.receiver.spanNames.filter((name) => !name.endsWith('unfinished'))).toEqual(ends);
  expect(bench.receiver.logBodies).toEqual(bodies);
  expect((await bench.state.cursors.find('jaeger', RUN))?.finishedAtBytes).toBe(logBytes);
  await log.shutdown(never);
});
