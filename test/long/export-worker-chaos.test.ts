import { setMaxListeners } from 'node:events';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Destination, SendResult } from '../../src/export/destination.js';
import type { ExportWorker } from '../../src/export/export-worker.js';
import { countOf, cutRanges } from '../../src/export/wire/item-window.js';
import type { Signal } from '../../src/record/record-batch.js';
import { ExportBench } from '../fake/export-bench.js';
import { itemsOf } from '../fake/mapped-items.js';
import { logRecord, spanEnd, spanStart, traceIdOf } from '../fake/memory-record-log.js';
import { untilTurned } from '../tool/until.js';

let bench: ExportBench;
beforeEach(async () => {
  bench = await ExportBench.open();
});
afterEach(() => bench.close());

/** Repeatable chance (mulberry32). */
function chanceOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const RETRYABLE: SendResult = { kind: 'retryable', status: 503, retryAfterMs: null, message: 'busy' };
const ACCEPTED: SendResult = { kind: 'accepted', status: 200, rejectedCount: 0, message: '' };

/** Takes what it gets with a chance of its own for each signal. */
class MoodyDestination implements Destination {
  readonly name = 'moody';
  readonly signals = ['traces', 'logs'] as const;
  readonly taken: Record<Signal, string[]> = { traces: [], logs: [] };
  isDead = false;
  likelihood: Record<Signal, number> = { traces: 1, logs: 1 };

  constructor(private readonly chance: () => number) {}

  async send(...[batch, abort]: Parameters<Destination['send']>): ReturnType<Destination['send']> {
    const itemCount = Math.max(1, Math.floor(countOf(batch.ranges) * this.chance()));
    if (this.isDead) {
      // As many as are tried wait for one end.
      setMaxListeners(0, abort);
      return new Promise((resolve) => {
        abort.addEventListener('abort', () => resolve({ result: RETRYABLE, itemCount }), { once: true });
      });
    }
    if (this.chance() > this.likelihood[batch.signal]) return { result: RETRYABLE, itemCount };
    const sent = { traces: [], logs: [], [batch.signal]: cutRanges(batch.ranges, itemCount)[0] };
    for (const item of itemsOf(sent)) {
      if (item.signal === 'logs') this.taken.logs.push(String(item.log.body));
      else this.taken.traces.push(`${item.span.spanContext().traceId} ${item.span.name}`);
    }
    return { result: ACCEPTED, itemCount };
  }

  async close(): Promise<void> {}
}

it.each(Array.from({ length: 12 }, (_, index) => index + 1))(
  'an export worker loses nothing and repeats little, whatever happens (chance %i)',
  async (seed) => {
    const chance = chanceOf(seed);
    const runs = [1, 2, 3, 4, 5].map(traceIdOf);
    const taken: Record<Signal, string[]> = { traces: [], logs: [] };
    const expected: Record<Signal, Set<string>> = { traces: new Set(), logs: new Set() };
    const options = { maxOpenRuns: 3, maxBatchItems: 4, maxInFlight: 1 + (seed % 4) };
    let destination = new MoodyDestination(chance);
    let worker: ExportWorker = await bench.worker({ name: 'moody', options, destination });
    let kills = 0;
    let number = 0;
    for (let step = 0; step < 200; step += 1) {
      const run = runs[Math.floor(chance() * runs.length)] ?? traceIdOf(9);
      const what = chance();
      if (what < 0.7) {
        const records = Array.from({ length: 1 + Math.floor(chance() * 12) }, () => {
          number += 1;
          if (chance() < 0.1) return spanStart(run, number);
          if (chance() < 0.5) {
            expected.logs.add(`log ${number}`);
            return logRecord(run, number, `log ${number}`);
          }
          expected.traces.add(`${run} span ${number}`);
          return spanEnd(run, number);
        });
        bench.log.append(run, ...records);
        await bench.saveRun(run, 'open');
      } else if (what < 0.78) {
        await bench.finish(run, worker);
      } else if (what < 0.88) {
        destination.likelihood = { traces: chance() < 0.5 ? 1 : chance() / 2, logs: chance() < 0.5 ? 1 : chance() / 2 };
      } else if (what < 0.92) {
        kills += 1;
        destination.isDead = true;
        bench.drop(worker);
        taken.traces.push(...destination.taken.traces);
        taken.logs.push(...destination.taken.logs);
        destination = new MoodyDestination(chance);
        worker = await bench.worker({ name: 'moody', options, destination });
      } else {
        bench.clock.advance(Math.floor(chance() * 5_000));
      }
      for (let turns = Math.floor(chance() * 4); turns > 0; turns -= 1) await new Promise(setImmediate);
    }
    destination.likelihood = { traces: 1, logs: 1 };
    for (const run of runs) if ((await bench.log.lengthBytes(run)) > 0) await bench.finish(run, worker);
    await untilTurned(() => {
      bench.clock.advance(1_000);
      return worker.status().pendingRuns === 0;
    });
    taken.traces.push(...destination.taken.traces);
    taken.logs.push(...destination.taken.logs);
    const spans = taken.traces.filter((name) => !name.endsWith('unfinished'));
    expect(new Set(spans)).toEqual(expected.traces);
    expect(new Set(taken.logs)).toEqual(expected.logs);
    const mostRepeated = kills * options.maxBatchItems * (2 * options.maxInFlight - 1);
    expect(spans.length - expected.traces.size).toBeLessThanOrEqual(mostRepeated);
    expect(taken.logs.length - expected.logs.size).toBeLessThanOrEqual(mostRepeated);
    if (kills === 0) expect(new Set(taken.traces).size).toBe(taken.traces.length);
    expect(await bench.state.cursors.listPending('moody')).toEqual([]);
  },
);
