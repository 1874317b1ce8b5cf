import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { type MessagePort, parentPort, type Transferable, Worker } from 'node:worker_threads';
import type { Clock } from './clock.js';
import { errorCode, reasonOf } from './errors.js';

/** The functions that one side of a channel offers the other. Each has one argument; arguments and results are copied. */
export type Calls<Side> = {
  readonly [Name in keyof Side]: (argument: never, deadline: AbortSignal) => unknown;
};

type Argument<Call> = Call extends (argument: infer Value, ...rest: never) => unknown ? Value : never;
type Result<Call> = Call extends (...all: never) => infer Value ? Awaited<Value> : never;

// TypeScript checks names and values where they are sent, against the types that both sides share.
type Message =
  | { readonly type: 'notify'; readonly name: never; readonly argument: never }
  | { readonly type: 'ask'; readonly name: never; readonly argument: never; readonly id: number }
  | { readonly type: 'abort'; readonly id: number }
  | { readonly type: 'result'; readonly id: number; readonly value: never }
  | { readonly type: 'failure'; readonly id: number; readonly reason: string; readonly code: string | undefined };

/** A call whose result has not arrived yet. */
interface Question {
  resolve(value: never): void;
  reject(reason: Error): void;
}

/**
 * A channel on which a thread and its starter call each other's functions: `notify` does not wait, `ask` waits for the result.
 * @typeParam Remote the functions of the other side
 */
export class Channel<Remote extends Calls<Remote>> {
  private readonly questions = new Map<number, Question>();
  /** The deadlines of the other side's calls that are in progress. */
  private readonly deadlines = new Map<number, AbortController>();
  private nextId = 1;
  private ended: Error | undefined;

  constructor(private readonly port: Worker | MessagePort) {}

  /** Starts to handle calls with the functions of this side; earlier calls were queued. To be called once. */
  serve<Local extends Calls<Local>>(local: Local): void {
    this.port.on('message', (message: Message) => this.take(local, message));
  }

  /** Calls a function of the other side without waiting; does nothing if that side has ended. @param transfer is moved there instead of copied */
  notify<Name extends keyof Remote>(name: Name, argument: Argument<Remote[Name]>, transfer?: readonly Transferable[]) {
    if (this.ended === undefined) this.port.postMessage({ type: 'notify', name, argument }, transfer);
  }

  /**
   * Calls a function of the other side and waits for its result.
   * @param deadline is passed to the function, which should return soon after it aborts
   * @throws Error what the function threw, with its message and code; or the reason why the other side has ended
   */
  ask<Name extends keyof Remote>(
    name: Name,
    argument: Argument<Remote[Name]>,
    deadline?: AbortSignal,
  ): Promise<Result<Remote[Name]>> {
    const { ended } = this;
    if (ended !== undefined) return Promise.reject(ended);
    const id = this.nextId++;
    const onAbort = () => this.port.postMessage({ type: 'abort', id });
    const answer = new Promise<Result<Remote[Name]>>((resolve, reject) => {
      this.questions.set(id, { resolve, reject });
      this.port.postMessage({ type: 'ask', name, argument, id });
      if (deadline?.aborted === true) onAbort();
      else deadline?.addEventListener('abort', onAbort, { once: true });
    });
    return answer.finally(() => deadline?.removeEventListener('abort', onAbort));
  }

  /** Fails pending calls because the other side has ended. @param reason the error they fail with */
  end(reason: Error): void {
    if (this.ended !== undefined) return;
    this.ended = reason;
    for (const { reject } of this.questions.values()) reject(reason);
    this.questions.clear();
  }

  private take<Local extends Calls<Local>>(local: Local, message: Message): void {
    if (this.ended !== undefined) return;
    switch (message.type) {
      case 'notify':
        call(local, message.name, message.argument, NEVER);
        return;
      case 'ask':
        void this.answer(local, message);
        return;
      case 'abort':
        this.deadlines.get(message.id)?.abort();
        return;
      case 'result':
        this.questions.get(message.id)?.resolve(message.value);
        break;
      case 'failure':
        this.questions.get(message.id)?.reject(toError(message));
        break;
    }
    this.questions.delete(message.id);
  }

