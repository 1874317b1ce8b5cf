import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { Clock } from './clock.js';

/** How a thread is started. */
export interface ThreadOptions {
  readonly workerData: unknown;
  /** Heap limit of the thread, in MiB; by default nearly that of the main thread. */
  readonly maxHeapMib?: number;
  /** The process's own options are inherited by default. */
  readonly execArgv?: string[];
}

/** How often a thread is asked what its objects take, in milliseconds. Its answer costs 30 µs of CPU. */
const LOOK_MS = 200;
const MIB = 2 ** 20;

/** What Node's workers have from 22.16 on: an answer in the midst of a loop too. */
interface MeasuredWorker {
  getHeapStatistics(): Promise<{ readonly used_heap_size: number }>;
}

/**
 * Starts a thread that is ended, with an 'error', when its objects take too much. Up to Node 22 a worker's resource limits
 * do that. From Node 24 on V8 often aborts the whole process at that limit, so the thread gets twice as much and is ended
 * below it: V8 collects garbage halfway between what is alive and the limit at the latest, so whoever has taken half as much
 * again as allowed has more alive than allowed. One table (an object with millions of keys, on Node 20 a Map as well) that
 * asks for more at a time than is left below V8's limit still makes V8 abort the process.
 */
export function startBoundedThread(entry: URL, options: ThreadOptions, clock: Clock): Worker {
  const { workerData, execArgv } = options;
  const isMeasured = 'getHeapStatistics' in Worker.prototype;
  const maxHeapMib = options.maxHeapMib ?? Math.floor(getHeapStatistics().heap_size_limit / MIB / (isMeasured ? 2 : 1));
  // Loops that V8 compiles with this optimization may never look whether they are to end, or to answer.
  if (isMeasured) setFlagsFromString('--no-turboshaft-loop-unrolling');
  const worker = new Worker(entry, {
    workerData,
    ...(execArgv === undefined ? {} : { execArgv }),
    resourceLimits: { maxOldGenerationSizeMb: isMeasured ? maxHeapMib * 2 : maxHeapMib },
  });
  if (canMeasure(worker)) watch(worker, maxHeapMib, clock);
  return worker;
}

function canMeasure(worker: Worker): worker is Worker & MeasuredWorker {
  return 'getHeapStatistics' in worker;
}

function watch(worker: Worker & MeasuredWorker, maxHeapMib: number, clock: Clock): void {
  let hasEnded = false;
  const look = async () => {
    // One that is still being started cannot be asked: that takes longer than a look where processors are short.
    const statistics = await worker.getHeapStatistics().catch(() => undefined);
    if (hasEnded) return;
    if (statistics === undefined || statistics.used_heap_size <= maxHeapMib * MIB * 1.5) {
      timer = clock.after(LOOK_MS, look);
      return;
    }
    worker.emit('error', new Error(`it used more memory than its limit of ${maxHeapMib} MiB`));
    await worker.terminate();
  };
  let timer = clock.after(LOOK_MS, look);
  worker.once('exit', () => {
    hasEnded = true;
    timer.cancel();
  });
}
