import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { until } from '../tool/until.js';
import type { CleanUp } from './clean-up.js';
import { ClusterReader } from './cluster-reader.js';
import { ClusterStage } from './cluster-stage.js';
import { ExpectedRuns } from './expected-runs.js';
import { Load } from './load.js';
import { auditParquet, type ParquetFigures } from './parquet-audit.js';
import { auditRecordLogs, type RecordLogFigures } from './record-log-audit.js';
import { RunPlan } from './run-plan.js';
import { SeededRandom } from './seeded-random.js';
import { type Tally, tally } from './tally.js';

/** How several processes are tried. */
export interface ClusterTrialOptions {
  /** The same seed gives the same load and the same kills, as far as the machine lets it. */
  readonly seed: number;
  /** Runs that are sent at least. */
  readonly runCount: number;
  readonly cleanUp: CleanUp;
  /** Does something to the processes, as long as something goes on at least. @returns what was done, in words */
  disturb(stage: ClusterStage, random: SeededRandom, isGoingOn: () => boolean): Promise<readonly string[]>;
}

/** What came of a trial of several processes. */
export interface ClusterFigures {
  readonly runCount: number;
  readonly resentCount: number;
  readonly refusals: readonly string[];
  readonly kills: readonly string[];
  /** How long it took after the last record until everything was stored, in milliseconds. */
  readonly drainMs: number;
  /** Of the logs in the bucket. */
  readonly log: RecordLogFigures;
  readonly parquet: ParquetFigures;
  readonly sinkSpans: Tally;
  readonly sinkLogs: Tally;
  /** Traces whose rows are not what they have to be, in words. */
  readonly problems: readonly string[];
  /** Messages whose records are not all stored, by what is committed. */
  readonly unreadCount: number;
  /** The list of runs as each process answers it: how many there are; and how many there have to be. */
  readonly listed: readonly number[];
  readonly commandCount: number;
  /** What processes answer of runs that is not what is stored, in words. */
  readonly wrongAnswers: readonly string[];
  /** What the processes said that is an error. */
  readonly errors: readonly string[];
}

/** Runs whose files are compared with what each process answers. */
const ASKED_RUNS = 5;
const ENGINES = 30;
/** Of a busy machine: what is behind is read, judged and stored one after the other. */
const DRAIN_MS = 240_000;

/** Three processes on one database and one bucket, which are disturbed while runs are sent whose bodies go to all of them in turn. */
export async function tryCluster({ seed, runCount, cleanUp, disturb }: ClusterTrialOptions): Promise<ClusterFigures> {
  const random = new SeededRandom(seed);
  const stage = await ClusterStage.start(seed + 1, cleanUp);
  const { processes, folder } = stage;
  const { client, sink, store } = stage.peers;

  const expected = new ExpectedRuns();
  const plan = new RunPlan(random);
  const gaps = new SeededRandom(seed + 2);
  let turn = 0;
  const load = new Load(plan, {
    port: () => processes[turn++ % processes.length]?.httpPort ?? 0,
    engines: ENGINES,
    gapMs: () => gaps.between(50, 900),
    onAcknowledged: (run, body) => expected.add(run, body),
  });
  load.start();
  const kills = await disturb(stage, random, () => plan.begunCount < runCount);
  await load.finish();
  const drainedMs = performance.now();
  const runs = expected.list;
  await until('the end of every run', async () => (await stage.openCount()) === 0, DRAIN_MS).catch(() => undefined);
  const drainMs = performance.now() - drainedMs;

  const problems: string[] = [];
  const { rows: unfinished } = await client.query(
    `select held.*, run.state, run.log_bytes, run.parquet_bytes, sent.traces_offset, sent.logs_offset, sent.finished_at_bytes
    from journal_traces held left join runs run on run.trace_id = held.trace_id
    left join export_cursors sent on sent.trace_id = held.trace_id
    where held.is_open = 1`,
  );
  for (const row of unfinished) problems.push(`not at its end: ${JSON.stringify(row)}`);
  for (const { webPort } of unfinished.length === 0 ? [] : processes) {
    problems.push(await (await fetch(`http://127.0.0.1:${webPort}/readyz?verbose`)).text());
  }
  const stored = join(folder, 'stored');
  for (const { traceId, verdicts } of runs) {
    const { rows } = await client.query('select name, object_key from journal_files where trace_id = $1', [traceId]);
    mkdirSync(join(stored, 'runs', traceId), { recursive: true });
    writeFileSync(join(stored, 'runs', traceId, 'telemetry.jsonl'), '');
    for (const { name, object_key } of rows) {
      writeFileSync(join(stored, 'runs', traceId, name), (await store.get(object_key)) ?? '');
    }
    const keys = await store.list(`runs/${traceId}/`);
    if (keys.length !== rows.length) problems.push(`${traceId}: ${keys.length} objects for ${rows.length} files`);
    problems.push(...(await judge(client, traceId, verdicts)));
  }
  const listed: number[] = [];
  const wrongAnswers: string[] = [];
  for (const { webPort } of processes) {
    const reader = new ClusterReader(webPort, stage.adminToken());
    listed.push(await reader.countRuns());
    for (const { traceId } of runs.slice(0, ASKED_RUNS)) {
      wrongAnswers.push(...(await reader.compare(traceId, join(stored, 'runs', traceId))));
    }
    const queried = await reader.countQueried();
    if (queried !== runs.length) wrongAnswers.push(`SQL over ${queried} runs of ${runs.length}`);
  }
  const figures = {
    commandCount: runs.reduce((sum, { verdicts }) => sum + verdicts.length, 0),
    wrongAnswers,
    ...{ runCount: runs.length, resentCount: load.resentCount, refusals: load.refusals, kills, drainMs, problems },
    log: auditRecordLogs(stored, runs),
    parquet: await auditParquet(stored, runs),
    sinkSpans: tally(expected.spans, sink.spans),
    sinkLogs: tally(expected.logs, sink.logs),
    unreadCount: await stage.peers.kafka.lag('run-bridge', ['otlp_spans', 'otlp_logs']),
    listed,
    errors: processes.flatMap(({ victim }) => victim.log.split('\n').filter((line) => /"level":"error"/.test(line))),
  };
  for (const { victim } of processes) await victim.end('SIGTERM');
  return figures;
}

/** What the rows of a trace's run say that is not so. */
async function judge(client: pg.Client, traceId: string, verdicts: readonly string[]): Promise<readonly string[]> {
  const { rows: runs } = await client.query('select state, log_bytes, parquet_bytes from runs where trace_id = $1', [
    traceId,
  ]);
  const { rows: commands } = await client.query(
    `select command.verdict, command.is_saved, count(run.id)::int as run_count
    from invocations command left join execution_steps step on step.step_id = command.step_id
    left join executions run on run.id = step.execution_id
    where command.trace_id = $1 group by command.invocation_index, command.verdict, command.is_saved`,
    [traceId],
  );
  const problems: string[] = [];
  const [run] = runs;
  if (run?.state !== 'finished' || run.log_bytes !== run.parquet_bytes) problems.push(`row ${JSON.stringify(run)}`);
  const found = commands.map(({ verdict }) => String(verdict)).sort();
  if (JSON.stringify(found) !== JSON.stringify(verdicts)) problems.push(`verdicts ${found}, not ${verdicts}`);
  if (commands.some(({ is_saved, run_count }) => Number(is_saved) !== 1 || run_count !== 1)) {
    problems.push(`commands ${JSON.stringify(commands)}`);
  }
  return problems.map((problem) => `${traceId}: ${problem}`);
}