  private async answer<Local extends Calls<Local>>(
    local: Local,
    { id, name, argument }: Extract<Message, { type: 'ask' }>,
  ): Promise<void> {
    const deadline = new AbortController();
    this.deadlines.set(id, deadline);
    try {
      const value = await call(local, name, argument, deadline.signal);
      this.port.postMessage({ type: 'result', id, value });
    } catch (error) {
      this.port.postMessage({ type: 'failure', id, reason: reasonOf(error), code: errorCode(error) });
    } finally {
      this.deadlines.delete(id);
    }
  }
}

function call<Local extends Calls<Local>, Name extends keyof Local>(
  local: Local,
  name: Name,
  argument: never,
  deadline: AbortSignal,
): unknown {
  return local[name](argument, deadline);
}

function toError({ reason, code }: Extract<Message, { type: 'failure' }>): Error {
  const error = new Error(reason);
  return code === undefined ? error : Object.assign(error, { code });
}

const NEVER = new AbortController().signal;

/** A started thread. @typeParam Remote the functions that it offers */
export interface Thread<Remote extends Calls<Remote>> {
  readonly channel: Channel<Remote>;
  /** Resolves with the reason when the thread has ended, expectedly or not. */
  readonly ended: Promise<Error>;
  /** Terminates the thread immediately. */
  terminate(): Promise<void>;
}

/** How a thread is started. */
export interface ThreadStart extends ThreadOptions {
  /** The compiled program of the thread; it calls `connectToStarter` first. */
  readonly entry: URL;
  /** Returns the message of the error with which pending calls fail when the thread has exited. */
  readonly endMessage: (exitCode: number) => string;
  readonly clock: Clock;
}

/** Starts a thread that is ended if it takes too much memory. @param local the functions that it may call */
export function startThread<Remote extends Calls<Remote>, Local extends Calls<Local>>(
  { entry, endMessage, clock, ...options }: ThreadStart,
  local: Local,
): Thread<Remote> {
  const worker = startBoundedThread(entry, options, clock);
  const channel = new Channel<Remote>(worker);
  channel.serve(local);
  const ended = new Promise<Error>((resolve) => {
    const end = (reason: unknown) => {
      const error = reason instanceof Error ? reason : new Error(reasonOf(reason));
      channel.end(error);
      resolve(error);
    };
    worker.on('messageerror', end);
    worker.on('error', end);
    worker.on('exit', (exitCode) => end(new Error(endMessage(exitCode))));
  });
  return {
    channel,
    ended,
    async terminate() {
      await worker.terminate();
    },
  };
}

/** Connects a thread to its starter; calls are handled after `serve`. @throws Error in the main thread */
export function connectToStarter<Remote extends Calls<Remote>>(): Channel<Remote> {
  if (parentPort === null)
    throw new Error('this file is the program of a worker thread; start run-bridge with dist/main.js');
  return new Channel<Remote>(parentPort);
}

/** Options of a bounded thread. */
export interface ThreadOptions {
  readonly workerData: unknown;
  /** Heap limit of the thread, in MiB; by default nearly that of the main thread. */
  readonly maxHeapMib?: number;
  /** Node options of the thread. Default: those of the process. */
  readonly execArgv?: string[];
}

/** The interval at which a thread's heap is measured, in milliseconds. Each measurement takes 30 µs of CPU. */
const LOOK_MS = 200;
const MIB = 2 ** 20;

/** A worker of Node 22.16 or later, which answers in the middle of a loop, too. */
interface MeasuredWorker {
  getHeapStatistics(): Promise<{ readonly used_heap_size: number }>;
}

/**
 * Starts a thread that is ended, with an 'error' event, when its heap takes too much. Up to Node 22 the worker's resource limits do that. From Node 24 on V8 often aborts the whole process at that
 * limit, so the thread gets twice the limit and is ended at one and a half times the limit: V8 collects garbage at the latest halfway between live memory and its limit, so a thread that has taken
 * that much has more than its limit alive. A single allocation (an object with millions of keys, on Node 20 a Map as well) that exceeds what is left below V8's limit still aborts the process.
 */
export function startBoundedThread(entry: URL, options: ThreadOptions, clock: Clock): Worker {
  const { workerData, execArgv } = options;
  const isMeasured = 'getHeapStatistics' in Worker.prototype;
  const maxHeapMib = options.maxHeapMib ?? Math.floor(getHeapStatistics().heap_size_limit / MIB / (isMeasured ? 2 : 1));
  // Loops that V8 compiles with this optimization may never check whether they are to end or to answer.
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
    // A thread that is still starting cannot answer; on a busy machine the start takes longer than this interval.
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
