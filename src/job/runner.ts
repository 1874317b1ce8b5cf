import { readFileSync } from 'node:fs';
import type { JobDefinition } from '../config/jobs.js';
import { commandsOfRun, type RunCommands } from '../config/run-commands.js';
import { type Clock, pause, type Timer, whenAborted } from '../core/clock.js';
import { CANCEL_TIMES, Interruption, type InterruptionTimes } from '../core/interruption.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { signalProcesses } from '../core/process-tree.js';
import { maskSecrets } from '../redaction/mask-secrets.js';
import type { LocalStepRegistry } from '../run/local-step-registry.js';
import type { ExecutionStore } from '../storage/execution-store.js';
import type { CommandEnding } from '../storage/steps.js';
import { digestOf, type JobRunRow, type JobRunStore, type StepOutput } from './job-run-store.js';
import type { JobLauncher, StepProcess } from './launcher.js';

/** How the runner works. */
export interface JobRunnerConfig {
  readonly maxRunning: number;
  /** Whether several processes share the queue; if so, runs left by dead processes are looked for regularly. Default false. */
  readonly isShared?: boolean;
}

/** Times for commands when the program stops, which has 9 s in total: SIGINT, SIGTERM after 2.5 s, SIGKILL 1.5 s later. */
const STOP_TIMES: InterruptionTimes = { afterInterruptMs: 2_500, afterTerminateMs: 1_500 };
/** How long a command that outlived its bridge may take to end after SIGTERM, in milliseconds. */
const ORPHAN_MS = 5_000;
/** How often the queue is polled for runs that another process has queued, or that could not be started, in milliseconds. */
const LOOK_MS = 30_000;

/** Executes queued runs: those of different jobs in parallel up to a limit, those of one job one after the other. */
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

  /** Fails the runs that the previous process left running, and continues with its queue. */
  async start(): Promise<void> {
    await this.lookLeftBehind();
    this.wake();
    this.track(this.lookAgain());
  }

  /** Interrupts running commands; queued runs stay queued. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    this.hasStopped.abort();
    for (const course of this.underWay.values()) course.stop(STOP_TIMES);
    await Promise.race([this.looking.then(() => Promise.allSettled(this.goings)), whenAborted(deadline)]);
    for (const course of this.underWay.values()) course.kill();
  }

  /** Starts runs that may start now; to be called when something was queued or has ended. */
  wake(): void {
    this.looking = this.looking.then(() => this.begin()).catch((error: unknown) => this.logFailure(error));
  }

  /** Handles the cancellation of a run. */
  onCancelled(runId: number): void {
    this.underWay.get(runId)?.onCancelled();
    this.wake();
  }

  /** Returns the output so far of a running step's command; `undefined` for any other step. */
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
      const planned = planOf(run, job);
      if (job === undefined || 'problem' in planned) {
        await this.end(run, { stoppedAt: null, failure: 'problem' in planned ? planned.problem : null });
        continue;
      }
      const course = new RunCourse(run, { ...job, commands: planned.commands }, this.deps);
      this.underWay.set(run.runId, course);
      this.track(this.follow(course));
    }
  }

  private async follow(course: RunCourse): Promise<void> {
    const { run } = course;
    const { logger } = this.deps;
    logger.info({ run: run.runId, job: run.job }, 'started a run of a job');
    try {
      const end = await course.go().catch((error: unknown) => {
        course.kill();
        logger.error({ run: run.runId, job: run.job, error: String(error) }, 'failed to continue a run of a job');
        return { stoppedAt: null, failure: 'run-bridge could not process it; see its log' };
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
    logger.info({ run: run.runId, job: run.job, reason: end.failure }, 'a run of a job ended');
  }

  /** Ends a run that was running when the previous process ended; its command may still be running. */
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
    for (const step of steps) if (step.ending === null) await this.deps.registry.endUnseen(step);
    const failure =
      'run-bridge stopped while this run was in progress; a retry continues with the command that did not finish';
    await queue.end(run.runId, { stoppedAt: run.firstCommand + doneCount, failure, nowUnixMs: clock.nowUnixMs() });
    this.deps.logger.warn(
      { run: run.runId, job: run.job },
      'a run was in progress when the previous process ended; marked it as failed',
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
      for (const run of await this.deps.queue.listRunning(this.deps.clock.nowUnixMs())) {
        if (!this.underWay.has(run.runId)) this.track(this.endLeftBehind(run));
      }
    } catch (error) {
      if (this.config.isShared !== true) throw error;
      this.logFailure(error);
    }
  }

  private track(going: Promise<void>): void {
    const tracked = going.catch((error: unknown) => this.logFailure(error)).finally(() => this.goings.delete(tracked));
    this.goings.add(tracked);
  }

  private logFailure(error: unknown): void {
    this.deps.logger.error({ error: String(error) }, 'failed to continue runs of jobs; retrying');
  }
}

/** How often an interrupted command is checked, in milliseconds. */
const ORPHAN_POLL_MS = 100;

/** Returns the commands of a run, or why it cannot run as requested: the configuration may have changed while it waited. */
function planOf(run: JobRunRow, job: JobDefinition | undefined): RunCommands {
  if (job === undefined || job.commands.length === 0) {
    return { problem: 'The configuration no longer has commands for this job' };
  }
  const planned = commandsOfRun(job, run.stepsOverride);
  if ('problem' in planned || run.firstCommand === 0 || run.commandsDigest === digestOf(planned.commands))
    return planned;
  return { problem: 'The commands of the job were changed while this retry waited; run the job anew' };
}

/** Whether a process is the `exec` of a run; always false without /proc. */
function isCommandOf(pid: number, runKey: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(`--run-id=${runKey}`);
  } catch {
    return false;
  }
}

