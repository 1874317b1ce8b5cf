import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { textRedactor } from '../../../src/api/permissions.js';
import type { JobDefinition } from '../../../src/config/jobs.js';
import { systemClock } from '../../../src/core/clock.js';
import { StepProcess } from '../../../src/job/launcher.js';
import { JobRunner } from '../../../src/job/runner.js';
import { JobService } from '../../../src/job/service.js';
import { NO_LOGS, stepDocument } from '../../../src/platform/documents.js';
import { LocalStepRegistry } from '../../../src/run/local-step-registry.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import type { CatalogRun } from '../../../src/storage/run-catalog.js';
import { isFinal, type PermissionSet, RUN_STATUS } from '../../../src/storage/state-tables.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { type FeatureState, openFeatureState } from '../../fake/webhook-facts.js';
import { until } from '../../tool/until.js';

// Commands are run as they are, without `exec` round them: what that does is tried with the whole program.
let folder: string;
let state: FeatureState;
let runner: JobRunner;
let service: JobService;
let registry: LocalStepRegistry;
const logger = new RecordingLogger();
/** Steps of which records wait in the data folder. */
const spooled = new Set<string>();
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-jobs-'));
  spooled.clear();
  state = await openFeatureState(join(folder, 'state.db'));
});
afterEach(async () => {
  await runner.shutdown(AbortSignal.timeout(5_000));
  await registry.shutdown();
  await state.close();
  rmSync(folder, { recursive: true, force: true });
});

const sh = (line: string) => ['sh', '-c', line];
const job = (name: string, commands: readonly (readonly string[])[], given: Partial<JobDefinition> = {}) => ({
  ...{
    name,
    commands,
    project: null,
    environment: null,
    targetName: null,
    threads: null,
    timeoutMs: null,
    expectMs: null,
  },
  ...{ workingDir: folder, takesOtherSteps: false, variables: {}, id: null, match: [] },
  ...given,
});

async function begin(jobs: readonly JobDefinition[], maxRunning = 1): Promise<void> {
  let lastId = 0;
  const newId = () => {
    lastId += 1;
    return `${process.pid}-${Date.now()}-${lastId}`;
  };
  const byName = new Map(jobs.map((one) => [one.name, one]));
  const { executions, jobRuns: queue, runs } = state;
  const clock = systemClock;
  const areSpooled = (stepId: string) => spooled.has(stepId);
  registry = new LocalStepRegistry({ store: executions, runs, listeners: [], clock, logger, areSpooled });
  await registry.start();
  const environmentOf = (one: JobDefinition) => ({ PATH: process.env.PATH, ...one.variables });
  const launcher = {
    environmentOf,
    launch: ({ job: one, command: [program = '', ...args] }: { job: JobDefinition; command: readonly string[] }) =>
      new StepProcess({ program, args, workingDir: one.workingDir, environment: environmentOf(one) }, clock),
  };
  runner = new JobRunner({ maxRunning }, { jobs: byName, queue, executions, registry, launcher, clock, logger, newId });
  service = new JobService({ jobs: byName, queue, catalog: state.catalog, executions, runner, clock, newId });
  await runner.start();
}

async function start(name: string): Promise<number> {
  const result = await service.start(FIRST_ACCOUNT_ID, name, 'a test');
  if (result.kind !== 'queued') throw new Error(result.kind);
  service.startQueued();
  return result.runId;
}

const find = async (runId: number): Promise<CatalogRun> => {
  const run = await state.catalog.findRun(FIRST_ACCOUNT_ID, runId);
  if (run === undefined) throw new Error(`no run ${runId}`);
  return run;
};
const over = (runId: number) =>
  until(`the end of run ${runId}`, async () => {
    const run = await find(runId);
    const asked = await state.jobRuns.find(runId);
    return isFinal(run.status) && asked?.state === 'ended' && run;
  });
const written = () => readFileSync(join(folder, 'log'), 'utf8').trim().split('\n');
const isWritten = (line: string) =>
  until(line, () => {
    try {
      return written().includes(line);
    } catch {
      return false;
    }
  });
const toChange = async (runId: number) => {
  const run = await find(runId);
  return { accountId: FIRST_ACCOUNT_ID, runId, job: run.job.name, status: run.status };
};

