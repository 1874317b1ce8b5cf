import type { Worker } from 'node:worker_threads';
import { startBoundedThread } from '../component/bounded-thread.js';
import { systemClock } from '../component/clock.js';
import { packageFile } from '../component/package-file.js';
import type { Stretch, StretchLimits, StretchStep } from './encode-stretch.js';
import type { StretchAnswer, StretchJob } from './stretch-worker.js';

interface Running {
  readonly onStep: (step: StretchStep) => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A thread that encodes stretches of files, one at a time. It has about 15 MB of its own; `end` gives them back. */
export class StretchThread {
  private readonly worker: Worker;
  private running: Running | undefined;

  constructor(limits: StretchLimits) {
    // Options of the process itself, such as what its script is, are not meant for the thread.
    const options = { workerData: limits, execArgv: [] };
    this.worker = startBoundedThread(packageFile('dist/stretch-worker.js'), options, systemClock);
    this.worker.on('message', (answer: StretchAnswer) => {
      if (answer === 'done') this.settle()?.resolve();
      else this.running?.onStep(answer);
    });
    this.worker.on('error', (error) => this.settle()?.reject(error));
    this.worker.on('exit', () => this.settle()?.reject(new Error('the thread that writes Parquet has ended')));
  }

  /**
   * Encodes a stretch of an open file, which has to stay open.
   * @throws what the file system throws when the file cannot be read; the thread is not to be used any more then.
   */
  encode(file: number, stretch: Stretch, onStep: (step: StretchStep) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.running = { onStep, resolve, reject };
      this.worker.postMessage({ file, stretch } satisfies StretchJob);
    });
  }

  /** Ends the thread, whatever it does. */
  async end(): Promise<void> {
    await this.worker.terminate();
  }

  private settle(): Running | undefined {
    const { running } = this;
    this.running = undefined;
    return running;
  }
}
