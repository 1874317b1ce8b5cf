import type { METRICS } from '../src/metric/metrics.js';
import type { MetricName } from '../src/metric/samples.js';
import { type Column, type Dashboard, documentOf, type Link, PAGES, type Variable } from './grafana-model.js';

type Labels<N extends MetricName> = (typeof METRICS)[N]['labels'][number];
type Matchers<N extends MetricName> = Partial<Record<Labels<N>, string>>;

/** Dashboards of Grafana as JSON, by the names of their files. All names of metrics and labels are those of the table of metrics: one that is renamed there is an error of types here. */
export function grafanaDashboards(): Readonly<Record<string, string>> {
  const all = { runs: RUNS, run: LAST_RUN, models: MODELS, tests: TESTS, bridge: BRIDGE };
  return Object.fromEntries(
    Object.entries(all).map(([name, one]) => [`${name}.json`, `${JSON.stringify(documentOf(one), null, 2)}\n`]),
  );
}

/** Writes a selector. @param matchers regular expressions, and variables of the dashboard */
function series<N extends MetricName>(name: N, matchers: Matchers<N> = {}, suffix = ''): string {
  const texts = Object.entries(matchers).map(([label, text]) => `${label}=~"${text}"`);
  return `${name}${suffix}{${texts.join()}}`;
}

/** What a job's metrics are told apart by. */
const JOB = ['account', 'project', 'environment', 'cicd_pipeline_name'] as const;
const JOB_TEXT = JOB.join(', ');
const SHOWN = { environment: '$environment', cicd_pipeline_name: '$job' };
type JobMetric = { [N in MetricName]: (typeof JOB)[number] extends Labels<N> ? N : never }[MetricName];

/** Selects metrics of the jobs that are shown, each once: of several processes each has them, and they may be pushed as well. */
function ofJobs<N extends JobMetric>(name: N, matchers: Matchers<N> = {}, ...more: readonly Labels<N>[]): string {
  const labels = [...JOB, ...more].join(', ');
  return `max by (${labels}) (${series(name, { ...SHOWN, ...matchers } as Matchers<N>)})`;
}

const TEST_TYPES = 'test|unit_test';
const JOB_COLUMN: Column = {
  field: 'cicd_pipeline_name',
  title: 'Job',
  links: [
    {
      title: 'Its last run',
      url: `/d/run-bridge-run?var-job=\${__value.text}&var-environment=\${__data.fields.environment}`,
    },
  ],
};
const ENVIRONMENT_COLUMN: Column = { field: 'environment', title: 'Environment' };
const RUN_LINKS: readonly Link[] = [{ title: 'Page of the run', url: `${PAGES}/runs/\${__value.raw}` }];
const NODE_LINKS: readonly Link[] = [{ title: 'Its history', url: `${PAGES}/models?node=\${__value.text}` }];

const IDS = ofJobs('run_bridge_run_last_id', {}, 'cicd_pipeline_result');
const LAST_ENDS = lastEnds();
const LAST_IDS = `${IDS} and on (${JOB_TEXT}, cicd_pipeline_result) ${LAST_ENDS}`;
const DURATION = ofJobs('run_bridge_last_run_duration_seconds');
/** Runs of all results: the counts of each result are added, once for all processes that have them. */
const DURATIONS = `sum by (le, ${JOB_TEXT}) (max by (le, ${JOB_TEXT}, cicd_pipeline_result) (${series('cicd_pipeline_run_duration_seconds', SHOWN, '_bucket')}))`;
const JOB_LEGEND = '{{cicd_pipeline_name}} · {{environment}}';

const JOBS: readonly Variable[] = variables(true);

