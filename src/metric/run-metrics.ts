import type { Clock } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { groupBy } from '../core/lists.js';
import type { Logger } from '../core/logger.js';
import { shareMs } from '../run/measures/compare-commands.js';
import { criticalWorkNano } from '../run/measures/critical-path.js';
import type { CommandMeasures } from '../run/measures/run-totals.js';
import type { NodeVerdict } from '../run/verdict.js';
import type { RunCatalog } from '../storage/run-catalog.js';
import { DURATION_BOUNDS, type ExampleRun, type RunTotal, type RunTotalsStore } from '../storage/run-totals.js';
import { isFinal, RUN_STATUS } from '../storage/state-tables.js';
import type { Example, MetricSource, Sample } from './samples.js';

/** What metrics of runs are read from. */
export interface RunMetricsDeps {
  readonly totals: Pick<RunTotalsStore, 'read' | 'names' | 'examples'>;
  readonly catalog: Pick<RunCatalog, 'stepsOf'>;
  readonly measures: {
    ofSteps(
      steps: Awaited<ReturnType<RunCatalog['stepsOf']>>,
    ): Promise<readonly { readonly command: CommandMeasures }[]>;
  };
  /** The nodes of each job that have a metric of their own; 0 for none. */
  readonly maxNodes: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Jobs with metrics; of more, those without a later run are left out. */
const MAX_JOBS = 500;
/** How long a scrape measures runs that were not measured yet, in milliseconds; the next scrape goes on. */
const MEASURING_MS = 1_000;

/** The labels of a job's metrics. */
type JobLabels = Readonly<Record<'account' | 'project' | 'environment' | 'cicd_pipeline_name', string>>;

/** `cicd.pipeline.result` of a status: https://opentelemetry.io/docs/specs/semconv/registry/attributes/cicd. */
const RESULTS = new Map<number, string>([
  [RUN_STATUS.success, 'success'],
  [RUN_STATUS.error, 'failure'],
  [RUN_STATUS.cancelled, 'cancellation'],
]);

/** Reads the metrics of runs: how often and how long each job ran, and what its last run that is over took. */
export class RunMetrics implements MetricSource {
  readonly name = 'runs';
  /** Samples of the last runs, by their ids and ends. */
  private measured = new Map<string, readonly Sample[]>();

  constructor(private readonly deps: RunMetricsDeps) {}

  async read(): Promise<readonly Sample[]> {
    const { totals } = this.deps;
    const names = await totals.names();
    const byJob = groupBy(await totals.read(), ({ accountId, projectId, environmentId, jobId }) =>
      [accountId, projectId, environmentId, jobId].join(),
    );
    const jobs = [...byJob.values()].toSorted((one, other) => lastStart(other) - lastStart(one));
    const shown = jobs.slice(0, MAX_JOBS);
    const latest = shown.flat().flatMap(({ latestRunId }) => (latestRunId === 0 ? [] : [latestRunId]));
    const examples = new Map((await totals.examples(latest)).map((run) => [run.runId, run]));
    const samples: Sample[] = [{ name: 'run_bridge_left_out_jobs', value: jobs.length - shown.length, labels: {} }];
    const lastRuns: LastRun[] = [];
    for (const ofJob of shown) {
      const [{ accountId, projectId, environmentId, jobId }] = ofJob as [RunTotal];
      const labels: JobLabels = {
        account: String(accountId),
        project: names.projects.get(projectId) ?? '',
        environment: names.environments.get(environmentId) ?? '',
        cicd_pipeline_name: names.jobs.get(jobId) ?? '',
      };
      samples.push(...jobSamples(ofJob, labels, examples));
      const over = ofJob.filter(({ status }) => isFinal(status));
      const [last] = over.toSorted((one, other) => other.finishedUnixMs - one.finishedUnixMs);
      if (last !== undefined && last.latestRunId > 0) lastRuns.push({ ...last, labels });
    }
    return [...samples, ...(await this.lastRunSamples(lastRuns))];
  }

  /** Returns samples of the last runs; those that a scrape has no time to measure are left to the next. */
  private async lastRunSamples(lastRuns: readonly LastRun[]): Promise<readonly Sample[]> {
    const { clock } = this.deps;
    const since = clock.monotonicMs();
    const measured = new Map<string, readonly Sample[]>();
    for (const run of lastRuns) {
      // Records that came late may have changed how it ended.
      const key = [run.latestRunId, run.status, run.finishedUnixMs].join();
      const known = this.measured.get(key);
      if (known !== undefined) measured.set(key, known);
      else if (clock.monotonicMs() - since < MEASURING_MS) measured.set(key, await this.measure(run));
    }
    this.measured = measured;
    return [...measured.values()].flat();
  }