describe('a run of a job', () => {
  test('runs its commands one after the other, with the working directory and the variables of the job', async () => {
    const commands = [sh('echo one $COLOUR >> log'), ['cp', 'log', 'copy'], sh('echo two >> log')];
    await begin([job('a', commands, { variables: { COLOUR: 'green' } })]);
    const run = await over(await start('a'));
    expect(run).toMatchObject({ status: RUN_STATUS.success, statusMessage: null, stepCount: 3, reason: 'a test' });
    expect(written()).toEqual(['one green', 'two']);
    expect(readFileSync(join(folder, 'copy'), 'utf8')).toBe('one green\n');
    const steps = await state.catalog.stepsOf(FIRST_ACCOUNT_ID, [run.id]);
    expect(steps.map(({ index, status }) => [index, status])).toEqual([
      [1, RUN_STATUS.success],
      [2, RUN_STATUS.success],
      [3, RUN_STATUS.success],
    ]);
  });

  test('ends with the first command that fails, and a retry resumes there', async () => {
    await begin([job('a', [sh('echo 1 >> log'), sh('echo 2 >> log; test -e fixed'), sh('echo 3 >> log')])]);
    const failed = await over(await start('a'));
    expect(failed).toMatchObject({ status: RUN_STATUS.error, stepCount: 2 });
    expect(await service.stopOfRun(await toChange(failed.id))).toEqual({
      kind: 'stopped',
      skippedCommands: ["sh -c 'echo 3 >> log'"],
    });
    writeFileSync(join(folder, 'fixed'), '');
    const retried = await service.retry(await toChange(failed.id), null);
    service.startQueued();
    const { runId } = retried.kind === 'queued' ? retried : { runId: 0 };
    expect(await over(runId)).toMatchObject({ status: RUN_STATUS.success, stepCount: 2, retriedRunId: failed.id });
    expect(written()).toEqual(['1', '2', '2', '3']);
    expect(await service.retry(await toChange(runId), null)).toEqual({ kind: 'succeeded' });
    expect(await service.stopOfRun(await toChange(runId))).toEqual({ kind: 'succeeded' });
  });

  test('is done again as a whole by a rerun after it succeeded, and from the failure after it failed', async () => {
    await begin([job('a', [sh('echo 1 >> log'), sh('echo 2 >> log; test ! -e broken')])]);
    await over(await start('a'));
    writeFileSync(join(folder, 'broken'), '');
    const rerun = async () => {
      const result = await service.rerun(FIRST_ACCOUNT_ID, 'a', null);
      service.startQueued();
      return over(result.kind === 'queued' ? result.runId : 0);
    };
    const failed = await rerun();
    expect(failed).toMatchObject({ status: RUN_STATUS.error, retriedRunId: null });
    rmSync(join(folder, 'broken'));
    expect(await rerun()).toMatchObject({ status: RUN_STATUS.success, stepCount: 1, retriedRunId: failed.id });
    expect(written()).toEqual(['1', '2', '1', '2', '2']);
  });

  test('fails with words when a command or its folder is not there', async () => {
    await begin([job('a', [['no-such-program']]), job('b', [sh('true')], { workingDir: '/no/such/folder' })]);
    expect(await over(await start('a'))).toMatchObject({ status: RUN_STATUS.error, statusMessage: /ENOENT/ });
    expect(await over(await start('b'))).toMatchObject({
      status: RUN_STATUS.error,
      statusMessage: expect.stringContaining('working-dir /no/such/folder is not there'),
    });
  });

  test('keeps what its commands wrote, without secrets', async () => {
    await begin([
      job('a', [sh('echo $MY_TOKEN; echo err >&2; yes | head -c 400000')], { variables: { MY_TOKEN: 's3cret-value' } }),
    ]);
    const run = await over(await start('a'));
    const [step] = await state.catalog.stepsOf(FIRST_ACCOUNT_ID, [run.id]);
    const output = (await state.jobRuns.outputsOf([step?.stepId ?? ''])).get(step?.stepId ?? '');
    expect(output?.text.length).toBeLessThanOrEqual(256 * 1024);
    expect(output?.droppedBytes).toBeGreaterThan(100_000);
    await begin([job('b', [sh('echo $MY_TOKEN; echo err >&2')], { variables: { MY_TOKEN: 's3cret-value' } })]);
    const small = await over(await start('b'));
    const [other] = await state.catalog.stepsOf(FIRST_ACCOUNT_ID, [small.id]);
    const { text = '' } = (await state.jobRuns.outputsOf([other?.stepId ?? ''])).get(other?.stepId ?? '') ?? {};
    expect(text.split('\n').sort()).toEqual(['', '****', 'err']);
  });

  test('are named as they are declared to who may read artifacts, without their values to others', async () => {
    await begin([job('a', [sh("echo 'of the project'")])]);
    const run = await over(await start('a'));
    const [step] = await state.catalog.stepsOf(FIRST_ACCOUNT_ID, [run.id]);
    if (step === undefined) throw new Error('the run has no step');
    const nameFor = (permission: PermissionSet) => {
      const redactor = textRedactor({ permission }, 'literals');
      return stepDocument(step, NO_LOGS, { nowUnixMs: 0, redactor, hasDebugLogs: false }).name;
    };
    expect(nameFor('read_only')).toBe("Invoke dbt with `sh -c echo 'of the project'`");
    expect(nameFor('webhooks_only')).toBe('Invoke dbt with `sh -c ?`');
  });
});