/** The outcome of a run, as far as it is not in its steps. */
export interface RunEnd {
  /** Index of the command that failed or did not start; `null` if all succeeded. */
  readonly stoppedAt: number | null;
  /** Why the run failed or was cancelled, if that is not in its steps. */
  readonly failure: string | null;
}

/** `exec` notices a cancellation within 2 s, interrupts the command, and then imports its records for up to 10 s; in milliseconds. */
const EXEC_MARGIN_MS = 15_000;

/** When all processes of a cancelled run are killed, in milliseconds; `exec` should have ended them long before. */
const KILL_AFTER_MS = CANCEL_TIMES.afterInterruptMs + CANCEL_TIMES.afterTerminateMs + EXEC_MARGIN_MS;

/** Executes the commands of a run one after the other, until one fails. */
export class RunCourse {
  private process: StepProcess | undefined;
  private stepId: string | undefined;
  private interruption: Interruption | undefined;
  private isStopping = false;
  private failure: string | null = null;
  private killTimer: Timer | undefined;

  constructor(
    readonly run: JobRunRow,
    /** The job, with the commands of this run. */
    private readonly job: JobDefinition,
    private readonly deps: JobRunnerDeps,
  ) {}

  /** Runs the remaining commands. @throws StoreError, StepRegistryError */
  async go(): Promise<RunEnd> {
    const { clock } = this.deps;
    const { timeoutMs } = this.job;
    const timer = timeoutMs === null ? undefined : clock.after(timeoutMs, () => void this.timeOut());
    try {
      for (const [index, command] of this.job.commands.entries()) {
        if (index < this.run.firstCommand) continue;
        if (this.isStopping) return { stoppedAt: index, failure: this.stopped(index, 'was to begin') };
        const ending = await this.step(command);
        if (ending?.kind === 'exited' && ending.exitCode === 0) continue;
        const isStopped = this.isStopping && ending !== undefined;
        return { stoppedAt: index, failure: isStopped ? this.stopped(index, 'was interrupted') : this.failure };
      }
      return { stoppedAt: null, failure: this.failure };
    } finally {
      timer?.cancel();
      this.killTimer?.cancel();
      this.interruption?.stop();
    }
  }