const RUNS: Dashboard = {
  uid: 'run-bridge-runs',
  title: 'Runs',
  description: 'How the runs of all jobs went',
  from: 'now-24h',
  variables: JOBS,
  panels: [
    {
      title: 'How many jobs failed last?',
      type: 'stat',
      size: [5, 5],
      queries: [{ expr: `count(${lastEnds('failure')}) or vector(0)` }],
      unit: 'none',
      redFrom: 1,
    },
    {
      title: 'How many runs are under way?',
      type: 'stat',
      size: [5, 5],
      queries: [
        {
          expr: `sum by (cicd_pipeline_run_state) (${ofJobs('cicd_pipeline_run_active', {}, 'cicd_pipeline_run_state')})`,
          legend: '{{cicd_pipeline_run_state}}',
        },
      ],
      unit: 'none',
    },
    {
      title: 'How many runs ended, and how?',
      type: 'timeseries',
      size: [14, 5],
      queries: [
        {
          expr: `sum by (cicd_pipeline_result) (max by (${JOB_TEXT}, cicd_pipeline_result) (increase(${series('cicd_pipeline_run_duration_seconds', SHOWN, '_count')}[$__rate_interval])))`,
          legend: '{{cicd_pipeline_result}}',
        },
      ],
      unit: 'none',
    },
    {
      title: 'How did the last run of each job end?',
      type: 'table',
      size: [12, 9],
      queries: [{ expr: `${LAST_ENDS} * 1000` }, { expr: LAST_IDS }],
      unit: 'none',
      columns: [
        JOB_COLUMN,
        ENVIRONMENT_COLUMN,
        { field: 'cicd_pipeline_result', title: 'Result' },
        { field: 'Value #A', title: 'Ended', unit: 'dateTimeFromNow' },
        { field: 'Value #B', title: 'Run', links: RUN_LINKS },
      ],
      sortBy: 'Ended',
    },
    {
      title: 'Which run of each job failed last?',
      type: 'table',
      size: [12, 9],
      queries: [
        {
          expr: `${ofJobs('run_bridge_run_last_end_timestamp_seconds', { cicd_pipeline_result: 'failure' })} * 1000`,
        },
        { expr: ofJobs('run_bridge_run_last_id', { cicd_pipeline_result: 'failure' }) },
      ],
      unit: 'none',
      columns: [
        JOB_COLUMN,
        ENVIRONMENT_COLUMN,
        { field: 'Value #A', title: 'Failed', unit: 'dateTimeFromNow' },
        { field: 'Value #B', title: 'Run', links: RUN_LINKS },
      ],
      sortBy: 'Failed',
    },
    {
      title: 'How long do runs take? (a point leads to the trace and the page of a run)',
      type: 'timeseries',
      size: [14, 9],
      queries: [
        { expr: DURATION, legend: `last run of ${JOB_LEGEND}` },
        {
          expr: `histogram_quantile(0.95, ${DURATIONS})`,
          legend: `95 % of runs of ${JOB_LEGEND}`,
          hasExemplars: true,
        },
      ],
      unit: 's',
    },
    {
      title: 'Which jobs have not started for longest?',
      type: 'table',
      size: [10, 9],
      queries: [{ expr: `time() - ${ofJobs('run_bridge_run_last_start_timestamp_seconds')}` }],
      unit: 's',
      columns: [JOB_COLUMN, ENVIRONMENT_COLUMN, { field: 'Value', title: 'Not started for' }],
      sortBy: 'Not started for',
    },
    {
      title: 'Which alerts fire?',
      type: 'table',
      size: [24, 7],
      queries: [
        {
          expr: `max by (alertname, cicd_pipeline_name, environment, check, destination, name) (ALERTS{alertstate="firing"})`,
        },
      ],
      unit: 'none',
      columns: [
        { field: 'alertname', title: 'Alert' },
        JOB_COLUMN,
        ENVIRONMENT_COLUMN,
        { field: 'check', title: 'Part' },
        { field: 'destination', title: 'Destination' },
        { field: 'name', title: 'Webhook' },
      ],
    },
  ],
};

const NODES = ofJobs('run_bridge_last_run_nodes', {}, 'type', 'outcome');

