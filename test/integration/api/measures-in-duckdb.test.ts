import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { beforeAll, describe, expect, it } from 'vitest';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import { type CommandMeasures, compareWithEarlier } from '../../../src/run/measures/run-totals.js';
import { sampleFolder } from '../../fake/sample-run.js';
import { fromJsonl, fromOtlp } from '../../unit/run/logged-samples.js';
import { measuresOf } from '../../unit/run/measures/sample-measures.js';

let duckdb: DuckDBConnection;
beforeAll(async () => {
  duckdb = await (await DuckDBInstance.create(':memory:')).connect();
});

async function rows(sql: string): Promise<readonly unknown[]> {
  return (await duckdb.runAndReadAll(sql)).getRowObjectsJson();
}

const NANO = 'epoch_ns(end_time_unix_nano) - epoch_ns(start_time_unix_nano)';
const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);

/** A sample, its Parquet, and which of its commands that is of. */
const CASES: readonly (readonly [string, string, number])[] = [
  ['build-mixed', 'otel.parquet', 0],
  ['build-mixed-fusion', 'otel.parquet', 0],
  ['build-clean', 'otel.parquet', 0],
  ['joined', 'otel.parquet', 0],
  ['overlapping', 'otel-a.parquet', 0],
  ['big-build', 'otel.parquet', 0],
];

describe.each(CASES)('of the sample %s, %s', (run, file, index) => {
  const measuresOfCase = async (records: readonly LoggedRecord[]): Promise<CommandMeasures> => {
    // Which command of two is seen first differs between JSONL and OTLP.
    const commands = [...(await measuresOf(records))].sort((a) => (a.invocation.verdict === 'success' ? -1 : 1));
    const command = commands[index];
    if (command === undefined) throw new Error(`no command ${index} in ${run}`);
    return command;
  };
  const ends = `from '${join(sampleFolder(run), file)}' where record_type = 'SpanEnd' and event_type like`;

  it('nodes are what DuckDB finds in the NodeProcessed rows of its Parquet', async () => {
    const { nodes } = await measuresOfCase(fromJsonl(run));
    const expected = await rows(`
      select attributes.unique_id as id,
        attributes.duration_ms::varchar as duration_ms,
        attributes.json_payload->>'$.idle_time_ms' as idle,
        attributes.rows_affected::varchar as rows,
        (${NANO})::varchar as lifetime,
        attributes.json_payload->>'$.node_outcome_detail.NodeSkipUpstreamDetail.upstream_unique_id' as upstream,
        case
          when attributes.node_outcome = 'NODE_OUTCOME_ERROR' then 'error'
          when attributes.node_skip_reason = 'NODE_SKIP_REASON_UPSTREAM' then 'skipped'
          when attributes.node_outcome <> 'NODE_OUTCOME_SUCCESS' then null
          when attributes.node_type not in ('NODE_TYPE_TEST', 'NODE_TYPE_UNIT_TEST') then 'success'
          when attributes.json_payload like '%TEST_OUTCOME_FAILED%' then 'fail'
          when attributes.json_payload like '%TEST_OUTCOME_WARNED%' then 'warn'
          else 'pass' end as status
      ${ends} '%.NodeProcessed' order by id`);
    const found = nodes.map((node) => ({
      id: node.uniqueId,
      duration_ms: node.durationMs === null ? null : String(node.durationMs),
      idle: node.idleTimeMs === null ? null : String(node.idleTimeMs),
      rows: node.rows === null ? null : String(node.rows),
      lifetime: String(node.lifetimeNano),
      upstream: node.skipUpstream,
      status: node.previousStatus,
    }));
    expect(found.sort(byId)).toEqual(expected);
    expect(found.length).toBeGreaterThan(5);
  });

  it('nodes in their phases are what DuckDB finds in the NodeEvaluated rows', async () => {
    const { nodes, phases } = await measuresOfCase(fromJsonl(run));
    const expected = await rows(`
      select attributes.unique_id || ' ' || attributes.phase as id, (${NANO})::varchar as lifetime,
        attributes.rows_affected::varchar as rows, lower(replace(attributes.node_outcome, 'NODE_OUTCOME_', '')) as outcome
      ${ends} '%.NodeEvaluated' order by id`);
    const found = nodes.flatMap(({ uniqueId, phases }) =>
      phases.map(({ phase, lifetimeNano, rows, outcome }) => ({
        id: `${uniqueId} EXECUTION_PHASE_${phase}`,
        lifetime: String(lifetimeNano),
        rows: rows === null ? null : String(rows),
        outcome,
      })),
    );
    expect(found.sort(byId)).toEqual(expected);
    const phaseRows = await rows(`
      select replace(attributes.phase, 'EXECUTION_PHASE_', '') as phase, sum(${NANO})::varchar as nano
      ${ends} '%.PhaseExecuted' group by all order by min(start_time_unix_nano)`);
    expect(
      phases
        .filter(({ endTimeUnixNano }) => endTimeUnixNano !== null)
        .map(({ phase, spanTimeNano }) => ({ phase, nano: String(spanTimeNano) })),
    ).toEqual(phaseRows);
  });

  it('warehouse time is the sum of QueryExecuted spans, by node and in all', async () => {
    const { nodes, totals } = await measuresOfCase(fromJsonl(run));
    const expected = await rows(`
      select attributes.unique_id as id, count(*)::varchar as queries, sum(${NANO})::varchar as nano
      ${ends} '%.QueryExecuted' and attributes.unique_id not like 'operation.%' group by all order by id`);
    const found = nodes
      .filter(({ queryCount }) => queryCount > 0)
      .map(({ uniqueId, queryCount, warehouseTimeNano }) => ({
        id: uniqueId,
        queries: String(queryCount),
        nano: String(warehouseTimeNano),
      }));
    expect(found.sort(byId)).toEqual(expected);
    expect([{ queries: String(totals.queryCount), nano: String(totals.warehouseTimeNano) }]).toEqual(
      await rows(`select count(*)::varchar as queries, sum(${NANO})::varchar as nano ${ends} '%.QueryExecuted'`),
    );
    const inPhases = nodes.flatMap(({ phases }) => phases).reduce((sum, phase) => sum + phase.warehouseTimeNano, 0n);
    expect(inPhases).toBe(nodes.reduce((sum, node) => sum + node.warehouseTimeNano, 0n));
  });

  it('they are the same of the run as it came over OTLP', async () => {
    const command = await measuresOfCase(fromOtlp(run));
    const { nodes, totals } = await measuresOfCase(fromJsonl(run));
    expect(command.totals).toEqual(totals);
    expect(command.nodes).toEqual(nodes);
  });
});

it('median and 95th percentile are those of DuckDB', async () => {
  const lengths = [812, 640.5, 655, 1_290, 633, 700, 701.25];
  const list = lengths.map((ms) => `(${ms}::double)`).join(', ');
  const [expected] = await rows(
    `select median(ms) as median, quantile_cont(ms, 0.95) as p95 from (values ${list}) lengths(ms)`,
  );
  const comparison = compareWithEarlier(900, lengths);
  expect({ median: comparison?.medianMs, p95: comparison?.p95Ms }).toEqual(expected);
});
