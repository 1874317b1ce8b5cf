import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_RETRY_POLICY, REQUEST_RETRY_POLICY, RetryPolicy } from '../../../src/core/clock.js';
import { ExportTurns } from '../../../src/core/turns.js';
import { DEFAULT_EXPORT_WORKER_OPTIONS } from '../../../src/export/destination.js';
import { ExportWorker } from '../../../src/export/export-worker.js';
import type { LineSource } from '../../../src/export/record-log-lines.js';
import type { CursorStore } from '../../../src/storage/cursor-store.js';
import { StoreError } from '../../../src/storage/store-error.js';
import { ExportBench } from '../../fake/export-bench.js';
import { logRecord, RECORD_BYTES, spanEnd, spanStart, traceIdOf } from '../../fake/memory-record-log.js';
import { SimpleRunMapper } from '../../fake/simple-run-mapper.js';
import { untilTurned } from '../../tool/until.js';

const RUN = traceIdOf(1);
const never = new AbortController().signal;
const HOURS = 3_600_000;

let bench: ExportBench;
beforeEach(async () => {
  bench = await ExportBench.open();
});
afterEach(() => bench.close());

const numbers = (count: number, from = 1) => Array.from({ length: count }, (_, index) => from + index);
const names = (count: number, from = 1) => numbers(count, from).map((number) => `span ${number}`);
const spans = (count: number, from = 1) => numbers(count, from).map((number) => spanEnd(RUN, number));

/** A cursor store that saves in its own way. */
function withSave(cursors: CursorStore, save: CursorStore['save']): CursorStore {
  return {
    find: cursors.find.bind(cursors),
    listPending: cursors.listPending.bind(cursors),
    isWanted: cursors.isWanted.bind(cursors),
    register: cursors.register.bind(cursors),
    findPassthrough: cursors.findPassthrough.bind(cursors),
    savePassthrough: cursors.savePassthrough.bind(cursors),
    save,
  };
}

