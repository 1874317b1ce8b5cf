import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ATTEMPTS_OF_ONE } from '../../../src/export/signal-breaker.js';
import type { Signal } from '../../../src/record/record-batch.js';
import { ExportBench } from '../../fake/export-bench.js';
import { MemoryPassthroughLog } from '../../fake/memory-passthrough-log.js';
import { untilTurned } from '../../tool/until.js';

const never = new AbortController().signal;

let bench: ExportBench;
let passthrough: MemoryPassthroughLog;
beforeEach(async () => {
  bench = await ExportBench.open();
  passthrough = new MemoryPassthroughLog();
});
afterEach(() => bench.close());

/** A span of another service, with what an engine's span never has. */
function spans(name: string): string {
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: [{ key: 'service.name', value: { stringValue: 'airflow' } }] },
        scopeSpans: [
          {
            scope: { name: 'scheduler', version: '3' },
            spans: [
              {
                traceId: '0af7651916cd43dd8448eb211c80319c',
                spanId: 'b7ad6b7169203331',
                traceState: 'vendor=1',
                name,
                kind: 3,
                startTimeUnixNano: '1700000000000000001',
                endTimeUnixNano: '1700000000000000002',
                attributes: [{ key: 'bytes', value: { bytesValue: 'AAEC' } }],
                status: {},
              },
            ],
          },
        ],
      },
    ],
  });
}

const logs = (body: string) =>
  JSON.stringify({ resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: body } }] }] }] });

