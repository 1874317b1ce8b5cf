import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ExportTurns } from '../../../src/core/turns.js';
import type { ExportWorker } from '../../../src/export/export-worker.js';
import { OtelRunMapper } from '../../../src/export/mapping/otel-run-mapper.js';
import type { LineSource } from '../../../src/export/record-log-lines.js';
import { countOf } from '../../../src/export/wire/item-window.js';
import { ExportBench } from '../../fake/export-bench.js';
import { spanEnd, traceIdOf } from '../../fake/memory-record-log.js';
import { untilTurned } from '../../tool/until.js';

let bench: ExportBench;
/** Rounds of the event loop. */
let round: number;
let isCounting: boolean;
beforeEach(async () => {
  bench = await ExportBench.open();
  round = 0;
  isCounting = true;
  const count = () => {
    round += 1;
    if (isCounting) setImmediate(count);
  };
  setImmediate(count);
});
afterEach(async () => {
  isCounting = false;
  await bench.close();
});

const spansOf = (run: number, count: number) =>
  Array.from({ length: count }, (_, index) => spanEnd(traceIdOf(run), index + 1));

it('turns are given one each round of the event loop, in the order in which they were asked for', async () => {
  const turns = new ExportTurns();
  const given: [string, number][] = [];
  const work = async (name: string) => {
    for (let turn = 0; turn < 5; turn += 1) {
      await turns.next();
      given.push([name, round]);
    }
  };
  await Promise.all([work('a'), work('b'), work('c')]);
  expect(given.map(([name]) => name).join('')).toBe('abcabcabcabcabc');
  const rounds = given.map(([, at]) => at);
  expect(new Set(rounds).size).toBe(rounds.length);
});

describe('a long backlog', () => {
  it('of several destinations is read a piece at a time, each in a round of its own, and requests are answered in between', async () => {
    const server = createServer((_request, response) => response.end('ok'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const pieceCount = 400;
    const readAt: number[] = [];
    let answeredAfter: number | undefined;
    const noting: LineSource = {
      read: (traceId, stretch, use) => {
        readAt.push(round);
        if (readAt.length === 1) {
          void fetch(url).then(async (response) => {
            await response.text();
            answeredAfter = readAt.length;
          });
        }
        return bench.log.lines.read(traceId, stretch, use);
      },
    };
    // Eight records are a piece.
    for (let run = 1; run <= 4; run += 1) bench.log.append(traceIdOf(run), ...spansOf(run, 2 * pieceCount));
    const turns = new ExportTurns();
    for (let run = 1; run <= 4; run += 1) await bench.saveRun(traceIdOf(run), 'open');
    const workers: ExportWorker[] = [];
    for (const name of ['one', 'two', 'three']) {
      const changes = { name, deps: { turns, lines: noting }, options: { maxInFlight: 4 } };
      const worker = await bench.worker(changes);
      for (let run = 1; run <= 4; run += 1) {
        worker.onAppended({ traceId: traceIdOf(run), lengthBytes: await bench.log.lengthBytes(traceIdOf(run)) });
      }
      workers.push(worker);
    }
    // The last ones of each run wait for what may belong to them.
    const isSent = (worker: ExportWorker) => worker.status().signals.traces.sentCount >= 8 * (pieceCount - 1);
    await untilTurned(() => workers.every(isSent));
    // Each destination has read all of it, and no two pieces were read in one round, but for the first of each.
    expect(readAt.length).toBeGreaterThanOrEqual(3 * pieceCount);
    expect(new Set(readAt).size).toBeGreaterThanOrEqual(readAt.length - 3);
    expect(answeredAfter).toBeLessThan(readAt.length / 2);
    server.close();
  });

  it('of spans that are held is let go a part at a time, when all is quiet, when the run ends and when much time passes in it', async () => {
    const counts: number[] = [];
    const createMapper = () => {
      const mapper = new OtelRunMapper();
      const take = mapper.take.bind(mapper);
      mapper.take = (...how) => {
        const items = take(...how);
        counts.push(countOf(items.traces));
        return items;
      };
      return mapper;
    };
    const worker = await bench.worker({ deps: { createMapper } });
    bench.log.append(traceIdOf(1), ...spansOf(1, 3_000));
    await untilTurned(() => worker.status().state === 'idle' && counts.length > 0);
    expect(worker.status().signals.traces.sentCount).toBe(0);
    bench.clock.advance(10_000);
    await untilTurned(() => worker.status().signals.traces.sentCount === 3_000);
    bench.log.append(traceIdOf(1), ...spansOf(1, 6_000).slice(3_000));
    await bench.finish(traceIdOf(1), worker);
    await untilTurned(() => worker.status().pendingRuns === 0);
    bench.log.append(traceIdOf(2), ...spansOf(2, 3_000));
    await untilTurned(() => worker.status().state === 'idle');
    const [last] = spansOf(2, 3_001).slice(3_000);
    if (last?.recordType === 'SpanEnd') {
      const laterNanos = 60_000_000_000n;
      bench.log.append(traceIdOf(2), {
        ...last,
        startTimeUnixNano: last.startTimeUnixNano + laterNanos,
        endTimeUnixNano: last.endTimeUnixNano + laterNanos,
      });
    }
    await untilTurned(() => worker.status().signals.traces.sentCount === 9_000);
    expect(new Set(bench.receiver.spanIds).size).toBe(9_000);
    expect(counts.filter((count) => count > 0).length).toBeGreaterThanOrEqual(8);
    // What is appended live is let go in parts, too, which may be twice as large.
    expect(Math.max(...counts)).toBeLessThanOrEqual(2_048);
  });
});
