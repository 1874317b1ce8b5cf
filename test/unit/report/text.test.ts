import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import type { ReportSetting } from '../../../src/report/content.js';
import { textReport } from '../../../src/report/text.js';
import { SMALL_SAMPLES } from '../../fake/sample-run.js';
import { sampleMeasures } from '../run/measures/sample-measures.js';

const PLAIN: ReportSetting = {
  columns: null,
  hasColor: false,
  projectPath: '',
  version: '0',
};

async function text(sample: string, setting: Partial<ReportSetting>): Promise<string> {
  const command = await sampleMeasures(sample);
  const report = { traceId: '0'.repeat(32) as TraceId, command, commandCount: 1, comparison: null };
  return textReport([report], { ...PLAIN, ...setting });
}

test('what went wrong stands before where the time went', async () => {
  const shown = await text('build-mixed', {});
  const order = ['failed with an error:', 'failed tests:', 'where the ', 'critical path', 'slowest nodes'];
  const places = order.map((title) => shown.indexOf(`\n${title}`));
  expect(places.every((at) => at > 0)).toBe(true);
  expect(places).toEqual([...places].sort((a, b) => a - b));
});

test('where the time went is said in parts, the longest first, and then what runs are compared by', async () => {
  const shown = await text('build-clean', {});
  const parts = /where the 462 ms went:\n((?: {2}[a-z ]+ \d.*\n)+)/.exec(shown)?.[1] ?? '';
  expect(parts).toMatch(/^ {2}the rest +151 ms +33 % +█{10}\n {2}parsing +149 ms +32 % +█{10}\n/);
  const percents = [...parts.matchAll(/([\d.]+) %/g)].map(([, percent]) => Number(percent));
  expect(percents).toEqual([...percents].sort((a, b) => b - a));
  expect(percents.reduce((sum, percent) => sum + percent, 0)).toBeCloseTo(100, -0.5);
  expect(shown).toContain('\n  nodes at a time: 2.6 on average, 7 at most\n');
  expect(shown).toContain('\n  longest node: snapshot cust_snap, 68 ms\n');
  expect(shown).toContain('\ncritical path of 462 ms (by times: what ended last before each began;');
});

test('of many skipped nodes a few are listed by what they were skipped for, most first, and the others counted', async () => {
  const shown = await text('big-build', {});
  const [, skipped = ''] = /\nskipped:\n([\s\S]*?)\n\n/.exec(shown) ?? [];
  const lines = skipped.split('\n');
  expect(lines.length).toBeLessThan(30);
  expect(skipped).toMatch(/^ {2}because of model\.retail\.mart_43:\n(?: {6}\S+\n){3} {6}and 6 more\n/);
});

test('it ends with what to run again where the command did not succeed', async () => {
  expect(await text('build-mixed', {})).toMatch(/\n\nrun again: dbt build --select broken\+ \S+ \S+\n$/);
  expect(await text('interrupted', {})).toMatch(/\n\nrun again: dbt build [^\n]+\n$/);
  expect(await text('build-clean', {})).not.toContain('run again');
});

describe('on a terminal', () => {
  test.each(SMALL_SAMPLES.flatMap((sample) => [60, 80, 120].map((columns) => [sample, columns] as const)))(
    'no line of %s is wider than %d columns, and none of its words is lost',
    async (sample, columns) => {
      const shown = await text(sample, { columns, hasColor: true });
      const lines = stripVTControlCharacters(shown).split('\n');
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
      const command = (await sampleMeasures(sample)).invocation.rawCommand ?? '';
      expect(lines.join('').replaceAll(/\s/g, '')).toContain(command.replaceAll(/\s/g, ''));
    },
  );

  test('the end of the command and titles have colours, and nothing else does', async () => {
    const shown = await text('build-mixed', { columns: 100, hasColor: true });
    expect(shown).toContain('\u001b[1;31mbuild: failed after 2.0 s\u001b[0m\n');
    expect(shown).toContain('\u001b[1;31mfailed with an error:\u001b[0m\n');
    expect(shown).toContain('\u001b[1;33mtests with a warning:\u001b[0m\n');
    expect(stripVTControlCharacters(shown)).toBe(await text('build-mixed', { columns: 100 }));
  });
});

test('elsewhere it has neither colours nor a width', async () => {
  const shown = await text('build-mixed', {});
  expect(shown).not.toContain('\u001b');
  expect(Math.max(...shown.split('\n').map((line) => line.length))).toBeGreaterThan(120);
});
