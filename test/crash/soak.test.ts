import { existsSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { TRIAL, trialSize } from '../tool/trial.js';
import { CleanUp } from './clean-up.js';
import { fittedGrowth } from './fitted-growth.js';
import { median } from './median.js';
import { type SoakSample, soak } from './soak.js';

const SECONDS = trialSize(16, 1);
const SPANS_PER_SECOND = Number(process.env.SOAK_RATE ?? 2_000);
/** The first part of the time is not looked at: what is kept of runs that are over fills up. */
const WARM_UP_SHARE = 0.2;
/**
 * What the fitted line of memory may rise by: about 10 bytes a span in half an hour at 2,000 spans/s. A short time holds
 * the warming up of compilers and allocators and shows gross leaks only.
 */
const MAX_GROWTH_MIB = SECONDS >= 600 ? 32 : 96;
/** Descriptors that come and go: connections of senders, requests to the destination, files being written. */
const MAX_MORE_DESCRIPTORS = 16;
const REPORT_EVERY_SECONDS = Math.max(15, SECONDS / 20);

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

describe('a long time of work at the pace of large runs, with a destination that fails now and then', () => {
  it.runIf(existsSync('/proc/self/fd'))(
    `loses nothing, and as a trial leaves memory and descriptors where they were, ${SECONDS} s long`,
    {
      timeout: (SECONDS + 240) * 1_000,
    },
    async () => {
      let nextReport = 0;
      const onSample = (sample: SoakSample) => {
        if (sample.second < nextReport) return;
        nextReport += REPORT_EVERY_SECONDS;
        console.log(describeSample(sample));
      };
      const figures = await soak({
        seconds: SECONDS,
        spansPerSecond: SPANS_PER_SECOND,
        seed: TRIAL.seed,
        cleanUp,
        onSample,
      });
      const { samples, ...rest } = figures;
      const later = samples.slice(Math.floor(samples.length * WARM_UP_SHARE));
      const half = Math.floor(later.length / 2);
      const highest = (part: readonly SoakSample[]) => Math.max(...part.map(({ descriptors }) => descriptors));
      const [first, last] = [later[0], later.at(-1)];
      const cpuMs = (last?.cpuMs ?? 0) - (first?.cpuMs ?? 0);
      const growthMiB = {
        heap: fittedGrowth(later.map(({ heapMiB }) => heapMiB)),
        rss: fittedGrowth(later.map(({ rssMiB }) => rssMiB)),
      };
      console.log({
        ...rest,
        growthMiB,
        rssMiB: summary(later.map(({ rssMiB }) => rssMiB)),
        heapMiB: summary(later.map(({ heapMiB }) => heapMiB)),
        descriptors: summary(later.map(({ descriptors }) => descriptors)),
        pendingRuns: summary(later.map(({ pendingRuns }) => pendingRuns)),
        loopDelayP99Ms: summary(later.map(({ loopDelayP99Ms }) => loopDelayP99Ms)),
        cpuShareOfOneCore: cpuMs / 1_000 / Math.max(1, (last?.second ?? 0) - (first?.second ?? 0)),
      });
      expect(rest).toMatchObject({ missingSpans: 0, refusals: [], exitCode: 0 });
      if (TRIAL.seconds === undefined) return;
      expect(highest(later.slice(half))).toBeLessThanOrEqual(highest(later.slice(0, half)) + MAX_MORE_DESCRIPTORS);
      expect(growthMiB.heap).toBeLessThan(MAX_GROWTH_MIB);
      expect(growthMiB.rss).toBeLessThan(MAX_GROWTH_MIB);
    },
  );
});

function summary(values: readonly number[]): string {
  const [low, middle, high] = [Math.min(...values), median(values), Math.max(...values)].map((value) =>
    value.toFixed(1),
  );
  return `${low} to ${high}, median ${middle}`;
}

function describeSample({ second, rssMiB, heapMiB, descriptors, pendingRuns, loopDelayP99Ms }: SoakSample): string {
  const memory = `${rssMiB.toFixed(0)} MiB resident, ${heapMiB.toFixed(1)} MiB of heap`;
  return `${second} s: ${memory}, ${descriptors} descriptors, ${pendingRuns} runs, loop late by ${loopDelayP99Ms.toFixed(0)} ms`;
}
