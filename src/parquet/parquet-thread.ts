import type { Clock, Timer } from '../core/clock.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { startThread, type Thread } from '../core/thread.js';
import type { ParquetJob, ParquetJobWriter } from './run-parquet.js';

/** What the thread's owner works with. */
interface ParquetThreadDeps {
  /** The thread's program, compiled. */
  readonly entry: URL;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * How long the thread stays when it has nothing to do, in milliseconds: the next run finds its code compiled, which halves
 * what a file costs, and a process at rest does not carry its 30 MB.
 */
const IDLE_MS = 30_000;

/**
 * Writes Parquet in a thread of its own, so that no request waits for it. The thread is started for the first job and ends
 * when none came for a while; one that dies fails its job only, and the next job starts another.
 */
export class ParquetThread implements Component, ParquetJobWriter {
  readonly name = 'Parquet';
  private thread: Thread<ParquetThreadCalls> | undefined;
  private idleTimer: Timer | undefined;
  private isStopped = false;

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
    const { entry, clock, logger } = this.deps;
    const thread = startThread<ParquetThreadCalls, ParquetStarterCalls>(
      {
        entry,
        clock,
        workerData: this.setup,
        // Options of the process itself, such as what its script is, are not meant for the thread.
        execArgv: [],
        endMessage: () => (this.isStopped ? 'the program is stopping' : 'the Parquet thread has ended'),
      },
      {
        damaged: ({ traceId, at, reason }) => logger.warn({ traceId, ...at, reason }, 'skipped a damaged line'),
      },
    );
    this.thread = thread;
    void thread.ended.then(() => {
      if (this.thread === thread) this.thread = undefined;
    });
    return thread;
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
  /** A line of the record log is no record; at its number or, where the log was read in records, its offset in bytes. */
  damaged(line: { readonly traceId: string; readonly at: LinePosition; readonly reason: string }): void;
}

/** Where a line is. */
export type LinePosition = { readonly line: number } | { readonly offset: number };