describe('runs of jobs', () => {
  test('follow each other where they are of one job', async () => {
    await begin([job('a', [sh('echo begin >> log; sleep 0.1; echo end >> log')])], 4);
    const ids = [await start('a'), await start('a'), await start('a')];
    for (const id of ids) await over(id);
    expect(written()).toEqual(['begin', 'end', 'begin', 'end', 'begin', 'end']);
  });

  test('are no more at a time than allowed, and side by side as far as that', async () => {
    const meet = (own: string, other: string) => [
      sh(`echo ${own} >> log; until grep -q ${other} log; do sleep 0.02; done`),
    ];
    await begin([job('a', meet('here-a', 'here-b')), job('b', meet('here-b', 'here-a'))], 2);
    const ids = [await start('a'), await start('b')];
    for (const id of ids) expect(await over(id)).toMatchObject({ status: RUN_STATUS.success });
  });

  test('are refused where the configuration has no commands, whatever is asked', async () => {
    await begin([job('a', [])]);
    expect(await service.start(FIRST_ACCOUNT_ID, 'a', null)).toEqual({ kind: 'noCommands' });
    expect(await service.start(FIRST_ACCOUNT_ID, 'b', null)).toEqual({ kind: 'noCommands' });
    expect(await service.rerun(FIRST_ACCOUNT_ID, '__proto__', null)).toEqual({ kind: 'noCommands' });
  });

  test("are refused to another account than the program's own", async () => {
    await begin([job('a', [sh('echo x >> log')])]);
    expect(await service.start(10_002, 'a', null)).toEqual({ kind: 'noCommands' });
  });

  test('are refused when twenty of the job wait', async () => {
    await begin([job('a', [sh('sleep 60')])]);
    const first = await start('a');
    await until('the first', async () => (await state.jobRuns.find(first))?.state === 'running');
    for (let count = 0; count < 20; count++) await start('a');
    expect(await service.start(FIRST_ACCOUNT_ID, 'a', null)).toEqual({
      kind: 'full',
      limit: 'perJob',
      waitingCount: 20,
    });
  });
});

describe('cancelling', () => {
  test('ends a run that waits at once, and the next goes on', async () => {
    await begin([job('a', [sh('until test -e go; do sleep 0.02; done; echo done >> log')])]);
    const [first, second, third] = [await start('a'), await start('a'), await start('a')];
    expect(await service.cancel(await toChange(second))).toEqual({ kind: 'cancelled' });
    expect(await find(second)).toMatchObject({ status: RUN_STATUS.cancelled, stepCount: 0 });
    writeFileSync(join(folder, 'go'), '');
    await over(first);
    await over(third);
    expect(written()).toEqual(['done', 'done']);
    expect(await service.cancel(await toChange(second))).toEqual({ kind: 'alreadyOver' });
  });

  test('of a run that nobody runs who could be asked is refused', async () => {
    await begin([]);
    const traceId = '0af7651916cd43dd8448eb211c80319c' as never;
    const note = { index: 1, accountId: null, stepId: null, command: 'dbt build', verdict: null, statusMessage: null };
    const times = { startedUnixMs: 1, endedUnixMs: 2, isSaved: false, parquetFile: 'x.parquet' };
    const rest = { namedStepId: null, engineVersion: null, gitBranch: null, gitSha: null };
    const place = { job: 'adhoc', environment: null, project: null };
    await state.invocations.note([{ traceId, invocations: [{ ...note, ...times, ...rest, scope: place }] }], 3);
    const latest = await state.catalog.latestRunOf(FIRST_ACCOUNT_ID, 'adhoc');
    expect(await service.cancel(await toChange(latest?.runId ?? 0))).toEqual({ kind: 'outOfReach' });
  });
});

describe('a run that takes longer than the timeout of its job', () => {
  test('is cancelled, with words', async () => {
    await begin([job('a', [sh('echo begun >> log; sleep 0.6'), sh('echo two >> log')], { timeoutMs: 300 })]);
    expect(await over(await start('a'))).toMatchObject({
      status: RUN_STATUS.cancelled,
      statusMessage: 'The run took longer than the timeout of its job',
    });
    expect(written()).toEqual(['begun']);
  });
});