const LAST_RUN: Dashboard = {
  uid: 'run-bridge-run',
  title: 'One run',
  description: 'The last run of a job that is over',
  from: 'now-24h',
  variables: variables(false),
  panels: ofOneJob([
    {
      title: 'Which run is it? (its number leads to its page)',
      type: 'stat',
      size: [6, 5],
      queries: [{ expr: LAST_IDS, legend: '{{cicd_pipeline_result}}' }],
      unit: 'none',
      links: RUN_LINKS,
    },
    {
      title: 'How long did it take, and how long is its critical path?',
      type: 'stat',
      size: [9, 5],
      queries: [
        { expr: DURATION, legend: 'duration' },
        { expr: ofJobs('run_bridge_last_run_critical_path_seconds'), legend: 'critical path' },
      ],
      unit: 's',
    },
    {
      title: 'What did its threads do?',
      type: 'stat',
      size: [9, 5],
      queries: [
        { expr: ofJobs('run_bridge_last_run_warehouse_seconds'), legend: 'queries' },
        { expr: ofJobs('run_bridge_last_run_waiting_seconds'), legend: 'waiting' },
      ],
      unit: 's',
    },
    {
      title: 'What became of its nodes?',
      type: 'table',
      size: [8, 10],
      queries: [{ expr: NODES }],
      unit: 'none',
      columns: [
        { field: 'type', title: 'Type' },
        { field: 'outcome', title: 'Outcome' },
        { field: 'Value', title: 'Nodes' },
      ],
      sortBy: 'Nodes',
    },
    {
      title: 'Which nodes took its time?',
      type: 'table',
      size: [16, 10],
      queries: [{ expr: ofJobs('run_bridge_last_run_node_seconds', {}, 'node') }],
      unit: 's',
      columns: [
        { field: 'node', title: 'Node', links: NODE_LINKS },
        { field: 'Value', title: 'Share of the duration' },
      ],
      sortBy: 'Share of the duration',
    },
    {
      title: 'How much did it do?',
      type: 'stat',
      size: [8, 8],
      queries: [
        { expr: ofJobs('run_bridge_last_run_queries'), legend: 'queries' },
        { expr: ofJobs('run_bridge_last_run_affected_rows'), legend: 'rows changed' },
        { expr: ofJobs('run_bridge_last_run_failing_rows'), legend: 'rows that failed tests' },
      ],
      unit: 'short',
    },
    {
      title: 'How long did the runs before it take? (a point leads to the trace and the page of a run)',
      type: 'timeseries',
      size: [16, 8],
      queries: [
        { expr: DURATION, legend: 'duration' },
        {
          expr: `histogram_quantile(0.5, ${DURATIONS})`,
          legend: 'half of all runs',
          hasExemplars: true,
        },
      ],
      unit: 's',
    },
  ]),
};

const SHARE = ofJobs('run_bridge_last_run_node_seconds', {}, 'node');
const USUAL_SHARE = `max by (${JOB_TEXT}, node) (quantile_over_time(0.5, ${series('run_bridge_last_run_node_seconds', SHOWN)}[7d]))`;