describe('an export worker', () => {
  it('sends spans and log records as they come, and the last spans when the run is finished', async () => {
    const worker = await bench.worker();
    bench.log.append(RUN, ...spans(4), logRecord(RUN, 4, 'hello'));
    await untilTurned(() => bench.receiver.spanNames.length === 2 && bench.receiver.logBodies.length === 1);
    expect(bench.receiver.logBodies).toEqual(['hello']);
    await bench.finish(RUN, worker);
    await untilTurned(() => worker.status().state === 'idle' && worker.status().pendingRuns === 0);
    expect(bench.receiver.spanNames).toEqual(names(4));
    expect(bench.receiver.spanEvents['span 4']).toEqual(['hello']);
    expect(await bench.state.cursors.listPending('jaeger')).toEqual([]);
    expect(worker.status()).toMatchObject({ state: 'idle', lagBytes: 0, lastError: null });
    expect(worker.status().signals.traces.sentCount).toBe(4);
    expect(worker.status().signals.logs.sentCount).toBe(1);
  });

  it('reads once what was appended in many pieces', async () => {
    const worker = await bench.worker({ options: { batchDelayMs: 200 } });
    for (const span of spans(8)) bench.log.append(RUN, span);
    await bench.finish(RUN, worker);
    await untilTurned(() => worker.status().pendingRuns === 0);
    expect(bench.receiver.spanNames).toEqual(names(8));
    expect(bench.log.readCount).toBe(1);
  });

  it('lets held spans go when the run was quiet for the hold time', async () => {
    const worker = await bench.worker();
    bench.log.append(RUN, spanEnd(RUN, 1));
    await untilTurned(() => bench.clock.nextTimerMs === 2_000);
    bench.clock.advance(1_999);
    bench.log.append(RUN, logRecord(RUN, 1, 'late'));
    await untilTurned(() => bench.receiver.logBodies.length === 1 && bench.clock.nextTimerMs === 2_000);
    expect(bench.receiver.spanNames).toEqual([]);
    bench.clock.advance(2_000);
    await untilTurned(() => bench.receiver.spanNames.length === 1);
    expect(bench.receiver.spanEvents['span 1']).toEqual(['late']);
    await untilTurned(() => worker.status().lagBytes === 0);
  });

  it('waits a moment for more records to share a request', async () => {
    await bench.worker({ options: { batchDelayMs: 200 } });
    for (const number of numbers(5)) bench.log.append(RUN, logRecord(RUN, number, `${number}`));
    bench.clock.advance(199);
    expect(bench.receiver.requests).toEqual([]);
    bench.clock.advance(1);
    await untilTurned(() => bench.receiver.logBodies.length === 5);
    expect(bench.receiver.requests).toHaveLength(1);
  });

  it('fills requests while records come, also when others were just answered', async () => {
    const worker = await bench.worker({ options: { batchDelayMs: 200, maxBatchItems: 4 } });
    const answered = (count: number) => untilTurned(() => worker.status().signals.logs.sentCount === count);
    const append = (from: number, count: number) => {
      for (const number of numbers(count, from)) bench.log.append(RUN, logRecord(RUN, number, `${number}`));
    };
    append(1, 5);
    bench.clock.advance(200);
    await answered(5);
    append(6, 5);
    await answered(9);
    append(11, 3);
    await answered(13);
    expect(bench.receiver.requests).toHaveLength(4);
    append(14, 1);
    bench.clock.advance(200);
    await answered(14);
  });

  it('waits for half a second, and no longer, for what the nodes of a run under way depend on', async () => {
    const origin = { stepId: 's', stepIndex: 1, runId: 7, accountId: 1, jobId: 1, environmentId: 1 };
    const originsOf = async () => [{ ...origin, job: 'nightly', environment: null }];
    // A bucket that does not answer.
    const manifests = { of: () => new Promise<undefined>(() => {}) };
    const createMapper = () => Object.assign(new SimpleRunMapper(), { setManifest() {} });
    await bench.worker({ deps: { origins: { originsOf }, manifests, createMapper } });
    bench.log.append(RUN, logRecord(RUN, 1, 'first'));
    await untilTurned(() => bench.clock.nextTimerMs === 500);
    bench.clock.advance(499);
    expect(bench.receiver.logBodies).toEqual([]);
    bench.clock.advance(1);
    await untilTurned(() => bench.receiver.logBodies.length === 1);
  });

  it('waits a moment for what tells whose the first records are, and no longer than that', async () => {
    const known = new Set<string>();
    const originsOf = async (traceId: string) =>
      known.has(traceId)
        ? [
            {
              stepId: 's',
              stepIndex: 1,
              runId: 7,
              accountId: 1,
              jobId: 1,
              environmentId: 1,
              job: 'nightly',
              environment: '',
            },
          ]
        : [];
    await bench.worker({ deps: { origins: { originsOf } } });
    bench.log.append(RUN, logRecord(RUN, 1, 'first'));
    await untilTurned(() => bench.clock.nextTimerMs === 50);
    bench.clock.advance(50);
    await untilTurned(() => bench.clock.nextTimerMs === 50);
    expect(bench.log.readCount).toBe(0);
    known.add(RUN);
    bench.clock.advance(50);
    await untilTurned(() => bench.receiver.logBodies.length === 1);

    const nobodys = traceIdOf(2);
    bench.log.append(nobodys, logRecord(nobodys, 1, 'of nobody'));
    for (let waitedMs = 0; waitedMs < 2_000; waitedMs += 50) {
      await untilTurned(() => bench.clock.nextTimerMs === 50);
      expect(bench.receiver.logBodies).toEqual(['first']);
      bench.clock.advance(50);
    }
    await untilTurned(() => bench.receiver.logBodies.length === 2);
  });

  it('sends no more items in a request than it is configured to', async () => {
    const worker = await bench.worker({ options: { maxBatchItems: 3 } });
    bench.log.append(RUN, ...spans(10));
    await worker.flush(never);
    expect(bench.receiver.requests.length).toBe(4);
    expect(bench.receiver.spanNames).toEqual(names(10));
  });

  it('sends JSON and gzip where asked to', async () => {
    const worker = await bench.worker({
      endpoint: { encoding: 'json', compression: 'gzip', headers: { 'x-key': 's' } },
    });
    bench.log.append(RUN, ...spans(3));
    expect(await worker.flush(never)).toBe(true);
    expect(bench.receiver.spanNames).toEqual(names(3));
    expect(bench.receiver.requests[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'x-key': 's',
      'user-agent': 'run-bridge/test',
    });
  });

  it('sends spans that never ended when their run is finished', async () => {
    const worker = await bench.worker();
    bench.log.append(RUN, spanStart(RUN, 1), spanStart(RUN, 2), spanEnd(RUN, 2));
    await bench.finish(RUN, worker);
    await untilTurned(() => worker.status().pendingRuns === 0);
    expect(bench.receiver.spanNames).toEqual(['span 2', 'span 1 unfinished']);
  });

  it('sends only what is new when a finished run gets late records', async () => {
    const worker = await bench.worker();
    bench.log.append(RUN, spanStart(RUN, 1), spanStart(RUN, 2), spanEnd(RUN, 2));
    await bench.finish(RUN, worker);
    await untilTurned(() => worker.status().pendingRuns === 0);
    bench.log.append(RUN, logRecord(RUN, 2, 'late'), spanEnd(RUN, 3));
    await bench.finish(RUN, worker);
    await untilTurned(() => worker.status().pendingRuns === 0);
    expect(bench.receiver.spanNames).toEqual(['span 2', 'span 1 unfinished', 'span 3']);
    expect(bench.receiver.logBodies).toEqual(['late']);
    expect(bench.receiver.spanEvents['span 2']).toEqual([]);
  });

  it('maps what came late to a finished run alone, not what was sent before', async () => {
    const worker = await bench.worker();
    bench.log.append(RUN, spanStart(RUN, 1), ...spans(50, 2));
    await bench.finish(RUN, worker);
    await untilTurned(() => worker.status().pendingRuns === 0);
    for (const late of numbers(3, 100)) {
      bench.log.append(RUN, spanEnd(RUN, late));
      await bench.finish(RUN, worker);
      await untilTurned(() => worker.status().pendingRuns === 0);
    }
    expect(bench.receiver.spanNames).toEqual([...names(50, 2), 'span 1 unfinished', ...names(3, 100)]);
    expect(bench.mappers.map(({ pushedCount }) => pushedCount)).toEqual([54]);
  });

  it('leaves alone runs that were finished before the destination was known', async () => {
    bench.log.append(RUN, spanEnd(RUN, 1));
    await bench.finish(RUN);
    bench.clock.advance(HOURS);
    const worker = await bench.worker();
    bench.log.append(RUN, spanEnd(RUN, 2));
    await untilTurned(() => worker.status().pendingRuns === 0);
    expect(bench.receiver.requests).toEqual([]);
  });
});

