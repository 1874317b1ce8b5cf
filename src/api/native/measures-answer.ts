import { z } from 'zod';
import type { Redactor } from '../../redaction/redactor.js';
import { comparisonDocument, measuresDocument } from '../../run/measures/measures-document.js';
import { compareWithEarlier } from '../../run/measures/run-totals.js';
import type { CatalogStep, RunCatalog } from '../../storage/run-catalog.js';
import { RUN_STATUS } from '../../storage/state-tables.js';
import type { RunMeasures } from '../run-measures.js';
import type { FoundRun } from './run-finder.js';

/** Earlier runs that one is compared with. */
const MAX_EARLIER = 50;

const nano = z.string().meta({ description: 'nanoseconds since 1970, as a text of digits' });
const outcome = {
  outcome: z
    .string()
    .nullable()
    .meta({ description: "success, error, skipped, canceled, or a newer engine's own word" }),
  skip_reason: z.string().nullable(),
  skip_upstream: z.string().nullable(),
  test_outcome: z.enum(['passed', 'warned', 'failed']).nullable(),
  failing_rows: z.number().int().nullable(),
  freshness: z
    .object({ outcome: z.enum(['passed', 'warned', 'failed']), age_seconds: z.number().nullable() })
    .nullable(),
};
const counts = z.record(z.string(), z.number().int());
const verdict = z.string().meta({
  description:
    "success, warned, failed, error, canceled, skipped, unfinished, or a newer engine's own word for its outcome",
});
/** What of the command's length fell to something. */
const share = { share_ms: z.number(), share_percent: z.number() };
const nodeShare = { ...share, share_warehouse_ms: z.number() };

/** A node of a command; docs/reference/measures.md describes the source of each number. */
export const nodeSchema = z
  .object({
    unique_id: z.string(),
    node_type: z.string().nullable(),
    verdict,
    ...outcome,
    previous_status: z.enum(['success', 'error', 'skipped', 'pass', 'warn', 'fail']).nullable(),
    ...nodeShare,
    duration_ms: z.number().nullable(),
    idle_time_ms: z.number().nullable(),
    lifetime_ms: z.number().nullable(),
    warehouse_time_ms: z.number(),
    query_count: z.number().int(),
    rows: z.number().nullable(),
    message: z.string().nullable(),
    phases: z.array(
      z.object({
        phase: z.string(),
        ...outcome,
        start_time_unix_nano: nano,
        end_time_unix_nano: nano.nullable(),
        idle_time_ms: z.number().nullable(),
        lifetime_ms: z.number().nullable(),
        warehouse_time_ms: z.number(),
        rows: z.number().nullable(),
      }),
    ),
  })
  .meta({ id: 'NodeMeasures' });

export const commandSchema = z
  .object({
    trace_id: z.string(),
    invocation_id: z.string(),
    index: z.number().int(),
    command: z.string().nullable(),
    raw_command: z.string().nullable(),
    verdict: z.enum(['success', 'error', 'canceled', 'lost']).nullable(),
    status_message: z.string().nullable(),
    start_time_unix_nano: nano,
    end_time_unix_nano: nano,
    totals: z.object({
      length_ms: z.number(),
      node_count: z.number().int(),
      node_counts: counts,
      no_op_count: z.number().int(),
      hook_counts: counts,
      test_counts: counts,
      duration_ms: z.number(),
      idle_time_ms: z.number(),
      warehouse_time_ms: z.number(),
      other_warehouse_time_ms: z.number(),
      query_count: z.number().int(),
      rows: z.number(),
    }),
    split: z
      .object({
        nodes_ms: z.number(),
        unselected_nodes_ms: z.number(),
        hooks_ms: z.number(),
        other_queries_ms: z.number(),
        waits_ms: z.number(),
        phases_ms: z.number(),
        rest_ms: z.number(),
        warehouse_ms: z.number(),
      })
      .meta({ description: "what the command's length was spent on; all but warehouse_ms add up to it" }),
    parts: z
      .object({
        parse_ms: z.number(),
        compile_ms: z.number(),
        run_ms: z.number(),
        warehouse_ms: z.number(),
        threads_ms: z.number(),
        rest_ms: z.number(),
      })
      .meta({ description: 'where the time went: the same length, divided otherwise' }),
    concurrency: z
      .object({ peak: z.number().int(), average: z.number() })
      .nullable()
      .meta({ description: 'nodes that were worked on at a time; null where none was' }),
    phases: z.array(
      z.object({
        phase: z.string(),
        start_time_unix_nano: nano,
        end_time_unix_nano: nano.nullable(),
        ...share,
        span_time_ms: z.number(),
        node_count: z.number().int(),
        node_time_ms: z.number(),
        idle_time_ms: z.number(),
        warehouse_time_ms: z.number(),
      }),
    ),
    critical_path: z.object({
      follows: z.enum(['dependencies', 'times']),
      links: z.array(
        z.object({
          kind: z.string(),
          unique_id: z.string().nullable(),
          phase: z.string(),
          start_time_unix_nano: nano,
          basis: z.string().nullable(),
          wait_ms: z.number(),
          time_ms: z.number(),
          has_end: z.boolean(),
        }),
      ),
      tail_ms: z.number(),
    }),
    slowest_nodes: z
      .array(z.string())
      .meta({ description: 'the ten nodes without which the command would have been shortest' }),
    unselected_nodes: z
      .array(z.object({ unique_id: z.string(), ...nodeShare }))
      .meta({ description: 'nodes that were worked on though they were not selected; in no count' }),
    hooks: z.array(
      z.object({
        unique_id: z.string(),
        verdict,
        start_time_unix_nano: nano,
        end_time_unix_nano: nano.nullable(),
        ...nodeShare,
      }),
    ),
    omitted_node_count: z.number().int(),
    messages: z.array(z.string()),
  })
  .meta({ id: 'CommandMeasures' });

