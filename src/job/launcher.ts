import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { devNull } from 'node:os';
import type { JobDefinition } from '../config/jobs.js';
import { type Clock, pause } from '../core/clock.js';
import { errorCode } from '../core/errors.js';
import { fileMask } from '../core/file-mask.js';
import { processTree, signalProcesses } from '../core/process-tree.js';
import { withRunIdentity } from '../platform/feature.js';
import type { CommandEnding, StepPosition } from '../storage/steps.js';
import type { JobRunRow } from './job-run-store.js';

/** What is needed to run commands under `exec`. */
export interface JobLauncherConfig {
  /** Paths of Node and of this program's entry file. */
  readonly nodePath: string;
  readonly entryPath: string;
  readonly dataFolder: string;
  /** The environment of this program. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Returns the variables with which `exec` authenticates; called for each command. */
  readonly credentials: () => Readonly<Record<string, string>>;
}

/** A command of a run. */
export interface StepLaunch {
  readonly run: JobRunRow;
  readonly job: JobDefinition;
  readonly stepId: string;
  readonly command: readonly string[];
  /** The step as it was registered; the command's environment names its run. */
  readonly position: StepPosition;
}

/** Starts commands of jobs as steps of their runs, each under an `exec` of this program, which records its telemetry. */
export class JobLauncher {
  constructor(
    private readonly config: JobLauncherConfig,
    private readonly clock: Clock,
  ) {}

  /** Returns the environment of a job's commands, without what `exec` adds. */
  environmentOf(job: JobDefinition): Readonly<Record<string, string | undefined>> {
    const { environment, credentials } = this.config;
    return { ...commandEnvironment(environment), ...job.variables, ...credentials() };
  }

  launch({ run, job, stepId, command, position }: StepLaunch): StepProcess {
    const { nodePath, entryPath, dataFolder } = this.config;
    // Text from a request, for example its reason, must not get into command lines.
    const names = { job: run.job, environment: run.environment, project: run.project };
    const flags = Object.entries(names).flatMap(([name, value]) => (value === null ? [] : [`--${name}=${value}`]));
    // This bridge owns the folder; records that `exec` cannot send are imported by its next start.
    const where = [`--config=${devNull}`, `--data-dir=${dataFolder}`];
    return new StepProcess(
      {
        program: nodePath,
        args: [
          entryPath,
          'exec',
          ...where,
          `--run-id=${run.runKey}`,
          `--step-id=${stepId}`,
          ...flags,
          '--',
          ...command,
        ],
        workingDir: job.workingDir,
        environment: withRunIdentity(this.environmentOf(job), position),
      },
      this.clock,
    );
  }
}

/** Removes variables that are meant for this program: its export settings, its secrets and its caller's trace. */
function commandEnvironment(variables: Readonly<Record<string, string | undefined>>) {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => !FOR_THIS_PROGRAM.test(name)));
}

const FOR_THIS_PROGRAM = /^(?:RUN_BRIDGE_.*|OTEL_.*|DATABASE_URL|TRACEPARENT|TRACESTATE|BAGGAGE)$/;

/** The output kept of a command, standard output and error together, in bytes: the last 256 KiB. */
export const MAX_OUTPUT_BYTES = 256 * 1024;
/** How long processes that a command left behind may keep its output open, in milliseconds. */
const OUTPUT_GRACE_MS = 500;

/** A program to start. */
export interface ProgramStart {
  readonly program: string;
  readonly args: readonly string[];
  readonly workingDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A running program in its own session and process group, so that its whole process tree can be ended. */
export class StepProcess {
  readonly output = new OutputTail(MAX_OUTPUT_BYTES);
  /** Resolves when the program has ended and its output was read. */
  readonly ended: Promise<CommandEnding>;
  private readonly child: ChildProcess | undefined;
  private hasEnded = false;

