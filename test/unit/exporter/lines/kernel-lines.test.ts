import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KernelLines } from '../../../../src/exporter/lines/kernel-lines.js';
import { KnownLayouts } from '../../../../src/exporter/lines/known-layouts.js';
import type { LineKernel } from '../../../../src/exporter/lines/line-kernel.js';
import type { RedactionLevel } from '../../../../src/exporter/redaction/redaction-level.js';
import { SMALL_SAMPLES, sampleFolder } from '../../../fake/sample-run.js';
import { LARGE_SAMPLES_OF_COSTLY_CHECKS } from '../../../tool/large-samples.js';
import { propertyRuns } from '../../../tool/property-runs.js';
import { loadedKernel } from './loaded-kernel.js';
import { mapLines, mapRecords } from './mapped-bytes.js';

const logOf = (name: string) => readFileSync(join(sampleFolder(name), 'otel.jsonl'));
const SAMPLES = SMALL_SAMPLES.map((name) => [name, logOf(name)] as const);
const MARKED = readFileSync('test/fixture/redaction/otel.jsonl');
const LEVELS: readonly RedactionLevel[] = ['literals', 'statements', 'off'];

/** Shared by all runs of this file, as runs of a destination share them. */
const shared = new KnownLayouts(new KernelLines(loadedKernel()));

describe.each([...SAMPLES, ['marked values', MARKED] as const])('the log of %s', (_name, log) => {
  it.each(LEVELS)('gives the same bytes by the kernel as by its records at level %s', (redaction) => {
    const records = mapRecords(log, { redaction });
    expect(mapLines(log, { redaction }, [1_000_000], shared)).toEqual(records);
    expect(mapLines(log, { redaction }, [3, 1, 40], shared)).toEqual(records);
  });
});

it.each(LARGE_SAMPLES_OF_COSTLY_CHECKS)(
  'the log of %s gives the same bytes by the kernel as by its records',
  (name) => {
    const log = logOf(name);
    expect(isDeepStrictEqual(mapLines(log, {}, [2_000, 1, 700], shared), mapRecords(log))).toBe(true);
  },
  120_000,
);

it('reads nearly all lines of spans that are laid out as one before', () => {
  const log = SAMPLES.find(([name]) => name === 'build-mixed')?.[1] ?? MARKED;
  const taken = countingKernel();
  mapLines(log, {}, [1_000_000], new KnownLayouts(new KernelLines(taken.kernel)));
  const spanLines = log.toString().match(/^\{"record_type":"Span/gm)?.length ?? 0;
  expect(taken.lines() / spanLines).toBeGreaterThan(0.8);
});

function countingKernel(): { kernel: LineKernel; lines: () => number } {
  let lines = 0;
  const loaded = loadedKernel();
  const run = (at: number, end: number) => {
    const count = loaded.run(at, end);
    lines += count;
    return count;
  };
  return { kernel: { ...loaded, run }, lines: () => lines };
}

it('gives of damaged lines what JavaScript gives of them', () => {
  const { stringify } = JSON;
  const log = SAMPLES.find(([name]) => name === 'build-mixed')?.[1] ?? MARKED;
  const odd = [0, 9, 10, 0x20, 0x22, 0x2c, 0x30, 0x39, 0x5c, 0x5b, 0x5d, 0x61, 0x7b, 0x7d, 0x7f, 0x80, 0xc3, 0xff];
  const place = fc.tuple(fc.nat(log.length - 2), fc.constantFrom(...odd));
  fc.assert(
    fc.property(fc.array(place, { minLength: 1, maxLength: 40 }), (damages) => {
      const damaged = Buffer.from(log);
      // The first line tells the trace.
      for (const [at, byte] of damages) if (at > log.indexOf('\n')) damaged[at] = byte;
      const byKernel = mapLines(damaged, {}, [500], shared);
      expect(stringify(byKernel) === stringify(mapLines(damaged, {}, [500]))).toBe(true);
    }),
    { numRuns: propertyRuns(60) },
  );
}, 60_000);

it('stops within the lines and leaves them as they are, whatever stands in them', () => {
  const kernel = loadedKernel();
  const log = SAMPLES.find(([name]) => name === 'build-mixed')?.[1] ?? MARKED;
  const lines = new KernelLines(kernel);
  mapLines(log, {}, [1_000_000], new KnownLayouts(lines));
  const { memory, chunk, chunkEnd, traceId } = kernel;
  const fixed = Buffer.from(memory.subarray(0, traceId + 32));
  const change = fc.tuple(fc.nat(4000), fc.nat(255));
  fc.assert(
    fc.property(
      fc.nat(log.length - 5000),
      fc.array(change, { maxLength: 8 }),
      fc.nat(5000),
      (from, changes, length) => {
        memory.set(log.subarray(from, from + 5000), chunk);
        for (const [at, byte] of changes) memory[chunk + at] = byte;
        memory[chunk + length] = 0x0a;
        const before = Buffer.from(memory.subarray(chunk, chunkEnd));
        kernel.forgetNames();
        kernel.run(chunk + Math.max(0, memory.indexOf(0x7b, chunk) - chunk), chunk + length + 1);
        expect(kernel.stoppedAt()).toBeLessThanOrEqual(Math.max(chunk + length + 1, memory.indexOf(0x7b, chunk)));
        expect(before.equals(memory.subarray(chunk, chunkEnd))).toBe(true);
        expect(fixed.equals(memory.subarray(0, traceId + 32))).toBe(true);
      },
    ),
    { numRuns: propertyRuns(300) },
  );
});