const MODELS: Dashboard = {
  uid: 'run-bridge-models',
  title: 'Models that slow down',
  description: 'What of the duration of runs falls to which model, and how that changes; node-metrics says of how many',
  from: 'now-7d',
  variables: JOBS,
  panels: [
    {
      title: 'Which models take more of a run than in the last 7 days?',
      type: 'table',
      size: [24, 10],
      queries: [{ expr: SHARE }, { expr: USUAL_SHARE }, { expr: `${SHARE} - ${USUAL_SHARE}` }],
      unit: 's',
      columns: [
        { field: 'node', title: 'Node', links: NODE_LINKS },
        JOB_COLUMN,
        ENVIRONMENT_COLUMN,
        { field: 'Value #A', title: 'Last run' },
        { field: 'Value #B', title: 'Usually' },
        { field: 'Value #C', title: 'Slower by' },
      ],
      sortBy: 'Slower by',
    },
    {
      title: 'How much of a run does each of the slowest take?',
      type: 'timeseries',
      size: [24, 10],
      queries: [{ expr: `topk(10, ${SHARE})`, legend: '{{node}}' }],
      unit: 's',
    },
    {
      title: 'Do runs wait for the warehouse, or for threads?',
      type: 'timeseries',
      size: [24, 8],
      queries: [
        { expr: ofJobs('run_bridge_last_run_warehouse_seconds'), legend: `queries of ${JOB_LEGEND}` },
        { expr: ofJobs('run_bridge_last_run_waiting_seconds'), legend: `waiting in ${JOB_LEGEND}` },
      ],
      unit: 's',
    },
  ],
};

const BAD_TESTS = ofJobs('run_bridge_last_run_nodes', { type: TEST_TYPES, outcome: 'failed|error' }, 'type', 'outcome');

const TESTS: Dashboard = {
  uid: 'run-bridge-tests',
  title: 'Test health',
  description: 'Which jobs have tests that fail, and since when',
  from: 'now-7d',
  variables: JOBS,
  panels: [
    {
      title: 'How many tests failed in the last runs?',
      type: 'stat',
      size: [6, 8],
      queries: [{ expr: `sum(${BAD_TESTS}) or vector(0)` }],
      unit: 'none',
      redFrom: 1,
    },
    {
      title: 'Which jobs have failing tests?',
      type: 'table',
      size: [18, 8],
      queries: [
        { expr: `sum by (${JOB_TEXT}) (${BAD_TESTS})` },
        { expr: ofJobs('run_bridge_last_run_failing_rows') },
        { expr: `max by (${JOB_TEXT}) (${LAST_IDS})` },
      ],
      unit: 'none',
      columns: [
        JOB_COLUMN,
        ENVIRONMENT_COLUMN,
        { field: 'Value #A', title: 'Failed tests' },
        { field: 'Value #B', title: 'Rows that failed' },
        { field: 'Value #C', title: 'Run', links: RUN_LINKS },
      ],
      sortBy: 'Failed tests',
    },
    {
      title: 'Since when do tests fail?',
      type: 'timeseries',
      size: [24, 9],
      queries: [{ expr: `sum by (${JOB_TEXT}) (${BAD_TESTS})`, legend: JOB_LEGEND }],
      unit: 'none',
    },
    {
      title: 'How did the tests of the last runs end?',
      type: 'timeseries',
      size: [12, 9],
      queries: [
        {
          expr: `sum by (outcome) (${ofJobs('run_bridge_last_run_nodes', { type: TEST_TYPES }, 'type', 'outcome')})`,
          legend: '{{outcome}}',
        },
      ],
      unit: 'none',
    },
    {
      title: 'How many rows fail tests?',
      type: 'timeseries',
      size: [12, 9],
      queries: [{ expr: ofJobs('run_bridge_last_run_failing_rows'), legend: JOB_LEGEND }],
      unit: 'short',
    },
  ],
};

