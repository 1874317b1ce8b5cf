import type { Clock, Timer } from '../core/clock.js';
import { lazy } from '../core/lazy.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { startThread, type Thread } from '../core/thread.js';
import type { DamagedLine } from './invocation-files.js';
import type { ParquetJob, ParquetJobWriter } from './run-parquet.js';

/** What the thread's owner works with. */
interface ParquetThreadDeps {
  /** The thread's program, compiled. */
  readonly entry: URL;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Jobs of logs up to this length, in bytes, are done without the thread, between other things. Default: none. */
  readonly maxOwnBytes?: number;
}

/**
 * How long the thread stays when it has nothing to do, in milliseconds: the next run finds its code compiled, which halves
 * what a file costs, and a process at rest does not carry its 30 MB.
 */
const IDLE_MS = 30_000;

/**
 * Writes Parquet in a thread, so that no request waits for it; logs up to `maxOwnBytes` in this thread. The other one is started for
 * the first job and ends when none came for a while; one that dies fails its job only, and the next job starts another.
 */
export class ParquetThread implements Component, ParquetJobWriter {
  readonly name = 'Parquet';
  private thread: Thread<ParquetThreadCalls> | undefined;
  private idleTimer: Timer | undefined;
  private isStopped = false;
  private readonly ownFiles = lazy(async () => {
    const { createJobFiles } = await import('./invocation-files.js');
    return createJobFiles(this.setup.dataFolder, (line) => this.warn(line));
  });

  constructor(
    private readonly setup: ParquetThreadSetup,
    private readonly deps: ParquetThreadDeps,
  ) {}

  /** Whether there is a thread now. */
  get isRunning(): boolean {
    return this.thread !== undefined;
  }

  async start(): Promise<void> {}

  /** @throws Error also when the thread died, or the program is stopping; then it is written after the next start. */
  async write(job: ParquetJob): Promise<void> {
    if (this.isStopped) throw new Error('the program is stopping');
    if (job.logBytes <= (this.deps.maxOwnBytes ?? 0)) {
      await (await this.ownFiles.get()).write(job);
      return;
    }
    this.idleTimer?.cancel();
    const thread = this.thread ?? this.begin();
    try {
      await thread.channel.ask('write', job);
    } finally {
      this.idleTimer = this.deps.clock.after(IDLE_MS, () => void this.end());
    }
  }

  /** The components that give it jobs have ended before. A file that is not complete then stays without its name. */
  async shutdown(): Promise<void> {
    this.isStopped = true;
    this.idleTimer?.cancel();
    await this.end();
  }

  private begin(): Thread<ParquetThreadCalls> {
    const { entry, clock } = this.deps;
    const thread = startThread<ParquetThreadCalls, ParquetStarterCalls>(
      {
        entry,
        clock,
        workerData: this.setup,
        // Options of the process itself, such as what its script is, are not meant for the thread.
        execArgv: [],
        endMessage: () => (this.isStopped ? 'the program is stopping' : 'the Parquet thread has ended'),
      },
      { damaged: (line) => this.warn(line) },
    );
    this.thread = thread;
    void thread.ended.then(() => {
      if (this.thread === thread) this.thread = undefined;
    });
    return thread;
  }

  private warn({ traceId, at, reason }: DamagedLine): void {
    this.deps.logger.warn({ traceId, ...at, reason }, 'skipped a damaged line');
  }

  private async end(): Promise<void> {
    const { thread } = this;
    this.thread = undefined;
    await thread?.terminate();
  }
}

/** What the thread is started with. */
export interface ParquetThreadSetup {
  readonly dataFolder: string;
}

/** What the thread offers: it writes one job at a time. */
export interface ParquetThreadCalls {
  write(job: ParquetJob): Promise<void>;
}

/** What it may call. */
export interface ParquetStarterCalls {
  /** A line of the record log is no record. */
  damaged(line: DamagedLine): void;
}
