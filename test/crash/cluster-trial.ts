import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { subscribe } from '../tool/subscribe.js';
import { until } from '../tool/until.js';
import { auditEvents, type EventFigures } from './audit-deliveries.js';
import type { CleanUp } from './clean-up.js';
import { ClusterReader } from './cluster-reader.js';
import { ClusterStage } from './cluster-stage.js';
import { ExpectedRuns } from './expected-runs.js';
import { FlakyReceiver } from './flaky-receiver.js';
import { Load } from './load.js';
import { auditParquet, type ParquetFigures } from './parquet-audit.js';
import { auditRecordLogs, type RecordLogFigures } from './record-log-audit.js';
import { RunPlan } from './run-plan.js';
import { SeededRandom } from './seeded-random.js';
import { type Tally, tally } from './tally.js';
import type { WriteFigures } from './write-history.js';

/** How several processes are tried. */
export interface ClusterTrialOptions {
  /** The same seed gives the same load and the same disturbances, as far as the machine lets it. */
  readonly seed: number;
  readonly cleanUp: CleanUp;
  /** Processes that only receive; default 0: those that build runs receive, too. */
  readonly receiverCount?: number;
  readonly load: ClusterLoad;
  /** Does something to the processes, as long as something goes on at least. @returns what was done, in words */
  disturb(stage: ClusterStage, random: SeededRandom, isGoingOn: () => boolean): Promise<readonly string[]>;
}

/** What is sent. */
export interface ClusterLoad {
  /** Runs that are sent at least. */
  readonly runCount: number;
  /** Kinds of runs, as a `RunPlan` takes them; all small ones where left out. */
  readonly samples?: readonly string[];
  /** How long each run takes about, in milliseconds, where all are sent at once; else a number of engines sends one run after the other. */
  readonly atOnceMs?: number;
}