const BRIDGE: Dashboard = {
  uid: 'run-bridge-bridge',
  title: 'The bridge',
  description: 'Whether run-bridge itself does its work',
  from: 'now-6h',
  variables: [],
  panels: [
    {
      title: 'Is every part ready?',
      type: 'bargauge',
      size: [8, 8],
      queries: [{ expr: `min by (check) (${series('run_bridge_check_ready')})`, legend: '{{check}}' }],
      unit: 'none',
    },
    {
      title: 'What comes in?',
      type: 'timeseries',
      size: [8, 8],
      queries: [
        {
          expr: `sum by (signal) (rate(${series('run_bridge_receiver_accepted_items_total')}[$__rate_interval]))`,
          legend: '{{signal}}',
        },
      ],
      unit: 'cps',
    },
    {
      title: 'What is refused, and why?',
      type: 'timeseries',
      size: [8, 8],
      queries: [
        {
          expr: `sum by (reason) (rate(${series('run_bridge_receiver_refused_requests_total')}[$__rate_interval]))`,
          legend: '{{reason}}',
        },
      ],
      unit: 'reqps',
    },
    {
      title: 'Do destinations keep up?',
      type: 'timeseries',
      size: [8, 8],
      queries: [
        {
          expr: `max by (destination) (${series('run_bridge_destination_oldest_unsent_age_seconds')})`,
          legend: 'behind in {{destination}}',
        },
      ],
      unit: 's',
    },
    {
      title: 'What do destinations take, and what not?',
      type: 'timeseries',
      size: [8, 8],
      queries: (
        [
          ['run_bridge_destination_sent_items_total', 'taken'],
          ['run_bridge_destination_refused_items_total', 'refused'],
          ['run_bridge_destination_given_up_items_total', 'given up'],
        ] as const
      ).map(([name, word]) => ({
        expr: `sum by (destination) (rate(${series(name)}[$__rate_interval]))`,
        legend: `${word} by {{destination}}`,
      })),
      unit: 'cps',
    },
    {
      title: 'Do webhooks get through?',
      type: 'timeseries',
      size: [8, 8],
      queries: [
        {
          expr: `max by (subscription) (${series('run_bridge_webhook_oldest_pending_age_seconds')})`,
          legend: 'waiting for {{subscription}}',
        },
      ],
      unit: 's',
    },
    {
      title: 'Is there enough memory?',
      type: 'timeseries',
      size: [8, 8],
      queries: [
        { expr: series('run_bridge_memory_used_bytes'), legend: 'used by {{instance}}' },
        { expr: `max(${series('run_bridge_memory_limit_bytes')})`, legend: 'max-memory' },
      ],
      unit: 'bytes',
    },
    {
      title: 'Is there enough room on the disk?',
      type: 'timeseries',
      size: [8, 8],
      queries: [
        { expr: series('run_bridge_disk_free_bytes'), legend: 'free for {{instance}}' },
        { expr: `max(${series('run_bridge_disk_reserve_bytes')})`, legend: 'reserve' },
      ],
      unit: 'bytes',
    },
    {
      title: 'Do builders keep up? (several processes)',
      type: 'timeseries',
      size: [8, 8],
      queries: [
        {
          expr: `max by (instance) (${series('run_bridge_builder_oldest_uncommitted_age_seconds')})`,
          legend: 'behind on {{instance}}',
        },
      ],
      unit: 's',
    },
  ],
};

/** Jobs and environments to choose from; of one run, one each. */
function variables(isMulti: boolean): readonly Variable[] {
  const metric = 'run_bridge_run_last_start_timestamp_seconds';
  return [
    { name: 'job', title: 'Job', metric, label: 'cicd_pipeline_name' satisfies Labels<typeof metric>, isMulti },
    {
      name: 'environment',
      title: 'Environment',
      metric,
      label: 'environment' satisfies Labels<typeof metric>,
      isMulti,
    },
  ];
}

/** Selects the one job that is chosen by its very name: Grafana escapes names for `=~` only where several can be chosen. */
function ofOneJob(panels: Dashboard['panels']): Dashboard['panels'] {
  return panels.map((panel) => ({
    ...panel,
    queries: panel.queries.map((query) => ({ ...query, expr: query.expr.replaceAll('=~"$', '="$') })),
  }));
}

/** When the last run of each job ended, with its result. @param result only of those that ended so */
function lastEnds(result = '.+'): string {
  const name = 'run_bridge_run_last_end_timestamp_seconds';
  const ends = ofJobs(name, { cicd_pipeline_result: result }, 'cicd_pipeline_result');
  return `(${ends} == on (${JOB_TEXT}) group_left () ${ofJobs(name)})`;
}
