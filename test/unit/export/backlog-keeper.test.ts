import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BacklogKeeper } from '../../../src/export/backlog-keeper.js';
import type { ExportRun } from '../../../src/export/export-run.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import { ExportBench } from '../../fake/export-bench.js';
import { logRecord, RECORD_BYTES, spanEnd, spanStart, traceIdOf } from '../../fake/memory-record-log.js';
import { untilTurned } from '../../tool/until.js';

const RUN = traceIdOf(1);
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const never = new AbortController().signal;

let bench: ExportBench;
beforeEach(async () => {
  bench = await ExportBench.open();
});
afterEach(() => bench.close());

const spans = (count: number, from = 1) => Array.from({ length: count }, (_, index) => spanEnd(RUN, from + index));
const givenUp = () => bench.logger.lines.filter((line) => line.message.includes('discarded exports older'));
const options = { maxBacklogAgeMs: 7 * DAY };

/** Lets an hour pass at a time, so that attempts and checks come in their order. */
async function pass(hours: number): Promise<void> {
  for (let hour = 0; hour < hours; hour += 1) {
    bench.clock.advance(HOUR);
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  }
}

describe('what a destination has not got', () => {
  it('is reported in bytes and by the age of its oldest record', async () => {
    bench.receiver.answer = () => ({ status: 429 });
    const worker = await bench.worker();
    expect(worker.status()).toMatchObject({ lagBytes: 0, oldestUnsentSeconds: 0 });
    bench.log.append(RUN, ...spans(3));
    bench.clock.advance(10_000);
    bench.log.append(RUN, ...spans(2, 4));
    bench.clock.advance(5_000);
    expect(worker.status()).toMatchObject({ lagBytes: 5 * RECORD_BYTES, oldestUnsentSeconds: 15 });
    bench.receiver.answer = () => ({});
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return worker.status().lagBytes === 0;
    });
    expect(worker.status()).toMatchObject({ oldestUnsentSeconds: 0, givenUpRunCount: 0 });
  });

  it('is reported at once after a restart, without the runs being read', async () => {
    bench.receiver.answer = () => ({ status: 429 });
    const first = await bench.worker();
    bench.log.append(RUN, ...spans(5));
    await bench.finish(RUN, first);
    await first.shutdown(never);
    bench.drop(first);
    await pass(2);
    const second = await bench.worker();
    expect(second.status()).toMatchObject({ lagBytes: 5 * RECORD_BYTES, oldestUnsentSeconds: 7_200, pendingRuns: 1 });
  });

  it('is nothing for an open run that was closed for others after all of it was sent', async () => {
    const worker = await bench.worker({ options: { maxOpenRuns: 1 } });
    bench.log.append(RUN, logRecord(RUN, 1, 'one'));
    await untilTurned(() => worker.status().lagBytes === 0);
    const other = traceIdOf(2);
    bench.log.append(other, logRecord(other, 1, 'two'));
    await untilTurned(() => bench.receiver.logBodies.length === 2 && worker.status().state === 'idle');
    expect(worker.status()).toMatchObject({ pendingRuns: 2, lagBytes: 0 });
  });
});

describe('a backlog that is too old', () => {
  it('is given up, counted and logged, while what is younger is sent once the destination is back', async () => {
    bench.receiver.answer = () => ({ status: 503 });
    const worker = await bench.worker({ options });
    bench.log.append(RUN, ...spans(10), logRecord(RUN, 10, 'old'));
    await pass(6 * 24);
    bench.log.append(RUN, ...spans(5, 11), logRecord(RUN, 15, 'young'));
    await pass(36);
    await untilTurned(() => worker.status().givenUpRunCount === 1);
    expect(worker.status()).toMatchObject({ givenUpSpanCount: 10, givenUpLogCount: 1, lagBytes: 6 * RECORD_BYTES });
    expect(givenUp().map((line) => line.fields)).toEqual([
      { destination: 'jaeger', runs: 1, spans: 10, logs: 1, bytes: 11 * RECORD_BYTES },
    ]);
    bench.receiver.answer = () => ({});
    await bench.finish(RUN, worker);
    await untilTurned(() => {
      bench.clock.advance(60_000);
      return worker.status().pendingRuns === 0;
    });
    expect(bench.receiver.spanNames).toEqual(['span 11', 'span 12', 'span 13', 'span 14', 'span 15']);
    expect(bench.receiver.logBodies).toEqual(['young']);
  });

  it('is given up after a restart, too, and a finished run is then done with', async () => {
    bench.receiver.answer = () => ({ status: 503 });
    const first = await bench.worker({ options });
    bench.log.append(RUN, spanStart(RUN, 99), ...spans(4));
    await bench.finish(RUN, first);
    await first.shutdown(never);
    bench.drop(first);
    await pass(8 * 24);
    const second = await bench.worker({ options });
    await untilTurned(() => {
      bench.clock.advance(60_000);
      return second.status().pendingRuns === 0;
    });
    expect(second.status()).toMatchObject({ givenUpRunCount: 1, givenUpSpanCount: 4, lagBytes: 0 });
    expect(await bench.state.cursors.listPending('jaeger')).toEqual([]);
    expect(bench.receiver.spanNames).toEqual([]);
  });

  it('is as old as the wish to have it sent again, also after a restart', async () => {
    const first = await bench.worker({ options });
    bench.log.append(RUN, spanStart(RUN, 99), ...spans(4));
    await bench.finish(RUN, first);
    await untilTurned(() => first.status().pendingRuns === 0);
    await pass(8 * 24);
    bench.receiver.answer = () => ({ status: 503 });
    bench.receiver.requests.splice(0);
    await first.resend(RUN);
    await pass(2);
    await first.shutdown(never);
    bench.drop(first);
    const second = await bench.worker({ options });
    await pass(6 * 24);
    expect(second.status()).toMatchObject({ givenUpRunCount: 0, pendingRuns: 1 });
    expect(second.status().oldestUnsentSeconds).toBeGreaterThanOrEqual(6 * 24 * 3_600);
    await pass(24);
    await untilTurned(() => {
      bench.clock.advance(60_000);
      return second.status().pendingRuns === 0;
    });
    expect(second.status()).toMatchObject({ givenUpRunCount: 1, givenUpSpanCount: 4 });
  });

  it('is kept where nothing is to be given up', async () => {
    bench.receiver.answer = () => ({ status: 503 });
    const worker = await bench.worker({ options: { maxBacklogAgeMs: null } });
    bench.log.append(RUN, ...spans(3));
    await pass(30 * 24);
    expect(worker.status()).toMatchObject({ givenUpRunCount: 0, lagBytes: 3 * RECORD_BYTES });
  });
});

it('goes on looking for what is too old, and listens for the end once', async () => {
  const stop = new AbortController();
  const { clock, logger, log, state } = bench;
  const destination = await bench.destination(bench.receiver.url);
  const runs = { find: async () => undefined };
  const deps = { destination, cursors: state.cursors, reader: log, runs, clock, logger, onFailed: () => {} };
  let lookCount = 0;
  const watched = new (class extends Map<TraceId, ExportRun> {
    override values() {
      lookCount += 1;
      return super.values();
    }
  })();
  new BacklogKeeper(DAY, deps, watched, { release: async () => undefined, resume: () => {} }).watch(stop.signal);
  for (let minute = 0; minute < 20; minute += 1) {
    clock.advance(60_000);
    await new Promise(setImmediate);
  }
  expect(lookCount).toBe(20);
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1);
  stop.abort();
  await pass(1);
  expect(lookCount).toBe(20);
  await destination.close();
});