describe('an export worker whose destination fails', () => {
  it('gives a destination that was down for hours everything once it is back', async () => {
    bench.receiver.answer = () => ({ status: 503 });
    const worker = await bench.worker();
    for (const number of numbers(30)) {
      bench.log.append(RUN, spanEnd(RUN, number), logRecord(RUN, number, `${number}`));
      const before = bench.receiver.requests.length;
      await untilTurned(() => {
        bench.clock.advance(60_000);
        return bench.receiver.requests.length > before;
      });
    }
    await bench.finish(RUN, worker);
    await untilTurned(() => worker.status().state === 'waiting');
    expect(worker.status().lastError).toBe('status 503: ');
    bench.receiver.answer = () => ({});
    await untilTurned(() => {
      bench.clock.advance(60_000);
      return worker.status().pendingRuns === 0;
    });
    expect(bench.receiver.spanNames).toEqual(names(30));
    expect(bench.receiver.logBodies).toEqual(numbers(30).map(String));
    expect(bench.logger.lines.filter((line) => line.message.includes('does not accept exports'))).toHaveLength(2);
  });

  it('gives it everything also after a restart, for runs that were finished meanwhile', async () => {
    bench.receiver.answer = () => ({ status: 503 });
    const first = await bench.worker();
    bench.log.append(RUN, ...spans(20));
    await untilTurned(() => bench.receiver.requests.length === 1);
    await first.shutdown(never);
    bench.drop(first);
    await bench.finish(RUN);
    bench.receiver.answer = () => ({});
    const second = await bench.worker();
    await untilTurned(() => second.status().pendingRuns === 0);
    expect(bench.receiver.spanNames).toEqual(names(20));
  });

  it.each([
    ['before it was sent', 503, 15],
    ['after it was sent', 200, 20],
  ])('ends a run whose log lost its end in a power cut, %s', async (_when, status, sentCount) => {
    bench.receiver.answer = () => ({ status });
    const first = await bench.worker();
    bench.log.append(RUN, ...spans(20));
    await untilTurned(() => bench.receiver.requests.length === 1);
    await first.shutdown(never);
    bench.drop(first);
    await bench.finish(RUN);
    bench.log.lose(RUN, 5);
    bench.receiver.answer = () => ({});
    const second = await bench.worker();
    await bench.finish(RUN, second);
    await untilTurned(() => second.status().pendingRuns === 0);
    expect(bench.receiver.spanNames).toEqual(names(sentCount));
  });

  it('waits as long as the destination asks', async () => {
    bench.receiver.answer = () => ({ status: 429, headers: { 'retry-after': '120' } });
    await bench.worker();
    bench.log.append(RUN, logRecord(RUN, 1, 'hello'));
    await untilTurned(() => bench.clock.nextTimerMs === 120_500);
    bench.receiver.answer = () => ({});
    bench.clock.advance(120_499);
    expect(bench.receiver.requests).toHaveLength(1);
    bench.clock.advance(1);
    await untilTurned(() => bench.receiver.logBodies.length === 1);
  });

  it('logs a refusal once, counts it and goes on', async () => {
    bench.receiver.answer = () => ({ status: 400, body: 'no such tenant' });
    const worker = await bench.worker();
    bench.log.append(RUN, ...spans(10));
    await worker.flush(never);
    bench.log.append(RUN, ...spans(10, 11));
    await worker.flush(never);
    expect(worker.status().signals.traces.refusedCount).toBe(20);
    expect(worker.status().lastError).toBe('refused with status 400: no such tenant');
    const lines = bench.logger.lines.filter((line) => line.message.includes('refused an export'));
    expect(lines).toHaveLength(1);
    expect(lines[0]?.fields).toMatchObject({ destination: 'jaeger', status: 400, answer: 'no such tenant' });
    bench.receiver.answer = () => ({});
    bench.log.append(RUN, ...spans(1, 21));
    await worker.flush(never);
    expect(bench.receiver.spanNames).toEqual(['span 21']);
  });

  it.each([404, 415, 501])(
    'stops sending logs where they are answered with %i, until the next start',
    async (status) => {
      bench.receiver.answer = (signal) => (signal === 'logs' ? { status } : {});
      const worker = await bench.worker();
      bench.log.append(RUN, ...spans(3), logRecord(RUN, 3, 'one'));
      await worker.flush(never);
      bench.log.append(RUN, ...spans(3, 4), logRecord(RUN, 6, 'two'));
      await bench.finish(RUN, worker);
      await untilTurned(() => worker.status().pendingRuns === 0);
      expect(bench.receiver.spanNames).toEqual(names(6));
      expect(bench.receiver.spanEvents['span 6']).toEqual(['two']);
      const requests = bench.receiver.requests.filter((request) => request.signal === 'logs');
      // The second one has no record: it asks whether that is still so.
      expect(requests.map(({ body }) => body.length > 0)).toEqual([true, false]);
      expect(bench.logger.lines.filter((line) => line.message.includes('takes no logs'))).toHaveLength(1);
      expect(worker.status().signals.logs.state).toBe('off');
      await worker.shutdown(never);
      bench.drop(worker);
      bench.receiver.answer = () => ({});
      const next = await bench.worker();
      bench.log.append(traceIdOf(2), logRecord(traceIdOf(2), 1, 'three'));
      await next.flush(never);
      expect(bench.receiver.logBodies).toEqual(['three']);
    },
  );

  it('goes on with spans while logs are not taken, and sends the logs later, each once', async () => {
    bench.receiver.answer = (signal) => (signal === 'logs' ? { status: 503 } : {});
    const worker = await bench.worker();
    for (const number of numbers(30)) {
      bench.log.append(RUN, spanEnd(RUN, number), logRecord(RUN, number, `${number}`));
      bench.clock.advance(700);
    }
    bench.log.append(RUN, spanStart(RUN, 99));
    await bench.finish(RUN, worker);
    await untilTurned(() => bench.receiver.spanNames.length === 31);
    for (let round = 0; round < 5; round += 1) {
      const before = bench.receiver.requests.length;
      await untilTurned(() => {
        bench.clock.advance(1_000);
        return bench.receiver.requests.length > before;
      });
    }
    bench.receiver.answer = () => ({});
    await untilTurned(() => {
      bench.clock.advance(60_000);
      return worker.status().pendingRuns === 0;
    });
    expect(bench.receiver.spanNames).toEqual([...names(30), 'span 99 unfinished']);
    expect(bench.receiver.logBodies).toEqual(numbers(30).map(String));
  });

  it('does not read a finished run anew over and over while its spans are passed over', async () => {
    bench.receiver.answer = () => ({ status: 503 });
    const worker = await bench.worker({ options: { maxBatchItems: 2, maxWaitingItems: 4 } });
    bench.log.append(RUN, ...spans(20));
    // The traces wait only once the request was tried so often; the logs, of which there are none, stay ready.
    await untilTurned(() => {
      bench.clock.advance(100);
      return worker.status().signals.traces.state === 'waiting';
    });
    await bench.finish(RUN, worker);
    for (let round = 0; round < 100; round += 1) await new Promise(setImmediate);
    expect(bench.mappers).toHaveLength(1);
    bench.receiver.answer = () => ({});
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return worker.status().pendingRuns === 0;
    });
    expect(bench.receiver.spanNames).toEqual(names(20));
    // It was read once more, from what the destination had not got.
    expect(bench.mappers).toHaveLength(2);
  });

  it('ends every run whose logs waited when the destination comes to say that it takes none', async () => {
    bench.receiver.answer = (signal) => (signal === 'logs' ? { status: 503 } : {});
    const worker = await bench.worker({ options: { maxBatchItems: 2, maxWaitingItems: 4 } });
    const runs = numbers(3).map(traceIdOf);
    for (const run of runs) {
      bench.log.append(run, spanEnd(run, 1), ...numbers(20).map((number) => logRecord(run, number, `${number}`)));
      await bench.finish(run, worker);
    }
    await untilTurned(() => {
      bench.clock.advance(100);
      return worker.status().signals.logs.state === 'waiting';
    });
    for (let round = 0; round < 100; round += 1) await new Promise(setImmediate);
    bench.receiver.answer = (signal) => (signal === 'logs' ? { status: 404 } : {});
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return worker.status().pendingRuns === 0;
    });
    await untilTurned(() => worker.status().state === 'idle' && worker.status().lagBytes === 0);
    expect(bench.receiver.spanNames).toEqual(runs.map(() => 'span 1'));
  });

  it('counts what a partial success rejects and logs the first message', async () => {
    bench.receiver.answer = () => ({
      body: JSON.stringify({ partialSuccess: { rejectedSpans: '2', errorMessage: 'old' } }),
    });
    const worker = await bench.worker({ endpoint: { encoding: 'json' } });
    bench.log.append(RUN, ...spans(3));
    await worker.flush(never);
    bench.log.append(RUN, ...spans(3, 4));
    await worker.flush(never);
    const { sentCount, rejectedCount } = worker.status().signals.traces;
    const requests = bench.receiver.requests.length;
    expect(rejectedCount).toBe(2 * requests);
    expect(sentCount).toBeLessThanOrEqual(6 - requests);
    const lines = bench.logger.lines.filter((line) => line.message.includes('rejected a part'));
    expect(lines.map((line) => line.fields)).toEqual([
      { destination: 'jaeger', signal: 'traces', rejectedCount: 2, answer: 'old' },
    ]);
  });

  it('does not let a destination that never answers delay another', async () => {
    const slow = await bench.listen();
    slow.answer = () => ({ isSilent: true });
    await bench.worker({ name: 'slow' }, slow.url);
    const worker = await bench.worker({ name: 'fast' });
    bench.log.append(RUN, ...spans(10));
    await bench.finish(RUN, worker);
    await untilTurned(() => worker.status().pendingRuns === 0);
    expect(bench.receiver.spanNames).toEqual(names(10));
    expect(slow.requests).toHaveLength(1);
  });

  it('repeats no more than the batch that was under way when it was killed', async () => {
    const { cursors } = bench.state;
    let savesLeft = 3;
    const dying = withSave(cursors, (saved) => {
      savesLeft -= 1;
      return savesLeft >= 0 ? cursors.save(saved) : new Promise<never>(() => {});
    });
    const options = { maxBatchItems: 5, maxInFlight: 1 };
    const destination = await bench.destination(bench.receiver.url);
    const killed = new ExportWorker(
      { ...DEFAULT_EXPORT_WORKER_OPTIONS, ...options },
      {
        destination,
        cursors: dying,
        reader: bench.log,
        lines: bench.log.lines,
        runs: { find: async () => undefined },
        createMapper: () => new SimpleRunMapper(),
        retryPolicy: new RetryPolicy(DEFAULT_RETRY_POLICY, () => 0.5),
        requestRetryPolicy: new RetryPolicy(REQUEST_RETRY_POLICY, () => 0.5),
        clock: bench.clock,
        logger: bench.logger,
        turns: new ExportTurns(),
        onFailed: () => {},
      },
    );
    await killed.start();
    killed.onAppended(bench.log.append(RUN, ...spans(42)));
    bench.clock.advance(DEFAULT_EXPORT_WORKER_OPTIONS.batchDelayMs);
    await untilTurned(() => savesLeft === -1);
    await bench.finish(RUN);
    const next = await bench.worker({ options });
    await untilTurned(() => next.status().pendingRuns === 0);
    const sent = bench.receiver.spanNames;
    expect(sent).toEqual([...names(20), ...names(27, 16)]);
    await destination.close();
  });

  it('stops at once while a request hangs, and keeps its place', async () => {
    bench.receiver.answer = () => ({ isSilent: true });
    const worker = await bench.worker();
    bench.log.append(RUN, ...spans(10));
    await untilTurned(() => bench.receiver.requests.length === 1);
    const deadline = new AbortController();
    const stopped = worker.shutdown(deadline.signal);
    deadline.abort();
    await stopped;
    expect(worker.status().state).toBe('stopped');
    expect(await bench.state.cursors.find('jaeger', RUN)).toBeUndefined();
  });

  it('does not wait for a destination that is down when it shuts down', async () => {
    bench.receiver.answer = () => ({ status: 503 });
    const worker = await bench.worker();
    bench.log.append(RUN, ...spans(10));
    await worker.shutdown(never);
    expect(worker.status()).toMatchObject({ state: 'stopped', pendingRuns: 1 });
  });

  it('sends held spans when it shuts down', async () => {
    const worker = await bench.worker();
    bench.log.append(RUN, ...spans(2));
    await worker.shutdown(never);
    expect(bench.receiver.spanNames).toEqual(names(2));
  });
});

