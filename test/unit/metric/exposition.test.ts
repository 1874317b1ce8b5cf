import { describe, expect, it } from 'vitest';
import { METRICS, type MetricDefinition } from '../../../src/metric/metrics.js';
import { writeExposition } from '../../../src/metric/routes.js';
import type { Sample } from '../../../src/metric/samples.js';
import { ParsedMetrics } from '../../tool/parsed-metrics.js';

const DEFINITIONS: readonly (readonly [string, MetricDefinition])[] = Object.entries(METRICS);
/** Units that are no base units, and words that others put behind names. */
const WRONG_ENDS = /_(ms|millis|minutes|kb|mb|kib|mib|count|sum|bucket|created)(_total)?$/;

/** The metrics with one value a sample; histograms have a test of their own. */
const SINGLE = DEFINITIONS.filter(([, { kind }]) => kind !== 'histogram');

/** A sample of each of these metrics, by labels that are made up. */
function everything(): readonly Sample[] {
  return SINGLE.map(
    ([name, { labels }], index) =>
      // Made of the table, which the compiler cannot follow.
      ({
        name,
        value: index + 0.5,
        labels: Object.fromEntries(labels.map((label) => [label, `${label} 1`])),
      }) as Sample,
  );
}

describe('every metric', () => {
  it.each(DEFINITIONS)('%s is named by the conventions', (name, { kind, help, labels }) => {
    // Names that OpenTelemetry's conventions have, else our own.
    expect(name).toMatch(/^(run_bridge|cicd_pipeline)_[a-z]+(_[a-z]+)*$/);
    expect(name).not.toMatch(WRONG_ENDS);
    expect(name.endsWith('_total')).toBe(kind === 'counter');
    expect(help).toMatch(/^\S.*\.$/);
    for (const label of labels) expect(label).toMatch(/^([a-z]+|error_type|cicd_pipeline_[a-z]+(_[a-z]+)*)$/);
  });

  it('is read by another program with its help, type, labels and value', async () => {
    const { contentType, text } = await writeExposition(everything(), 'prometheus');
    expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(new ParsedMetrics(text).families).toEqual(
      SINGLE.map(([name, { kind, help, labels }], index) => ({
        ...{ name, help, type: kind.toUpperCase() },
        metrics: [
          { value: String(index + 0.5), labels: Object.fromEntries(labels.map((label) => [label, `${label} 1`])) },
        ],
      })),
    );
  });

  it('is written in OpenMetrics with its family named as that has it', async () => {
    const { contentType, text } = await writeExposition(everything(), 'openmetrics');
    expect(contentType).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    const lines = text.split('\n');
    expect(lines.slice(-2)).toEqual(['# EOF', '']);
    expect(lines.filter((line) => line === '')).toHaveLength(1);
    const expected = SINGLE.flatMap(([name, { kind, help }]) => {
      const family = name.replace(/_total$/, '');
      return [`# HELP ${family} ${help}`, `# TYPE ${family} ${kind}`, name];
    });
    expect(lines.slice(0, -2).map((line) => (line.startsWith('#') ? line : line.replace(/[{ ].*/, '')))).toEqual(
      expected,
    );
  });
});

describe('an answer', () => {
  const state = (destination: string, value: number): Sample => ({
    name: 'run_bridge_destination_lag_bytes',
    value,
    labels: { destination },
  });

  it('keeps apart whatever labels hold', async () => {
    const odd = ['"', '\\', 'a"b\\c', 'two\nlines', '{x="y"}', 'ü', ''];
    const { text } = await writeExposition(odd.map(state), 'prometheus');
    const parsed = new ParsedMetrics(text);
    expect(parsed.families[0]?.metrics.map(({ labels }) => labels.destination)).toEqual(odd);
  });

  it('has the counts of a histogram added up, their sum, and in OpenMetrics a trace for each', async () => {
    const labels = {
      ...{ account: '1', project: 'shop', environment: 'prod', cicd_pipeline_name: 'nightly' },
      cicd_pipeline_result: 'success',
    };
    const { bounds } = METRICS.cicd_pipeline_run_duration_seconds;
    const counts = bounds.map((_, index) => (index === 1 ? 2 : 0));
    const examples = bounds.map((_, index) =>
      index === 1 ? { value: 4.5, traceId: 'ab', unixSeconds: 17 } : undefined,
    );
    const value = { counts: [...counts, 3], sum: 50_009, examples };
    const samples: readonly Sample[] = [{ name: 'cicd_pipeline_run_duration_seconds', value, labels }];
    const { text } = await writeExposition(samples, 'openmetrics');
    const written = Object.entries(labels)
      .map(([name, text]) => `${name}="${text}"`)
      .join(',');
    const lines = text.split('\n').filter((line) => !line.startsWith('#'));
    const bucket = (bound: number | string, count: number) =>
      `cicd_pipeline_run_duration_seconds_bucket{${written},le="${bound}"} ${count}`;
    expect(lines).toEqual([
      ...bounds.map(
        (bound, index) => `${bucket(bound, index < 1 ? 0 : 2)}${index === 1 ? ' # {trace_id="ab"} 4.5 17' : ''}`,
      ),
      bucket('+Inf', 5),
      `cicd_pipeline_run_duration_seconds_sum{${written}} 50009`,
      `cicd_pipeline_run_duration_seconds_count{${written}} 5`,
      '',
    ]);
    expect((await writeExposition(samples, 'prometheus')).text).not.toContain('trace_id');
  });

  it('leaves out what has no sample, and remembers nothing of the answer before', async () => {
    await writeExposition([state('a', 1)], 'prometheus');
    const { text } = await writeExposition([state('b', 2)], 'prometheus');
    const parsed = new ParsedMetrics(text);
    expect(parsed.families).toHaveLength(1);
    expect(parsed.labelsWith('run_bridge_destination_lag_bytes', 2)).toEqual([{ destination: 'b' }]);
  });
});
