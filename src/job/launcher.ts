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

/** What it takes to run a command under `exec`. */
export interface JobLauncherConfig {
  /** Path of the program that runs JavaScript, and of this program's entry. */
  readonly nodePath: string;
  readonly entryPath: string;
  readonly dataFolder: string;
  /** Environment of this program. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** What `exec` needs in its environment to be let in; asked for with each command. */
  readonly credentials: () => Readonly<Record<string, string>>;
}

/** One command of a run. */
export interface StepLaunch {
  readonly run: JobRunRow;
  readonly job: JobDefinition;
  readonly stepId: string;
  readonly command: readonly string[];
  /** The step as it was registered; its run is named in the command's environment. */
  readonly place: StepPosition;
}

/** Starts commands of jobs as steps of their runs: each under an `exec` of this program, which keeps its telemetry. */
export class JobLauncher {
  constructor(
    private readonly config: JobLauncherConfig,
    private readonly clock: Clock,
  ) {}

  /** The environment that a job's commands get, but for what `exec` adds. */
  environmentOf(job: JobDefinition): Readonly<Record<string, string | undefined>> {
    const { environment, credentials } = this.config;
    return { ...commandEnvironment(environment), ...job.variables, ...credentials() };
  }

  launch({ run, job, stepId, command, place }: StepLaunch): StepProcess {
    const { nodePath, entryPath, dataFolder } = this.config;
    // Text from a request, its reason for example, stays away from command lines.
    const names = { job: run.job, environment: run.environment, project: run.project };
    const flags = Object.entries(names).flatMap(([name, value]) => (value === null ? [] : [`--${name}=${value}`]));
    // This bridge itself owns the folder: records that cannot be handed over are imported by its next start.
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
        environment: withRunIdentity(this.environmentOf(job), place),
      },
      this.clock,
    );
  }
}

/** Commands do not inherit what is meant for this program: where it exports to, its own secrets, and its caller's trace. */
function commandEnvironment(own: Readonly<Record<string, string | undefined>>) {
  return Object.fromEntries(Object.entries(own).filter(([name]) => !OWN.test(name)));
}

const OWN = /^(?:RUN_BRIDGE_.*|OTEL_.*|DATABASE_URL|TRACEPARENT|TRACESTATE|BAGGAGE)$/;

/** Maximum output kept of one command, standard output and error together, in bytes: the last 256 KiB. */
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
  /** Resolves when it has ended and its output was read. */
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
      // What the system refuses before it even looks: an argument list that is too long, for example.
      this.ended = Promise.resolve(notStarted(error));
      return;
    }
    this.ended = this.watch(this.child);
  }

  /** `undefined` where it could not be started. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Sends a signal to the program itself. */
  signal(signal: NodeJS.Signals): void {
    // Node 20 sends it to the process group of this one until it reports that no more files could be opened for a child.
    if (!this.hasEnded && this.pid !== undefined) this.child?.kill(signal);
  }

  /** Sends a signal to all descendants of the program, but not to itself: it has to report how they ended. */
  signalOffspring(signal: NodeJS.Signals): void {
    const { pid } = this;
    if (this.hasEnded || pid === undefined) return;
    const [, ...offspring] = processTree(pid);
    if (offspring.length === 0) this.signal(signal);
    else signalProcesses(offspring, signal);
  }

  /** Ends the program and everything in its process group at once. */
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
      // Also each signal that may not be sent, to a program of another user for example, is such an event.
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
    // Its descendants must not outlive it: nobody would notice their end.
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
    // A view of a larger chunk would keep all of it.
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

  /** The captured output, from the start of a line if something before it was discarded. */
  get text(): string {
    const kept = Buffer.concat(this.chunks).subarray(-this.maxBytes);
    if (kept.byteLength === this.totalBytes) return kept.toString('utf8');
    const lineStart = kept.indexOf(LINE_FEED) + 1;
    return kept.subarray(lineStart === kept.byteLength ? 0 : lineStart).toString('utf8');
  }

  /** Number of bytes before it that were discarded. */
  get droppedBytes(): number {
    return this.totalBytes - Math.min(this.keptBytes, this.maxBytes);
  }
}

const LINE_FEED = 0x0a;