describe('an export worker whose destination fails now and then', () => {
  it('keeps others under way while a request that failed is tried again', async () => {
    let count = 0;
    bench.receiver.answer = () => {
      count += 1;
      return count === 2 ? { status: 500 } : {};
    };
    const worker = await bench.worker({ options: { maxBatchItems: 2, maxInFlight: 2 } });
    bench.log.append(RUN, ...spans(12));
    // Three further requests may be answered before the one that waits.
    await untilTurned(() => bench.receiver.spanNames.length === 6);
    for (let round = 0; round < 100; round += 1) await new Promise(setImmediate);
    expect(bench.receiver.spanNames).toHaveLength(6);
    expect((await bench.state.cursors.find('jaeger', RUN))?.tracesOffset).toBeLessThanOrEqual(2 * RECORD_BYTES);
    bench.clock.advance(100);
    await untilTurned(() => bench.receiver.spanNames.length === 10);
    await bench.finish(RUN, worker);
    await untilTurned(() => worker.status().pendingRuns === 0);
    expect(bench.receiver.spanNames.sort()).toEqual(names(12).sort());
    expect(worker.status().signals.traces).toMatchObject({ sentCount: 12, failedAttemptCount: 1 });
  });

  it('sends everything once where every fifth request fails, without a pause', async () => {
    let count = 0;
    bench.receiver.answer = () => {
      count += 1;
      return count % 5 === 0 ? { status: 502 } : {};
    };
    const worker = await bench.worker({ options: { maxBatchItems: 3, maxInFlight: 4 } });
    bench.log.append(RUN, ...spans(200));
    await bench.finish(RUN, worker);
    await untilTurned(() => {
      bench.clock.advance(100);
      return worker.status().pendingRuns === 0;
    });
    expect(bench.receiver.spanNames.sort()).toEqual(names(200).sort());
    expect(bench.logger.lines.filter((line) => line.message.includes('does not accept exports'))).toEqual([]);
  });

  it('holds nothing up behind a record that fails late, after all that went with it was taken', async () => {
    const [bad = ''] = names(1);
    bench.receiver.answerTo = (request) => {
      if (request.signal !== 'traces') return undefined;
      const sent = request.resources.flatMap(({ scopes }) => scopes.flatMap(({ records }) => records));
      return sent.some(({ name }) => name === bad) ? { status: 500, delayMs: 100 } : undefined;
    };
    const worker = await bench.worker({ options: { maxBatchItems: 1, maxInFlight: 4 } });
    bench.log.append(RUN, ...spans(40));
    await bench.finish(RUN, worker);
    await untilTurned(() => {
      bench.clock.advance(100);
      return worker.status().pendingRuns === 0;
    });
    expect(bench.receiver.spanNames.sort()).toEqual(names(40).slice(1).sort());
    expect(worker.status().signals.traces).toMatchObject({ sentCount: 39, refusedCount: 1 });
  });

  it('repeats after a kill only what was answered behind a request that was not', async () => {
    bench.receiver.answer = () => (bench.receiver.requests.length === 0 ? { status: 500 } : {});
    const killed = await bench.worker({ options: { maxBatchItems: 2, maxInFlight: 4 } });
    bench.log.append(RUN, ...spans(40));
    await untilTurned(() => bench.receiver.spanNames.length === 12);
    bench.drop(killed);
    await bench.finish(RUN);
    bench.receiver.answer = () => ({});
    const next = await bench.worker();
    await untilTurned(() => next.status().pendingRuns === 0);
    const sent = bench.receiver.spanNames;
    expect(new Set(sent)).toEqual(new Set(names(40)));
    expect(sent.length - 40).toBeLessThanOrEqual(12);
  });
});

