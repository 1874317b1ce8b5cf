import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/core/logger.js';
import { RunMetrics } from '../../../src/metric/run-metrics.js';
import type { RunTotal } from '../../../src/storage/run-totals.js';
import { RUN_STATUS } from '../../../src/storage/state-tables.js';
import { FakeClock } from '../../fake/fake-clock.js';

/** One success of a job, whose number is that of its run. */
const total = (jobId: number, finishedUnixMs = jobId): RunTotal => ({
  ...{ accountId: 10_001, projectId: 1, environmentId: 1, jobId, status: RUN_STATUS.success, boundSeconds: 5 },
  ...{ runCount: 1, durationMs: 2_000, startedUnixMs: finishedUnixMs - 1, finishedUnixMs, latestRunId: jobId },
});

/** Metrics of these totals, and the runs that were measured for them. */
function metricsOf(
  totals: readonly RunTotal[],
  options: { readonly clock?: FakeClock; readonly isBroken?: boolean } = {},
) {
  const measured: number[] = [];
  const { clock = new FakeClock(), isBroken = false } = options;
  const none = new Map<number, string>();
  const shown = { totals };
  const metrics = new RunMetrics({
    totals: {
      read: async () => shown.totals,
      names: async () => ({
        jobs: new Map(totals.map(({ jobId }) => [jobId, `job ${jobId}`])),
        environments: none,
        projects: none,
      }),
      examples: async () => [],
    },
    catalog: {
      async stepsOf(_account, [runId = 0]) {
        measured.push(runId);
        return [];
      },
    },
    measures: {
      async ofSteps() {
        if (isBroken) throw new Error('its record log is gone');
        return [];
      },
    },
    ...{ maxNodes: 0, clock, logger: silentLogger },
  });
  const read = async () => {
    const samples = await metrics.read();
    return (name: string) => samples.filter((sample) => sample.name === name);
  };
  return { read, measured, shown };
}

describe('metrics of runs', () => {
  it('are of 500 jobs, those with the latest runs, and say how many are left out', async () => {
    const { read } = metricsOf(Array.from({ length: 502 }, (_, index) => total(index + 1)));
    const of = await read();
    const starts = of('run_bridge_run_last_start_timestamp_seconds');
    expect(starts).toHaveLength(500);
    expect(starts.map(({ labels }) => labels)).not.toContainEqual(
      expect.objectContaining({ cicd_pipeline_name: 'job 2' }),
    );
    expect(of('run_bridge_left_out_jobs').map(({ value }) => value)).toEqual([2]);
  });

  it('measure a run once, and again when records that came late have changed its end', async () => {
    const { read, measured, shown } = metricsOf([total(7, 1_000)]);
    await read();
    await read();
    expect(measured).toEqual([7]);
    shown.totals = [total(7, 2_000)];
    await read();
    expect(measured).toEqual([7, 7]);
  });

  it('measure runs for a second, and go on with the next scrape', async () => {
    const clock = new FakeClock();
    clock.creepMs = 400;
    const { read, measured } = metricsOf([total(1), total(2), total(3), total(4)], { clock });
    await read();
    expect(measured).toEqual([4, 3]);
    await read();
    expect(measured).toEqual([4, 3, 2, 1]);
  });

  it('have the other runs where one cannot be measured', async () => {
    const { read } = metricsOf([total(1), total(2)], { isBroken: true });
    const of = await read();
    expect(of('run_bridge_run_last_end_timestamp_seconds')).toHaveLength(2);
    expect(of('run_bridge_last_run_duration_seconds')).toEqual([]);
  });
});