/** What came of a trial of several processes. */
export interface ClusterFigures {
  readonly runCount: number;
  readonly resentCount: number;
  readonly refusals: readonly string[];
  readonly disturbances: readonly string[];
  /** How long it took after the last record until everything was stored, in milliseconds. */
  readonly drainMs: number;
  /** Of the logs in the bucket. */
  readonly log: RecordLogFigures;
  readonly parquet: ParquetFigures;
  readonly sinkSpans: Tally;
  readonly sinkLogs: Tally;
  /** Traces whose rows are not what they have to be, objects that nobody needs, and processes that have ended, in words. */
  readonly problems: readonly string[];
  readonly webhooks: EventFigures;
  /** Attempts to deliver them. */
  readonly attemptCount: number;
  readonly writes: WriteFigures;
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
const MAX_RETRY_MS = 1_000;
/** Of a busy machine: what is behind is read, judged and stored one after the other. */
const DRAIN_MS = 240_000;
/** More where the load is sent for longer. */
const DRAIN_PER_LOAD = 2;
/** Of them the receiver of webhooks takes all but so many. */
const REFUSED_SHARE = 0.1;
const WEBHOOK_ARGS = ['--webhook-allow', 'loopback', '--webhook-retries', Array(20).fill('1s').join(',')];

/** Processes on one database and one bucket, which are disturbed while runs are sent whose bodies go to all of them, or to those that receive, in turn. */
export async function tryCluster(options: ClusterTrialOptions): Promise<ClusterFigures> {
  const { seed, cleanUp, receiverCount = 0, disturb } = options;
  const { runCount, samples, atOnceMs } = options.load;
  const random = new SeededRandom(seed);
  const stage = await ClusterStage.start({ seed: seed + 1, cleanUp, receiverCount, args: WEBHOOK_ARGS });
  const { processes, folder } = stage;
  const { client, sink, store } = stage.peers;
  const receiver = await FlakyReceiver.open(new SeededRandom(seed + 3), REFUSED_SHARE);
  cleanUp.add(() => receiver.close());
  const [first] = processes;
  if (first === undefined) throw new Error('there is no process');
  await subscribe({ webUrl: `http://127.0.0.1:${first.webPort}` }, stage.adminToken(), 'trial', receiver.url);

  const expected = new ExpectedRuns();
  const plan = new RunPlan(random, samples);
  const gaps = new SeededRandom(seed + 2);
  let turn = 0;
  const load = new Load(plan, {
    port: () => stage.doors[turn++ % stage.doors.length]?.httpPort ?? 0,
    engines: atOnceMs === undefined ? ENGINES : runCount,
    gapMs: (_body, { template, copies }) =>
      atOnceMs === undefined
        ? gaps.between(50, 900)
        : (gaps.between(0.5, 1.5) * atOnceMs) / (template.bodyCount * copies),
    maxRetryMs: MAX_RETRY_MS,
    onAcknowledged: (run, body) => expected.add(run, body),
  });
  const startedMs = performance.now();
  load.start();
  let isSending = true;
  const sent = async () => {
    await load.finish();
    isSending = false;
  };
  const atOnce = atOnceMs === undefined ? undefined : sent();
  const disturbances = await disturb(stage, random, () =>
    atOnce === undefined ? plan.begunCount < runCount : isSending,
  );
  await (atOnce ?? sent());
  const drainedMs = performance.now();
  const runs = expected.list;
  const patienceMs = DRAIN_MS + DRAIN_PER_LOAD * (drainedMs - startedMs);
  await until('the end of every run', async () => (await stage.openCount()) === 0, patienceMs).catch(() => undefined);
  const drainMs = performance.now() - drainedMs;

  const problems: string[] = [];
  for (const { name, victim } of [...processes, ...stage.receivers]) {
    if (!victim.isAlive)
      problems.push(`${name} has ended by itself with ${victim.exitCode}: ${victim.log.slice(-2_000)}`);
  }
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
    // Segments are there of a run that has not come to its end.
    mkdirSync(join(stored, 'runs', traceId, 'segments'), { recursive: true });
    writeFileSync(join(stored, 'runs', traceId, 'telemetry.jsonl'), '');
    for (const { name, object_key } of rows) {
      writeFileSync(join(stored, 'runs', traceId, name), (await store.get(object_key)) ?? '');
    }
    problems.push(...(await judge(client, traceId, verdicts)));
  }
  const { rows: named } = await client.query<{ object_key: string }>('select object_key from journal_files');
  const needed = new Set(named.map(({ object_key }) => object_key));
  for (const key of await store.list('runs/')) if (!needed.has(key)) problems.push(`nobody needs ${key}`);

  const events = await expectedEvents(client);
  const webhooks = () => auditEvents(receiver.got, events);
  await until('every webhook', () => webhooks().missing.length === 0).catch(() => undefined);
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
  const isError = (line: string) => /"level":"error"/.test(line);
  const figures = {
    commandCount: runs.reduce((sum, { verdicts }) => sum + verdicts.length, 0),
    wrongAnswers,
    ...{ runCount: runs.length, resentCount: load.resentCount, refusals: load.refusals, disturbances, drainMs },
    problems,
    log: auditRecordLogs(stored, runs),
    parquet: await auditParquet(stored, runs),
    sinkSpans: tally(expected.spans, sink.spans),
    sinkLogs: tally(expected.logs, sink.logs),
    webhooks: webhooks(),
    attemptCount: receiver.got.length,
    writes: await stage.history.audit(),
    unreadCount: await stage.peers.kafka.lag('run-bridge', ['otlp_spans', 'otlp_logs']),
    listed,
    errors: stage.all.flatMap(({ victim }) => victim.log.split('\n').filter(isError)),
  };
  for (const { victim } of stage.all) await victim.end('SIGTERM');
  return figures;
}

/** The webhooks that there have to be, by the runs that there are: `<run id> <event type>`. */
async function expectedEvents(client: pg.Client): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ id: string; has_error: boolean }>(
    `select run.id::text as id, bool_or(command.verdict = 'error') as has_error from executions run
    join execution_steps step on step.execution_id = run.id
    left join invocations command on command.step_id = step.step_id group by run.id`,
  );
  const typesOf = (hasError: boolean) => ['started', ...(hasError ? ['errored'] : []), 'completed'];
  return new Set(rows.flatMap(({ id, has_error }) => typesOf(has_error).map((type) => `${id} job.run.${type}`)));
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