describe('an export worker in trouble', () => {
  it('passes over damaged lines, also at the end of a log', async () => {
    bench.log.append(RUN, ...spans(20));
    const damaged: LineSource = {
      read: (traceId, stretch, use) =>
        bench.log.lines.read(traceId, stretch, (pieces) => {
          for (const { offset, lines } of pieces) if (offset >= 8 * RECORD_BYTES) lines.fill(0, 0, RECORD_BYTES - 1);
          return use(pieces);
        }),
    };
    const worker = await bench.worker({ deps: { lines: damaged } });
    await bench.finish(RUN, worker);
    await untilTurned(() => worker.status().pendingRuns === 0);
    expect(bench.receiver.spanNames).toEqual([...names(8), ...names(7, 10), ...names(3, 18)]);
    const lines = bench.logger.lines.filter((line) => line.message.includes('damaged lines'));
    expect(lines.map((line) => line.fields)).toEqual([
      { traceId: RUN, lines: 1 },
      { traceId: RUN, lines: 1 },
    ]);
  });

  it('waits with sending while its state cannot be written, and sends nothing twice', async () => {
    const { cursors } = bench.state;
    let isFull = true;
    const failing = withSave(cursors, async (saved) => {
      if (isFull) throw new StoreError('full', 'the disk is full; free some space');
      await cursors.save(saved);
    });
    const worker = await bench.worker({ options: { maxBatchItems: 2, maxInFlight: 2 }, deps: { cursors: failing } });
    bench.log.append(RUN, ...spans(20));
    await untilTurned(() => bench.logger.lines.some((line) => line.message.includes('failed to save export cursors')));
    for (let round = 0; round < 100; round += 1) await new Promise(setImmediate);
    expect(bench.receiver.requests).toHaveLength(2);
    isFull = false;
    await bench.finish(RUN, worker);
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return worker.status().pendingRuns === 0;
    });
    expect(bench.receiver.spanNames.sort()).toEqual(names(20).sort());
    const lines = bench.logger.lines.filter((line) => line.message.includes('failed to save export cursors'));
    expect(lines.map((line) => line.fields)).toEqual([
      { destination: 'jaeger', error: 'the disk is full; free some space' },
    ]);
  });

  it('tries again a run that cannot be read, and goes on with others', async () => {
    let isReadable = false;
    const lines: LineSource = {
      read: async (traceId, ...range) => {
        if (traceId === RUN && !isReadable) throw new Error('EIO: i/o error, read');
        return bench.log.lines.read(traceId, ...range);
      },
    };
    const worker = await bench.worker({ deps: { lines } });
    const other = traceIdOf(2);
    bench.log.append(RUN, ...spans(5));
    bench.log.append(other, ...numbers(5, 6).map((number) => spanEnd(other, number)));
    await bench.finish(other, worker);
    await bench.finish(RUN, worker);
    await untilTurned(() => worker.status().pendingRuns === 1);
    isReadable = true;
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return worker.status().pendingRuns === 0;
    });
    expect(new Set(bench.receiver.spanNames)).toEqual(new Set(names(10)));
    const logged = bench.logger.lines.filter((line) => line.message.includes('failed to export a run'));
    expect(logged[0]?.fields).toMatchObject({ traceId: RUN, error: 'EIO: i/o error, read' });
  });
});