/** A length beside earlier ones. */
export const comparisonSchema = z.object({
  earlier_count: z.number().int(),
  median_ms: z.number(),
  p95_ms: z.number(),
  ratio: z.number().nullable(),
  is_slow: z.boolean(),
});

/** `data` of `GET /runs/{id}/measures`. */
export const measuresSchema = z.object({
  id: z.number().int(),
  comparison: z
    .object({ length_ms: z.number(), ...comparisonSchema.shape })
    .nullable()
    .meta({
      description:
        "the run's length beside those of at most 50 earlier successes of its project and job with the same commands",
    }),
  commands: z.array(commandSchema),
});

/** `data` of `GET /runs/{id}/nodes`. */
export const nodesSchema = z.array(
  nodeSchema.extend({ trace_id: z.string(), command_index: z.number().int(), command: z.string().nullable() }),
);

/**
 * Reads the measures of a run's commands, in their order. Of a trace that has commands of other runs too, those of the run alone.
 * @param redactor is taught the words of the run
 */
export async function commandMeasures(
  { steps }: FoundRun,
  { measures }: { readonly measures: Pick<RunMeasures, 'ofSteps'> },
  redactor: Redactor,
) {
  const measured = await measures.ofSteps(steps, redactor);
  return measured.map(({ traceId, command }) => measuresDocument(command, traceId));
}

/** Runs among which the earlier ones are looked for. */
const MAX_LOOKED_AT = 200;

/**
 * Compares a run's duration with earlier successful runs of its project and job with the same commands; `null` while it is running, and
 * if there are none.
 */
export async function comparisonOf(
  { run, steps }: FoundRun,
  { catalog }: { readonly catalog: RunCatalog },
): Promise<z.input<typeof measuresSchema>['comparison']> {
  if (run.startedUnixMs === null || run.finishedUnixMs === null) return null;
  const { items } = await catalog.listRuns(run.accountId, {
    statuses: [RUN_STATUS.success],
    jobId: run.job.id,
    createdRange: [0, run.createdUnixMs],
    orderBy: 'created',
    isDescending: true,
    limit: MAX_LOOKED_AT,
    offset: 0,
  });
  const before = items.filter(
    ({ id, startedUnixMs, project }) => id !== run.id && startedUnixMs !== null && project.id === run.project.id,
  );
  const theirs = await catalog.stepsOf(
    run.accountId,
    before.map(({ id }) => id),
  );
  const asked = commandsOf(steps);
  const earlier = before
    .filter(({ id }) => commandsOf(theirs.filter(({ runId }) => runId === id)) === asked)
    .slice(0, MAX_EARLIER);
  const lengths = earlier.map(({ startedUnixMs, finishedUnixMs }) => (finishedUnixMs ?? 0) - (startedUnixMs ?? 0));
  const comparison = compareWithEarlier(run.finishedUnixMs - run.startedUnixMs, lengths);
  return comparison && { length_ms: comparison.totalMs, ...comparisonDocument(comparison) };
}

/** Returns the first words of a run's engine commands after the program, such as `build`; of a step without any its program. */
function commandsOf(steps: readonly CatalogStep[]): string {
  return steps
    .flatMap(({ command, invocations }) =>
      invocations.length === 0
        ? [command[0] ?? '']
        : invocations.map(
            (one) => one.command?.split(' ').find((word, index) => index > 0 && !word.startsWith('-')) ?? '',
          ),
    )
    .join(' ');
}