  private async measure({ latestRunId, accountId, labels }: LastRun): Promise<readonly Sample[]> {
    const { catalog, measures, maxNodes, logger } = this.deps;
    try {
      const steps = await catalog.stepsOf(accountId, [latestRunId]);
      const commands = (await measures.ofSteps(steps)).map(({ command }) => command);
      return runSamples(commands, labels, maxNodes);
    } catch (error) {
      logger.warn({ runId: latestRunId, reason: reasonOf(error) }, 'failed to measure a run; it has no metrics');
      return [];
    }
  }
}

/** The run of a job that ended last. */
interface LastRun extends RunTotal {
  readonly labels: JobLabels;
}

function lastStart(totals: readonly RunTotal[]): number {
  return Math.max(...totals.map(({ startedUnixMs }) => startedUnixMs));
}

function jobSamples(
  totals: readonly RunTotal[],
  labels: JobLabels,
  examples: ReadonlyMap<number, ExampleRun>,
): readonly Sample[] {
  const samples: Sample[] = [
    { name: 'run_bridge_run_last_start_timestamp_seconds', value: lastStart(totals) / 1_000, labels },
  ];
  const countOf = (status: number) =>
    sum(
      totals.filter((one) => one.status === status),
      ({ runCount }) => runCount,
    );
  const pending = countOf(RUN_STATUS.queued);
  const executing =
    sum(
      totals.filter(({ status }) => !isFinal(status)),
      ({ runCount }) => runCount,
    ) - pending;
  for (const [cicd_pipeline_run_state, value] of Object.entries({ pending, executing })) {
    samples.push({ name: 'cicd_pipeline_run_active', value, labels: { ...labels, cicd_pipeline_run_state } });
  }
  // The conventions' word for errors of a class that is not known.
  const error_type = '_OTHER';
  const errors = countOf(RUN_STATUS.error);
  samples.push({ name: 'cicd_pipeline_run_errors_total', value: errors, labels: { ...labels, error_type } });
  for (const [status, cicd_pipeline_result] of RESULTS) {
    const alike = totals.filter((one) => one.status === status);
    if (alike.length === 0) continue;
    const [last] = alike.toSorted((one, other) => other.finishedUnixMs - one.finishedUnixMs) as [RunTotal];
    const withResult = { ...labels, cicd_pipeline_result };
    const byBound = new Map(alike.map((one) => [one.boundSeconds, one]));
    const buckets = [...DURATION_BOUNDS, 0].map((bound) => byBound.get(bound));
    samples.push(
      { name: 'run_bridge_run_last_end_timestamp_seconds', value: last.finishedUnixMs / 1_000, labels: withResult },
      {
        name: 'cicd_pipeline_run_duration_seconds',
        value: {
          counts: buckets.map((one) => one?.runCount ?? 0),
          sum: sum(alike, ({ durationMs }) => durationMs) / 1_000,
          examples: buckets.map((one) => one && exampleOf(one, examples)),
        },
        labels: withResult,
      },
    );
    if (last.latestRunId > 0) {
      samples.push({ name: 'run_bridge_run_last_id', value: last.latestRunId, labels: withResult });
    }
  }
  return samples;
}

function exampleOf(total: RunTotal, examples: ReadonlyMap<number, ExampleRun>): Example | undefined {
  const run = examples.get(total.latestRunId);
  return run && { value: run.durationMs / 1_000, traceId: run.traceId, unixSeconds: total.finishedUnixMs / 1_000 };
}

/** Samples of a run's commands, summed up. */
function runSamples(commands: readonly CommandMeasures[], labels: JobLabels, maxNodes: number): readonly Sample[] {
  const nodes = commands.flatMap((command) => command.nodes);
  const seconds = (of: (command: CommandMeasures) => bigint) => sum(commands, (command) => Number(of(command))) / 1e9;
  const samples: Sample[] = [
    { name: 'run_bridge_last_run_duration_seconds', value: seconds(({ totals }) => totals.lengthNano), labels },
    {
      name: 'run_bridge_last_run_critical_path_seconds',
      value: seconds(({ criticalPath }) => criticalWorkNano(criticalPath)),
      labels,
    },
    {
      name: 'run_bridge_last_run_warehouse_seconds',
      value: seconds(({ totals }) => totals.warehouseTimeNano),
      labels,
    },
    {
      name: 'run_bridge_last_run_waiting_seconds',
      value: sum(commands, ({ totals }) => totals.idleTimeMs) / 1_000,
      labels,
    },
    { name: 'run_bridge_last_run_queries', value: sum(commands, ({ totals }) => totals.queryCount), labels },
    { name: 'run_bridge_last_run_affected_rows', value: sum(commands, ({ totals }) => totals.rows), labels },
    { name: 'run_bridge_last_run_failing_rows', value: sum(nodes, ({ failingRows }) => failingRows ?? 0), labels },
  ];
  const counts = new Map<string, { readonly type: string; readonly outcome: NodeVerdict; count: number }>();
  for (const { nodeType, verdict } of nodes) {
    const type = nodeType ?? 'unknown';
    const known = counts.get(`${type} ${verdict}`) ?? { type, outcome: verdict, count: 0 };
    known.count += 1;
    counts.set(`${type} ${verdict}`, known);
  }
  for (const { type, outcome, count } of counts.values()) {
    samples.push({ name: 'run_bridge_last_run_nodes', value: count, labels: { ...labels, type, outcome } });
  }
  const largest = nodes.toSorted((one, other) => shareMs(other) - shareMs(one)).slice(0, maxNodes);
  for (const [node, ofNode] of groupBy(largest, ({ uniqueId }) => uniqueId)) {
    const value = sum(ofNode, shareMs) / 1_000;
    samples.push({ name: 'run_bridge_last_run_node_seconds', value, labels: { ...labels, node } });
  }
  return samples;
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