describe('the telemetry of other services', () => {
  it('is forwarded in order, to a destination that speaks JSON byte for byte', async () => {
    const worker = await bench.worker({ endpoint: { encoding: 'json' }, deps: { passthrough } });
    passthrough.append('traces', spans('one'));
    passthrough.append('logs', logs('two'));
    worker.onPassthrough([]);
    await untilTurned(() => bench.receiver.requests.length === 2);
    expect(bench.receiver.requests.map((request) => request.body.toString())).toEqual([spans('one'), logs('two')]);
    expect(await worker.flush(never)).toBe(true);
    expect(worker.status().signals.traces.forwardedCount).toBe(1);
  });

  it('is forwarded in protobuf with nothing lost', async () => {
    const worker = await bench.worker({ deps: { passthrough } });
    passthrough.append('traces', spans('one'));
    expect(await worker.flush(never)).toBe(true);
    expect(bench.receiver.spanNames).toEqual(['one']);
    expect(bench.receiver.requests[0]?.headers['content-type']).toBe('application/x-protobuf');
    expect(bench.receiver.requests[0]?.body.includes(Buffer.from([0, 1, 2]))).toBe(true);
    expect(bench.receiver.requests[0]?.body.includes('vendor=1')).toBe(true);
  });

  it('is forwarded from where it was left after an outage and a restart', async () => {
    const first = await bench.worker({ deps: { passthrough } });
    passthrough.append('traces', spans('one'));
    await first.flush(never);
    bench.receiver.answer = () => ({ status: 503 });
    passthrough.append('traces', spans('two'));
    await first.shutdown(never);
    bench.receiver.answer = () => ({});
    passthrough.append('traces', spans('three'));
    bench.clock.advance(1);
    const second = await bench.worker({ deps: { passthrough } });
    await second.flush(never);
    expect(bench.receiver.spanNames).toEqual(['one', 'two', 'three']);
  });

  it('is tried again by itself when the destination is back', async () => {
    bench.receiver.answer = () => ({ status: 503 });
    const worker = await bench.worker({ deps: { passthrough } });
    passthrough.append('traces', spans('one'));
    worker.onPassthrough([]);
    await untilTurned(() => worker.status().state === 'waiting');
    bench.receiver.answer = () => ({});
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return bench.receiver.spanNames.length === 1;
    });
  });

  it('is tried again by itself after a fault of the disk, which is logged once', async () => {
    let faultsLeft = 3;
    const failing = {
      end: passthrough.end.bind(passthrough),
      async *read(...[from]: Parameters<typeof passthrough.read>) {
        faultsLeft -= 1;
        if (faultsLeft >= 0) throw new Error('EIO: i/o error, read');
        yield* passthrough.read(from);
      },
    };
    const worker = await bench.worker({ deps: { passthrough: failing } });
    passthrough.append('traces', spans('one'));
    worker.onPassthrough([]);
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return bench.receiver.spanNames.length === 1;
    });
    expect(bench.logger.lines.filter((line) => line.message.includes('failed to forward telemetry'))).toHaveLength(1);
  });

  it('is tried again by itself when a single message was not taken', async () => {
    bench.receiver.answer = () => (bench.receiver.requests.length === 0 ? { status: 500 } : {});
    const worker = await bench.worker({ deps: { passthrough } });
    passthrough.append('traces', spans('one'));
    worker.onPassthrough([]);
    await untilTurned(() => worker.status().state === 'waiting');
    bench.clock.advance(100);
    await untilTurned(() => bench.receiver.spanNames.length === 1);
    await untilTurned(() => worker.status().state === 'idle');
  });

  it('is not forwarded where it came before the destination was known', async () => {
    passthrough.append('traces', spans('old'));
    const worker = await bench.worker({ deps: { passthrough } });
    passthrough.append('traces', spans('new'));
    await worker.flush(never);
    expect(bench.receiver.spanNames).toEqual(['new']);
  });

  it('is passed over where the destination does not get its signal', async () => {
    const worker = await bench.worker({ signals: ['traces'], deps: { passthrough } });
    passthrough.append('logs', logs('one'));
    passthrough.append('traces', spans('two'));
    expect(await worker.flush(never)).toBe(true);
    expect(bench.receiver.requests.map((request) => request.signal)).toEqual(['traces']);
  });

  /** Goes on until more attempts failed than one message is tried before others decide about it. */
  async function failOften(signal: Signal): Promise<void> {
    await untilTurned(() => {
      bench.clock.advance(60_000);
      return bench.receiver.requests.filter((request) => request.signal === signal).length > 2 * ATTEMPTS_OF_ONE;
    });
  }
  const forwarded = async () => {
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return bench.receiver.spanNames.length > 0 || bench.receiver.logBodies.length > 0;
    });
    return [...bench.receiver.spanNames, ...bench.receiver.logBodies];
  };

  it('is not lost where a message fails for long before those of a signal that is off', async () => {
    bench.receiver.answer = () => ({ status: 500 });
    const worker = await bench.worker({ signals: ['traces'], deps: { passthrough } });
    passthrough.append('traces', spans('one'));
    passthrough.append('logs', logs('two'));
    worker.onPassthrough([]);
    await failOften('traces');
    bench.receiver.answer = () => ({});
    expect(await forwarded()).toEqual(['one']);
  });

  it('is not given up because the other signal is taken', async () => {
    bench.receiver.answer = (signal) => (signal === 'traces' ? { status: 500 } : {});
    const worker = await bench.worker({ deps: { passthrough } });
    passthrough.append('traces', spans('one'));
    passthrough.append('logs', logs('two'));
    worker.onPassthrough([]);
    await failOften('traces');
    expect(worker.status().signals.traces.refusedCount).toBe(0);
    bench.receiver.answer = () => ({});
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return bench.receiver.logBodies.length > 0;
    });
    expect(bench.receiver.spanNames).toEqual(['one']);
  });

  it('goes once each around a message that is never taken', async () => {
    bench.receiver.answerTo = (_, body) => (body.includes('bad') ? { status: 500 } : undefined);
    const worker = await bench.worker({ deps: { passthrough } });
    passthrough.append('traces', spans('bad'));
    passthrough.append('logs', logs('two'));
    passthrough.append('traces', spans('three'));
    passthrough.append('logs', logs('four'));
    worker.onPassthrough([]);
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return bench.receiver.logBodies.length === 2;
    });
    expect(await worker.flush(never)).toBe(true);
    expect(bench.receiver.spanNames).toEqual(['three']);
    expect(bench.receiver.logBodies).toEqual(['two', 'four']);
    expect(worker.status().signals.traces.refusedCount).toBe(1);
  });

  it('goes once each around several in a row that are never taken', async () => {
    bench.receiver.answerTo = (_, body) => (body.includes('bad') ? { status: 500 } : undefined);
    const worker = await bench.worker({ deps: { passthrough } });
    for (const name of ['bad 1', 'bad 2', 'bad 3', 'good 1', 'bad 4', 'good 2', 'good 3', 'good 4']) {
      passthrough.append('traces', spans(name));
    }
    worker.onPassthrough([]);
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return worker.status().signals.traces.refusedCount === 4 && bench.receiver.spanNames.length === 4;
    });
    expect(await worker.flush(never)).toBe(true);
    expect(bench.receiver.spanNames).toEqual(['good 1', 'good 2', 'good 3', 'good 4']);
    expect(worker.status()).toMatchObject({ state: 'idle', signals: { traces: { refusedCount: 4 } } });
  });

  it('of logs waits while the receiver answers 501 to everything', async () => {
    bench.receiver.answer = () => ({ status: 501 });
    const worker = await bench.worker({ deps: { passthrough } });
    passthrough.append('logs', logs('one'));
    worker.onPassthrough([]);
    await failOften('logs');
    // Not between the answer to the logs and the question whether the receiver is well.
    await untilTurned(() => worker.status().signals.logs.state === 'waiting');
    bench.receiver.answer = () => ({});
    await untilTurned(() => {
      bench.clock.advance(60_000);
      return bench.receiver.logBodies.length === 1;
    });
  });
});