describe('when the program ends', () => {
  test('what is under way is interrupted, with all that it started, and what waits goes on with the next start', async () => {
    writeFileSync(
      join(folder, 'slow'),
      "trap 'echo interrupted >> log; exit 1' INT; echo begun >> log; while :; do sleep 0.05; done",
    );
    // The program itself, `exec` otherwise, is spared: it tells how its command ended.
    const slow = sh('sh slow; exit $?');
    const jobs = [job('a', [sh('true'), slow]), job('b', [sh('echo b >> log')])];
    await begin(jobs);
    const first = await start('a');
    const second = await start('b');
    await isWritten('begun');
    await runner.shutdown(AbortSignal.timeout(5_000));
    expect(written()).toEqual(['begun', 'interrupted']);
    expect(await find(first)).toMatchObject({
      status: RUN_STATUS.error,
      statusMessage: 'run-bridge was stopped when command 2 of 2 was interrupted; a retry resumes there',
    });
    expect(await state.jobRuns.find(first)).toMatchObject({ stoppedAt: 1 });
    await registry.shutdown();
    await begin(jobs);
    expect(await over(second)).toMatchObject({ status: RUN_STATUS.success });
  });

  test('a command that heeds no signal is killed', async () => {
    await begin([job('a', [sh("trap '' INT TERM; echo $$ > pid; echo begun >> log; while :; do sleep 0.05; done")])]);
    const runId = await start('a');
    await isWritten('begun');
    await runner.shutdown(AbortSignal.timeout(300));
    const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
    await until('its end', () => {
      try {
        process.kill(pid, 0);
        return false;
      } catch {
        return true;
      }
    });
    expect(runId).toBeGreaterThan(0);
  });
});

describe('after the program was killed', () => {
  test('a run that was under way has failed, with words, and can be retried from where it was', async () => {
    const jobs = [job('a', [sh('echo 1 >> log'), sh('echo 2 >> log'), sh('echo 3 >> log')])];
    await begin(jobs);
    await runner.shutdown(AbortSignal.timeout(1_000));
    const runId = await start('a');
    // As far as the process got that is gone now.
    await state.jobRuns.claim();
    const place = { runKey: null, job: 'a', environment: null, project: null, reason: null, isLast: false };
    const lastHeardMs = Date.now() - 3_600_000;
    for (const [index, ending] of [{ kind: 'exited', exitCode: 0 } as const, null].entries()) {
      const stepId = `gone-${index}`;
      const startedUnixMs = lastHeardMs;
      await state.executions.registerIn(runId, { ...place, stepId, command: ['x'], startedUnixMs }, 'local');
      if (ending !== null) await state.executions.end(stepId, ending, lastHeardMs);
    }
    await registry.shutdown();
    spooled.add('gone-1');
    await begin(jobs);
    expect(await over(runId)).toMatchObject({
      finishedUnixMs: lastHeardMs,
      status: RUN_STATUS.error,
      statusMessage:
        'run-bridge stopped while this run was in progress; a retry continues with the command that did not finish',
    });
    const retried = await service.retry(await toChange(runId), null);
    service.startQueued();
    expect(await over(retried.kind === 'queued' ? retried.runId : 0)).toMatchObject({ stepCount: 2 });
    expect(written()).toEqual(['2', '3']);
  });

  test('a run that waited for other steps which its job no longer takes fails with words, and runs nothing', async () => {
    const engine = join(folder, 'dbt');
    writeFileSync(engine, '#!/bin/sh\necho "$@" >> log\n', { mode: 0o755 });
    await begin([job('a', [[engine, 'build']], { takesOtherSteps: true })]);
    await runner.shutdown(AbortSignal.timeout(1_000));
    const result = await service.start(FIRST_ACCOUNT_ID, 'a', null, ['dbt parse']);
    const runId = result.kind === 'queued' ? result.runId : 0;
    await registry.shutdown();
    await begin([job('a', [[engine, 'build']])]);
    expect(await over(runId)).toMatchObject({
      status: RUN_STATUS.error,
      stepCount: 0,
      statusMessage: expect.stringMatching(/^The job "a" takes no steps_override: .*"steps-override: true"/),
    });
    expect(await service.retry(await toChange(runId), null)).toMatchObject({ kind: 'stepsRefused' });
    expect(await over(await start('a'))).toMatchObject({ status: RUN_STATUS.success, stepCount: 1 });
    expect(written()).toEqual(['build']);
  });

  test('a run that waited for a job which has no commands any more fails with words', async () => {
    await begin([job('a', [sh('true')])]);
    await runner.shutdown(AbortSignal.timeout(1_000));
    const runId = await start('a');
    await registry.shutdown();
    await begin([]);
    expect(await over(runId)).toMatchObject({
      status: RUN_STATUS.error,
      statusMessage: 'The configuration no longer has commands for this job',
    });
  });
});