  constructor(
    { program, args, workingDir, environment }: ProgramStart,
    private readonly clock: Clock,
  ) {
    if (!existsSync(workingDir)) {
      this.ended = Promise.resolve({ kind: 'notStarted', reason: `working-dir ${workingDir} is not there` });
      return;
    }
    try {
      this.child = fileMask.asCaller(() =>
        spawn(program, args, {
          cwd: workingDir,
          env: environment,
          detached: true,
          stdio: ['ignore', 'pipe', 'pipe'],
        }),
      );
    } catch (error) {
      // The system refuses some starts immediately, for example with too long an argument list.
      this.ended = Promise.resolve(notStarted(error));
      return;
    }
    this.ended = this.watch(this.child);
  }

  /** The process id; `undefined` if the program could not be started. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Sends a signal to the program. */
  signal(signal: NodeJS.Signals): void {
    // After a failed start for lack of file descriptors, Node 20 has no process here and would signal the group of this program.
    if (!this.hasEnded && this.pid !== undefined) this.child?.kill(signal);
  }

  /** Sends a signal to all descendants of the program but not to the program, which has to report how they ended. */
  signalOffspring(signal: NodeJS.Signals): void {
    const { pid } = this;
    if (this.hasEnded || pid === undefined) return;
    const [, ...offspring] = processTree(pid);
    if (offspring.length === 0) this.signal(signal);
    else signalProcesses(offspring, signal);
  }

  /** Kills the program and its process group at once. */
  kill(): void {
    const { pid } = this;
    if (pid !== undefined && !this.hasEnded) signalProcesses([-pid], 'SIGKILL');
  }

  private async watch(child: ChildProcess): Promise<CommandEnding> {
    const closed = new AbortController();
    child.once('close', () => closed.abort());
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => this.output.add(chunk));
      stream?.on('error', () => undefined);
    }
    const ending = await new Promise<CommandEnding>((resolve) => {
      // This event is also emitted for each signal that may not be sent, for example to a program of another user.
      child.on('error', (error) => {
        if (child.pid === undefined) resolve(notStarted(error));
      });
      child.once('exit', (exitCode, signal) => {
        this.hasEnded = true;
        resolve(signal === null ? { kind: 'exited', exitCode: exitCode ?? 0 } : { kind: 'killed', signal });
      });
    });
    this.hasEnded = true;
    if (ending.kind === 'notStarted') return ending;
    // Descendants must not outlive the program: nobody would notice their end.
    if (ending.kind === 'killed' && child.pid !== undefined) signalProcesses([-child.pid], 'SIGKILL');
    await pause(this.clock, OUTPUT_GRACE_MS, closed.signal);
    child.stdout?.destroy();
    child.stderr?.destroy();
    return ending;
  }
}

function notStarted(error: unknown): CommandEnding {
  return { kind: 'notStarted', reason: errorCode(error) ?? String(error) };
}

/** Keeps the last `maxBytes` of a command's output. */
export class OutputTail {
  private readonly chunks: Buffer[] = [];
  private keptBytes = 0;
  private totalBytes = 0;

  constructor(private readonly maxBytes: number) {}

  add(chunk: Buffer): void {
    this.totalBytes += chunk.byteLength;
    // A view of a larger chunk would keep the whole chunk in memory.
    const kept = chunk.byteLength > this.maxBytes ? Buffer.from(chunk.subarray(-this.maxBytes)) : chunk;
    this.chunks.push(kept);
    this.keptBytes += kept.byteLength;
    for (;;) {
      const first = this.chunks[0];
      if (first === undefined || this.keptBytes - first.byteLength < this.maxBytes) return;
      this.chunks.shift();
      this.keptBytes -= first.byteLength;
    }
  }

  /** The captured output; begins at the start of a line if something before it was discarded. */
  get text(): string {
    const kept = Buffer.concat(this.chunks).subarray(-this.maxBytes);
    if (kept.byteLength === this.totalBytes) return kept.toString('utf8');
    const lineStart = kept.indexOf(LINE_FEED) + 1;
    return kept.subarray(lineStart === kept.byteLength ? 0 : lineStart).toString('utf8');
  }

  /** The number of bytes before it that were discarded. */
  get droppedBytes(): number {
    return this.totalBytes - Math.min(this.keptBytes, this.maxBytes);
  }
}

const LINE_FEED = 0x0a;
