import { readFileSync } from 'node:fs';
import type { Component } from '../component/component.js';
import type { InterruptionTimes } from '../component/interruption.js';
import { pause } from '../component/pause.js';
import { signalProcesses } from '../component/signal-processes.js';
import { whenAborted } from '../component/when-aborted.js';
import type { JobRunRow, StepOutput } from '../store/job-run-store.js';
import { digestOf } from './commands-digest.js';
import type { JobDefinition } from './job-definition.js';
import type { JobRunnerDeps } from './job-runner-deps.js';
import { RunCourse, type RunEnd } from './run-course.js';

/** How many runs are under way at a time. */
export interface JobRunnerConfig {
  readonly maxRunning: number;
  /** Whether several processes run what is queued: then it is looked now and then for what dead ones left. Default: false. */
  readonly isShared?: boolean;
}

/** What commands get at the end of the program, which has 9 s for all of it: SIGINT, SIGTERM after 2.5 s, SIGKILL 1.5 s later. */
const STOP_TIMES: InterruptionTimes = { afterInterruptMs: 2_500, afterTerminateMs: 1_500 };
/** How long a command that outlived its bridge may take to end by SIGTERM, in milliseconds. */
const ORPHAN_MS = 5_000;
/** How often it is looked for runs that another process has queued, or that could not be begun, in milliseconds. */
const LOOK_MS = 30_000;

/** Runs what is queued: runs of different jobs side by side as far as allowed, those of one job one after the other. */
export class JobRunner implements Component {
  readonly name = 'job runner';
  private readonly underWay = new Map<number, RunCourse>();
  private readonly goings = new Set<Promise<void>>();
  private looking: Promise<void> = Promise.resolve();
  private readonly hasStopped = new AbortController();

  constructor(
    private readonly config: JobRunnerConfig,
    private readonly deps: JobRunnerDeps,
  ) {}

  /** Ends what the last process left under way, and goes on with what it left in the queue. */
  async start(): Promise<void> {
    await this.lookLeftBehind();
    this.wake();
    this.track(this.lookAgain());
  }

  /** Interrupts what is under way; what is queued stays so. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    this.hasStopped.abort();
    for (const course of this.underWay.values()) course.stop(STOP_TIMES);
    await Promise.race([this.looking.then(() => Promise.allSettled(this.goings)), whenAborted(deadline)]);
    for (const course of this.underWay.values()) course.kill();
  }

  /** Something was queued, or may begin now. */
  wake(): void {
    this.looking = this.looking.then(() => this.begin()).catch((error: unknown) => this.say(error));
  }

  /** A run was cancelled. */
  onCancelled(runId: number): void {
    this.underWay.get(runId)?.onCancelled();
    this.wake();
  }

  /** What the command of a step that is under way has written so far; `undefined` for any other. */
  outputOf(stepId: string): StepOutput | undefined {
    for (const course of this.underWay.values()) {
      const output = course.outputOf(stepId);
      if (output !== undefined) return output;
    }
    return undefined;
  }

  private async begin(): Promise<void> {
    while (!this.hasStopped.signal.aborted && this.underWay.size < this.config.maxRunning) {
      const run = await this.deps.queue.claim();
      if (run === undefined) return;
      const job = this.deps.jobs.get(run.job);
      const problem = problemOf(run, job);
      if (job === undefined || problem !== undefined) {
        await this.end(run, { stoppedAt: null, failure: problem ?? null });
        continue;
      }
      const course = new RunCourse(run, job, this.deps);
      this.underWay.set(run.runId, course);
      this.track(this.follow(course));
    }
  }

