import type { Attributes } from '@opentelemetry/api';
import type { InstrumentationScope } from '@opentelemetry/core';
import type { SignalEndpoint } from '../config/destination-config.js';
import type { Clock, Timer } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { LogFields, Logger } from '../core/logger.js';
import { startThread, type Thread } from '../core/thread.js';
import { type BatchOutcome, BROKEN_OFF, type Destination, retryable, TAKES_NO_LOGS } from './destination.js';
import { ExportGroup } from './wire/export-group.js';
import type { ItemBatch } from './wire/export-request.js';
import { countOf, type ItemRange, WindowWriter } from './wire/item-window.js';

/** An exporter that is not this program's own, and what its thread makes it of. */
export interface ExporterSetup {
  /** The destination's. */
  readonly name: string;
  /** How long it may take for a batch. */
  readonly timeoutMs: number;
  /** OpenTelemetry's own for OTLP, or the module at a path. */
  readonly exporter:
    | { readonly kind: 'otlp'; readonly endpoint: SignalEndpoint; readonly userAgent: string }
    | { readonly kind: 'module'; readonly path: string };
}

/** What an exporter's thread offers. */
export interface ExporterCalls {
  /** Makes the exporter. @throws Error why it cannot be made */
  open(nothing: undefined): Promise<void>;
  send(spans: PackedSpans, abort: AbortSignal): Promise<BatchOutcome>;
  close(nothing: undefined): Promise<void>;
  /** Memory is short. */
  collectGarbage(nothing: undefined): void;
}

/** What an exporter's thread may call. */
export interface ExporterStarterCalls {
  log(line: { readonly level: keyof Logger; readonly fields: LogFields; readonly message: string }): void;
}

/** What an exporter's thread is started with. */
export interface ExporterThreadDeps {
  /** The thread's program, compiled. */
  readonly entry: URL;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What the program may take, in bytes. */
  readonly maxMemoryBytes: number;
}

/** The threads of all exporters that are not this program's own. */
export class ExporterThreads {
  private readonly threads: ExporterThread[] = [];

  constructor(private readonly deps: ExporterThreadDeps) {}

  /** Makes one that is not started. */
  create(setup: ExporterSetup): ExporterThread {
    const thread = new ExporterThread(setup, this.deps);
    this.threads.push(thread);
    return thread;
  }

  /** Ends them at once. */
  async terminate(): Promise<void> {
    await Promise.all(this.threads.map((thread) => thread.terminate()));
  }

  /** Has them free what nothing refers to any more, soon. */
  collectGarbage(): void {
    for (const thread of this.threads) thread.collectGarbage();
  }
}

/** The part of the program's memory that the heap of such a thread may take, at most. */
const HEAP_PART = 0.5;
const MIN_HEAP_MIB = 128;
/** A thread that does not settle what was broken off does not keep others waiting any longer than this, in milliseconds. */
const GRACE_MS = 1_000;

/**
 * A destination whose exporter is not this program's own: it runs in a thread of its own, so that whatever it does keeps nobody waiting who sends
 * telemetry, nor other destinations. A thread that dies is started anew with the next attempt, and the batch is sent again.
 */
export class ExporterThread implements Destination {
  readonly signals = ['traces'] as const;
  readonly maxInFlight = 1;
  private thread: Thread<ExporterCalls> | undefined;
  private opening: Promise<Thread<ExporterCalls>> | undefined;
  private hasDied = false;
  private isEnding = false;

  constructor(
    private readonly setup: ExporterSetup,
    private readonly deps: ExporterThreadDeps,
  ) {}

  get name(): string {
    return this.setup.name;
  }

  /** Starts the thread, and makes the exporter there. @throws Error why it cannot be made */
  async open(): Promise<void> {
    await this.opened();
  }