  /** Handles the cancellation of the run: `exec` polls for it and interrupts the command; what is left is killed later. */
  onCancelled(): void {
    this.killTimer ??= this.deps.clock.after(KILL_AFTER_MS, () => this.process?.kill());
  }

  /** Interrupts the command and starts no other, because the program stops. */
  stop(times: InterruptionTimes): void {
    this.isStopping = true;
    this.interruption ??= new Interruption((signal) => this.send(signal), times, this.deps.clock);
  }

  /** Kills all processes of the running command. */
  kill(): void {
    this.process?.kill();
  }

  /** Returns the output of the running command so far. */
  outputOf(stepId: string): StepOutput | undefined {
    return stepId === this.stepId && this.process !== undefined ? this.outputOfProcess(this.process) : undefined;
  }

  /** Runs a command as a step. @returns how it ended; `undefined` if the run accepts no more steps */
  private async step(command: readonly string[]): Promise<CommandEnding | undefined> {
    const { deps, run, job } = this;
    const { clock, executions, queue } = deps;
    const stepId = deps.newId();
    // Stored as declared, since the API shows the commands of a job; readers who may not read artifacts see less of a step's command.
    const start = { ...run, stepId, command, startedUnixMs: clock.nowUnixMs(), isLast: false };
    const position = await executions.registerIn(run.runId, start, 'local');
    if (position === undefined) return undefined;
    const process = deps.launcher.launch({ run, job, stepId, command, position });
    this.process = process;
    this.stepId = stepId;
    // The run may have been stopped while the step was being registered.
    if (this.isStopping) this.send('SIGINT');
    if (process.pid !== undefined) await queue.notePid(run.runId, process.pid);
    const ending = await process.ended;
    await queue.saveOutput(stepId, this.outputOfProcess(process));
    this.process = undefined;
    // Usually `exec` has reported the end, unless it could not be started or was killed.
    const step = await executions.findStep(stepId);
    if (step?.ending === null) await deps.registry.end(stepId, ending, clock.nowUnixMs());
    return ending;
  }

  private outputOfProcess({ output }: StepProcess): StepOutput {
    const { text, droppedBytes } = output;
    return { text: maskSecrets(text, this.deps.launcher.environmentOf(this.job)), droppedBytes };
  }

  private send(signal: NodeJS.Signals): void {
    if (signal === 'SIGKILL') this.process?.kill();
    else this.process?.signalOffspring(signal);
  }

  private stopped(index: number, what: string): string {
    return `run-bridge was stopped when command ${index + 1} of ${this.job.commands.length} ${what}; a retry resumes there`;
  }

  private async timeOut(): Promise<void> {
    const { executions, clock, logger } = this.deps;
    const { accountId, runId, job } = this.run;
    this.failure = 'The run took longer than the timeout of its job';
    logger.warn({ run: runId, job }, 'a run exceeds the timeout of its job; interrupting it');
    try {
      await executions.cancel(accountId, runId, clock.nowUnixMs());
      this.onCancelled();
    } catch (error) {
      logger.error({ run: runId, error: String(error) }, 'failed to cancel a run that exceeds the timeout of its job');
      this.process?.signalOffspring('SIGTERM');
    }
  }
}

/** Dependencies of the runner. */
export interface JobRunnerDeps {
  /** The configured jobs by name. */
  readonly jobs: ReadonlyMap<string, JobDefinition>;
  readonly queue: JobRunStore;
  readonly executions: Pick<ExecutionStore, 'registerIn' | 'cancel' | 'findStep' | 'listSteps'>;
  readonly registry: Pick<LocalStepRegistry, 'end' | 'endUnseen'>;
  readonly launcher: Pick<JobLauncher, 'launch' | 'environmentOf'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns a new unique id. */
  readonly newId: () => string;
}