  private async follow(course: RunCourse): Promise<void> {
    const { run } = course;
    const { logger } = this.deps;
    logger.info({ run: run.runId, job: run.job }, 'a run of a job is begun');
    try {
      const end = await course.go().catch((error: unknown) => {
        course.kill();
        logger.error({ run: run.runId, job: run.job, error: String(error) }, 'a run of a job could not go on');
        return { stoppedAt: null, failure: 'run-bridge could not go on with it; its log says why' };
      });
      await this.end(run, end);
    } finally {
      this.underWay.delete(run.runId);
      this.wake();
    }
  }

  private async end(run: JobRunRow, end: RunEnd): Promise<void> {
    const { queue, clock, logger } = this.deps;
    await queue.end(run.runId, { ...end, nowUnixMs: clock.nowUnixMs() });
    logger.info({ run: run.runId, job: run.job, reason: end.failure }, 'a run of a job is over');
  }

  /** A run that was under way when the last process went away. Its command may still be there, alone. */
  private async endLeftBehind(run: JobRunRow): Promise<void> {
    const { queue, executions, clock } = this.deps;
    if (run.pid !== null && isCommandOf(run.pid, run.runKey)) {
      signalProcesses([run.pid], 'SIGTERM');
      const until = clock.monotonicMs() + ORPHAN_MS;
      while (clock.monotonicMs() < until && isCommandOf(run.pid, run.runKey)) {
        await pause(clock, ORPHAN_POLL_MS, this.hasStopped.signal);
        if (this.hasStopped.signal.aborted) break;
      }
      if (isCommandOf(run.pid, run.runKey)) signalProcesses([-run.pid], 'SIGKILL');
    }
    const steps = await executions.listSteps(run.runId);
    const doneCount = steps.filter(({ ending }) => ending?.kind === 'exited' && ending.exitCode === 0).length;
    for (const { stepId, ending } of steps) {
      if (ending === null) await this.deps.book.end(stepId, { kind: 'unknown' }, clock.nowUnixMs());
    }
    const failure =
      'run-bridge went down while this run was under way; a retry goes on from the command that was not done';
    await queue.end(run.runId, { stoppedAt: run.firstCommand + doneCount, failure, nowUnixMs: clock.nowUnixMs() });
    this.deps.logger.warn(
      { run: run.runId, job: run.job },
      'a run was under way when the last process ended: it failed',
    );
    this.wake();
  }

  private async lookAgain(): Promise<void> {
    const { signal } = this.hasStopped;
    while (!signal.aborted) {
      await pause(this.deps.clock, LOOK_MS, signal);
      if (this.config.isShared === true && !signal.aborted) await this.lookLeftBehind();
      this.wake();
      await this.looking;
    }
  }

  private async lookLeftBehind(): Promise<void> {
    try {
      for (const run of await this.deps.queue.listRunning()) {
        if (!this.underWay.has(run.runId)) this.track(this.endLeftBehind(run));
      }
    } catch (error) {
      if (this.config.isShared !== true) throw error;
      this.say(error);
    }
  }

  private track(going: Promise<void>): void {
    const tracked = going.catch((error: unknown) => this.say(error)).finally(() => this.goings.delete(tracked));
    this.goings.add(tracked);
  }

  private say(error: unknown): void {
    this.deps.logger.error({ error: String(error) }, 'runs of jobs could not be gone on with; it is tried again');
  }
}

/** How often it is looked whether an interrupted command has ended, in milliseconds. */
const ORPHAN_POLL_MS = 100;

/** Why a run cannot be run as it was asked for: the configuration may have changed while it waited. */
function problemOf(run: JobRunRow, job: JobDefinition | undefined): string | undefined {
  if (job === undefined || job.commands.length === 0) {
    return 'The configuration has no commands for this job any more';
  }
  if (run.firstCommand === 0 || run.commandsDigest === digestOf(job.commands)) return undefined;
  return 'The commands of the job were changed while this retry waited; run the job anew';
}

/** Whether a process id is that of the `exec` of a run: on Linux alone it can be told. */
function isCommandOf(pid: number, runKey: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(`--run-id=${runKey}`);
  } catch {
    return false;
  }
}
