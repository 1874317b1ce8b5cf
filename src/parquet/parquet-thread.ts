import type { Worker } from 'node:worker_threads';
import { startBoundedThread } from '../core/bounded-thread.js';
import type { Clock, Timer } from '../core/clock.js';
import type { Component } from '../core/component.js';
import type { Logger } from '../core/logger.js';
import type { ParquetJob, ParquetJobWriter } from './run-parquet.js';

/** What the thread's owner works with. */
interface ParquetThreadDeps {
  /** The thread's program, compiled. */
  readonly entry: URL;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A job that the thread has. */
interface Running {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
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
  private worker: Worker | undefined;
  private running: Running | undefined;
  private idleTimer: Timer | undefined;
  private isStopped = false;

  constructor(
    private readonly setup: ParquetThreadSetup,
    private readonly deps: ParquetThreadDeps,
  ) {}

  /** Whether there is a thread now. */
  get isRunning(): boolean {
    return this.worker !== undefined;
  }

  async start(): Promise<void> {}

  /** @throws Error also when the thread died, or the program is stopping; then it is written after the next start. */
  async write(job: ParquetJob): Promise<void> {
    if (this.isStopped) throw new Error('the program is stopping');
    this.idleTimer?.cancel();
    const worker = this.worker ?? this.begin();
    try {
      await new Promise<void>((resolve, reject) => {
        this.running = { resolve, reject };
        worker.postMessage(job satisfies ToParquetThread);
      });
    } finally {
      this.running = undefined;
      this.idleTimer = this.deps.clock.after(IDLE_MS, () => void this.end());
    }
  }

  /** Whoever gives it jobs has ended before. A file that is not complete then stays without its name. */
  async shutdown(): Promise<void> {
    this.isStopped = true;
    this.idleTimer?.cancel();
    await this.end();
  }

  private begin(): Worker {
    // Options of the process itself, such as what its script is, are not meant for the thread.
    const options = { workerData: this.setup, execArgv: [] };
    const worker = startBoundedThread(this.deps.entry, options, this.deps.clock);
    this.worker = worker;
    worker.on('message', (message: FromParquetThread) => this.take(message));
    worker.on('error', (error) => this.lost(worker, error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', () => this.lost(worker, new Error('the Parquet thread has ended')));
    return worker;
  }

  private take(message: FromParquetThread): void {
    if (message.type === 'damaged') {
      const { traceId, at, reason } = message;
      this.deps.logger.warn({ traceId, ...at, reason }, 'skipped a damaged line');
    } else if (message.error === null) {
      this.running?.resolve();
    } else {
      this.running?.reject(new Error(message.error));
    }
  }

  private lost(worker: Worker, reason: Error): void {
    if (this.worker !== worker) return;
    this.worker = undefined;
    this.running?.reject(reason);
  }

  private async end(): Promise<void> {
    const { worker, running } = this;
    this.worker = undefined;
    await worker?.terminate();
    running?.reject(new Error('the program is stopping'));
  }
}

/** What the thread is started with. */
export interface ParquetThreadSetup {
  readonly dataFolder: string;
}

/** A job; the thread gets the next one when it has answered. */
export type ToParquetThread = ParquetJob;

/** What it answers. */
export type FromParquetThread =
  /** A line of the record log is no record; at its number or, where the log was read in records, its offset in bytes. */
  | { readonly type: 'damaged'; readonly traceId: string; readonly at: LinePlace; readonly reason: string }
  /** The job is done, or failed: then `error` says why. */
  | { readonly type: 'done'; readonly error: string | null };

/** Where a line is. */
export type LinePlace = { readonly line: number } | { readonly offset: number };