  send(batch: ItemBatch, abort: AbortSignal): Promise<BatchOutcome> {
    if (batch.signal === 'logs') {
      return Promise.resolve({ result: TAKES_NO_LOGS, itemCount: countOf(batch.ranges) });
    }
    const spans = packSpans(batch.ranges);
    const itemCount = spans.ends.length;
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const settle = (outcome: BatchOutcome) => {
        timer?.cancel();
        abort.removeEventListener('abort', onAbort);
        resolve(outcome);
      };
      const onAbort = () => {
        timer = this.deps.clock.after(GRACE_MS, () => settle({ result: BROKEN_OFF, itemCount }));
      };
      if (abort.aborted) onAbort();
      else abort.addEventListener('abort', onAbort, { once: true });
      this.opened()
        .then(({ channel }) => channel.ask('send', spans, abort))
        .then(settle, (error: unknown) => settle({ result: retryable(reasonOf(error)), itemCount }));
    });
  }

  /** Shuts the exporter down, and ends its thread. */
  async close(): Promise<void> {
    this.isEnding = true;
    try {
      await this.thread?.channel.ask('close', undefined);
    } finally {
      await this.terminate();
    }
  }

  /** Ends the thread at once. */
  async terminate(): Promise<void> {
    this.isEnding = true;
    await this.thread?.terminate();
  }

  /** Has the thread free what nothing refers to any more, soon. */
  collectGarbage(): void {
    this.thread?.channel.notify('collectGarbage', undefined);
  }

  private opened(): Promise<Thread<ExporterCalls>> {
    if (this.isEnding) return Promise.reject(new Error('the exporter is shut down'));
    this.opening ??= this.begin().catch((error: unknown) => {
      this.opening = undefined;
      throw error;
    });
    return this.opening;
  }

  private async begin(): Promise<Thread<ExporterCalls>> {
    const { clock, logger, maxMemoryBytes, entry } = this.deps;
    const maxHeapMib = Math.max(MIN_HEAP_MIB, Math.floor((maxMemoryBytes * HEAP_PART) / 2 ** 20));
    const endMessage = (exitCode: number) => `it ended by itself with code ${exitCode}`;
    const thread = startThread<ExporterCalls, ExporterStarterCalls>(
      { entry, workerData: this.setup, maxHeapMib, endMessage, clock },
      { log: ({ level, fields, message }) => logger[level]({ destination: this.name, ...fields }, message) },
    );
    this.thread = thread;
    try {
      await thread.channel.ask('open', undefined);
    } catch (error) {
      this.thread = undefined;
      await thread.terminate();
      throw error;
    }
    void thread.ended.then((reason) => this.lost(reason));
    if (this.hasDied) logger.info({ destination: this.name }, 'the exporter is running again');
    return thread;
  }

  private lost(reason: Error): void {
    this.thread = undefined;
    this.opening = undefined;
    if (this.isEnding) return;
    this.hasDied = true;
    this.deps.logger.error(
      { destination: this.name, error: reasonOf(reason) },
      'the exporter ended unexpectedly; it is started anew and gets again what it had not taken, no data is lost',
    );
  }
}

/** The resource and scope that spans have in common. */
interface PackedGroup {
  readonly attributes: Attributes;
  readonly scope: InstrumentationScope;
}

/** Spans on their way to another thread, which are not copied one by one: their bytes, and numbers beside them. */
export interface PackedSpans {
  /** Each as it stands in a ScopeSpans, one behind the other. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where each ends in them. */
  readonly ends: Uint32Array;
  /** Which of the groups each belongs to. */
  readonly groupOf: Uint32Array;
  readonly groups: readonly PackedGroup[];
}

/**
 * A batch has so many bytes at most, in OTLP's protobuf; a single span that is larger goes alone. Exporters send a batch as
 * one request, in JSON often twice as large, and receivers refuse what is too large for them.
 */
const MAX_BATCH_BYTES = 2 * 1024 * 1024;

/** Packs as many spans from the front as an exporter gets at a time; at least one. */
export function packSpans(ranges: readonly ItemRange[]): PackedSpans {
  const parts: Uint8Array[] = [];
  const ends: number[] = [];
  const groupOf: number[] = [];
  const numbers = new Map<ExportGroup, number>();
  let byteCount = 0;
  for (const { window, from, to } of ranges) {
    for (let index = from; index < to; index++) {
      const [start, end] = [window.startOf(index), window.endOf(index)];
      if (parts.length > 0 && byteCount + end - start > MAX_BATCH_BYTES) return packed();
      const number = numbers.get(window.group) ?? numbers.size;
      numbers.set(window.group, number);
      byteCount += end - start;
      parts.push(window.block.out.bytes.subarray(start, end));
      ends.push(byteCount);
      groupOf.push(number);
    }
  }
  return packed();

  function packed(): PackedSpans {
    const bytes = new Uint8Array(byteCount);
    for (const [index, part] of parts.entries()) bytes.set(part, ends[index - 1] ?? 0);
    const groups = Array.from(numbers.keys(), ({ resource, scope }) => ({ attributes: resource.attributes, scope }));
    return { bytes, ends: Uint32Array.from(ends), groupOf: Uint32Array.from(groupOf), groups };
  }
}

/** Unpacks the spans that were packed. */
export function unpackSpans({ bytes, ends, groupOf, groups }: PackedSpans): readonly ItemRange[] {
  const known = groups.map(({ attributes, scope }) => new ExportGroup(attributes, scope));
  const windows = new WindowWriter();
  let start = 0;
  for (const [index, end] of ends.entries()) {
    const group = known[groupOf[index] ?? 0];
    const out = windows.begin();
    out.raw(bytes.subarray(start, end));
    if (group !== undefined) windows.add('traces', group, 0);
    start = end;
  }
  return windows.take().traces;
}