describe('an export worker with many runs', () => {
  it('sends small runs together', async () => {
    const worker = await bench.worker({ options: { batchDelayMs: 200 } });
    for (const number of numbers(50)) {
      const run = traceIdOf(number);
      bench.log.append(run, ...numbers(4).map((span) => spanEnd(run, span)));
      await bench.saveRun(run, 'open');
    }
    bench.clock.advance(200);
    await untilTurned(() => bench.receiver.spanNames.length === 100);
    expect(bench.receiver.requests).toHaveLength(1);
    expect(await worker.flush(never)).toBe(true);
    expect(bench.receiver.spanNames).toHaveLength(200);
    expect((await bench.state.cursors.find('jaeger', traceIdOf(50)))?.tracesOffset).toBeGreaterThan(3 * RECORD_BYTES);
  });

  it('keeps within the memory that open runs may take', async () => {
    const worker = await bench.worker({ options: { maxOpenBytes: 4_000_000 } });
    for (const number of numbers(60)) bench.log.append(traceIdOf(number), spanEnd(traceIdOf(number), number));
    await untilTurned(() => bench.mappers.length >= 60);
    for (const number of numbers(60)) await bench.finish(traceIdOf(number), worker);
    await untilTurned(() => worker.status().pendingRuns === 0);
    expect(bench.receiver.spanNames.sort()).toEqual(names(60).sort());
    // Each of them was opened again, because another one took its place meanwhile.
    expect(bench.mappers.length).toBeGreaterThan(60);
  });

  it('ends a run whose cursor is just being saved when another one needs its room', async () => {
    const { cursors } = bench.state;
    const save = cursors.save.bind(cursors);
    let letGo = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let isSaving = false;
    cursors.save = async (all) => {
      isSaving = true;
      await held;
      await save(all);
    };
    const worker = await bench.worker({ options: { maxOpenBytes: 1 } });
    const [first, second] = [traceIdOf(1), traceIdOf(2)];
    bench.log.append(first, spanEnd(first, 1));
    await bench.finish(first, worker);
    await untilTurned(() => isSaving);
    bench.log.append(second, spanEnd(second, 2));
    await bench.finish(second, worker);
    // Long enough for the second one to be opened, if it may be.
    let turns = 0;
    await untilTurned(() => bench.mappers.length === 2 || ++turns === 200);
    letGo();
    await untilTurned(() => worker.status().pendingRuns === 0);
    expect(bench.receiver.spanNames.sort()).toEqual(names(2));
    expect((await cursors.find('jaeger', first))?.finishedAtBytes).toBe(RECORD_BYTES);
  });

  it('takes turns between them and keeps no more open than it may', async () => {
    const count = 40;
    const worker = await bench.worker({ options: { maxOpenRuns: 4 } });
    for (let round = 0; round < 3; round += 1) {
      for (const number of numbers(count)) {
        const run = traceIdOf(number);
        bench.log.append(run, ...numbers(12, 1 + round * 12).map((span) => spanEnd(run, span)));
      }
    }
    for (const number of numbers(count)) await bench.finish(traceIdOf(number), worker);
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return worker.status().pendingRuns === 0;
    });
    expect(bench.receiver.spanNames).toHaveLength(count * 36);
    expect(new Set(bench.receiver.spanNames).size).toBe(36);
  });

  it('takes up ten thousand finished runs that are sent already without reading one', async () => {
    const rows = numbers(10_000).map((number) => ({
      traceId: traceIdOf(number),
      firstSeenUnixMs: bench.clock.nowUnixMs() + 1,
      lastSeenUnixMs: bench.clock.nowUnixMs() + 1,
      state: 'finished' as const,
      logBytes: 100,
      summary: '{}',
      parquetBytes: 100,
    }));
    await bench.state.cursors.register('jaeger', bench.clock.nowUnixMs());
    await bench.state.runs.save(rows);
    for (let from = 0; from < rows.length; from += 500) {
      await bench.state.cursors.save(
        rows.slice(from, from + 500).map(({ traceId }) => ({
          destination: 'jaeger',
          traceId,
          tracesOffset: 100,
          logsOffset: 100,
          finishedAtBytes: 100,
        })),
      );
    }
    const worker = await bench.worker();
    expect(worker.status().pendingRuns).toBe(0);
    expect(bench.log.readCount).toBe(0);
  });
});
