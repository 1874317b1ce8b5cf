import type { Timer } from '../component/clock.js';
import { CANCEL_TIMES, Interruption, type InterruptionTimes } from '../component/interruption.js';
import { sanitizeCommand } from '../exporter/redaction/sanitize-command.js';
import type { CommandEnding } from '../store/command-ending.js';
import type { JobRunRow, StepOutput } from '../store/job-run-store.js';
import type { JobDefinition } from './job-definition.js';
import type { JobRunnerDeps } from './job-runner-deps.js';
import { maskSecrets } from './mask-secrets.js';
import type { StepProcess } from './step-process.js';

/** How a run went, as far as its steps do not say it. */
export interface RunEnd {
  /** The command that did not end well, or was not begun any more; `null` where all ended well. */
  readonly stoppedAt: number | null;
  /** Why the run failed or was cancelled, where its steps do not say it. */
  readonly failure: string | null;
}

/** `exec` hears of a cancellation within 2 s, interrupts, and then brings in what is left for up to 10 s; in milliseconds. */
const EXEC_MARGIN_MS = 15_000;

/** When everything of a run that was cancelled is killed, in milliseconds: `exec` should have ended it long before. */
const KILL_AFTER_MS = CANCEL_TIMES.afterInterruptMs + CANCEL_TIMES.afterTerminateMs + EXEC_MARGIN_MS;

/** A run under way: its commands one after the other, until one does not end well. */
export class RunCourse {
  private process: StepProcess | undefined;
  private stepId: string | undefined;
  private interruption: Interruption | undefined;
  private isStopping = false;
  private failure: string | null = null;
  private killTimer: Timer | undefined;

  constructor(
    readonly run: JobRunRow,
    private readonly job: JobDefinition,
    private readonly deps: JobRunnerDeps,
  ) {}

  /** Runs the commands that are left. @throws StoreError, ExecutionBookError */
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

  /** The run was cancelled: `exec` asks for that and interrupts the command. */
  onCancelled(): void {
    this.killTimer ??= this.deps.clock.after(KILL_AFTER_MS, () => this.process?.kill());
  }

  /** The program ends: interrupts the command, and begins no other. */
  stop(times: InterruptionTimes): void {
    this.isStopping = true;
    this.interruption ??= new Interruption((signal) => this.send(signal), times, this.deps.clock);
  }

  /** Ends everything of the command under way at once. */
  kill(): void {
    this.process?.kill();
  }

  /** What the command under way has written so far. */
  outputOf(stepId: string): StepOutput | undefined {
    return stepId === this.stepId && this.process !== undefined ? this.outputOfProcess(this.process) : undefined;
  }

  /** @returns how it ended; `undefined` where the run takes no more steps */
  private async step(command: readonly string[]): Promise<CommandEnding | undefined> {
    const { deps, run, job } = this;
    const { clock, executions, queue } = deps;
    const stepId = deps.newId();
    const words = sanitizeCommand(command.join(' ')).split(' ');
    const start = { ...run, stepId, command: words, startedUnixMs: clock.nowUnixMs(), isLast: false };
    if ((await executions.beginIn(run.runId, start, 'local')) === undefined) return undefined;
    const process = deps.launcher.launch({ run, job, stepId, command });
    this.process = process;
    this.stepId = stepId;
    // It was asked to stop while the step was begun.
    if (this.isStopping) this.send('SIGINT');
    if (process.pid !== undefined) await queue.notePid(run.runId, process.pid);
    const ending = await process.ended;
    await queue.saveOutput(stepId, this.outputOfProcess(process));
    this.process = undefined;
    // `exec` has told it, unless it could not be started or was killed.
    const told = await executions.findStep(stepId);
    if (told?.ending === null) await deps.book.end(stepId, ending, clock.nowUnixMs());
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
    return `run-bridge was stopped when command ${index + 1} of ${this.job.commands.length} ${what}; a retry goes on from there`;
  }

  private async timeOut(): Promise<void> {
    const { executions, clock, logger } = this.deps;
    const { accountId, runId, job } = this.run;
    this.failure = 'The run took longer than the timeout of its job';
    logger.warn({ run: runId, job }, 'a run takes longer than the timeout of its job: it is interrupted');
    try {
      await executions.cancel(accountId, runId, clock.nowUnixMs());
      this.onCancelled();
    } catch (error) {
      logger.error({ run: runId, error: String(error) }, 'a run that takes too long could not be cancelled');
      this.process?.signalOffspring('SIGTERM');
    }
  }
}
