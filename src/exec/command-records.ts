import { type Clock, pause } from '../core/clock.js';
import { LineReader, type Reject, type TailChunk, type TailPosition } from '../files/feature.js';
import { CellBatch, ENDED, FIELD, type ItemChunk, STARTED, withResource } from '../otlp/wire/item-chunk.js';
import { type ItemKeys, readItemKeys } from '../otlp/wire/item-keys.js';
import { digestedOfCells } from '../otlp/wire/line-chunk.js';
import type { DecodedRequest } from '../otlp/wire/wire-decoder.js';
import { type Resource, UNKNOWN_RESOURCE } from '../record/attributes.js';
import { type Digest, type Digested, logDigest } from '../record/log-digest.js';
import type { Delivery, RecordBatch, RecordConsumer, Signal } from '../record/record-batch.js';
import { SpanIdTable, spanIdHalves } from '../record/span-id-table.js';
import type { LogRecord, SpanEnd, SpanStart, TelemetryRecord, TraceId } from '../record/telemetry-record.js';
import type { BufferedRequest, BufferedRequests } from './buffered-requests.js';
import { isProcess } from './command-steps.js';

/** What the records of one wrapped command come from and go to. */
export interface CommandRecordsDeps {
  /** Lines of the engine's JSONL while it is written; they end after `finish()`. */
  readonly lines: AsyncIterable<TailChunk> | Iterable<TailChunk>;
  /** Whether others may write to the JSONL, too: then its traces are the command's which come over OTLP as well. */
  readonly isShared: boolean;
  /** Whether somebody writes to the JSONL now, as far as that can be known. */
  readonly isWritten: () => Promise<boolean>;
  /** Called once for each trace that is known to be the command's. */
  readonly onTrace: (traceId: TraceId) => void;
  /** Called once for each trace of which it is not known yet whether it is the command's. */
  readonly onSeen: (traceId: TraceId) => void;
  /** Whether the JSONL has more than what was taken of it, up to `taken`: it may be read late where processors are short. */
  readonly hasUnreadLines: (taken: TailPosition | undefined) => Promise<boolean>;
  readonly buffered: BufferedRequests;
  /** Reads a request in protobuf. */
  readonly decode: (signal: Signal, bytes: Uint8Array) => Promise<DecodedRequest>;
  /** Lines of the JSONL that are no records. */
  readonly onRejects: (rejects: readonly Reject[]) => Promise<void>;
  /** Takes everything; is asked again until it does, or `giveUp` aborts. */
  readonly target: RecordConsumer;
  /** Whether the engine sends OTLP at all, as far as is known. */
  readonly isOtlpExpected: boolean;
  readonly clock: Clock;
}

/** How long the JSONL of what came over OTLP is waited for, in milliseconds: the engine writes each line at once. */
const JSONL_GRACE_MS = 2_000;
/**
 * How often the JSONL of a trace looks for its resource, which comes over OTLP: 1.5 s, since the engine sends logs every
 * second. Looks are counted, not time: where processors are short, what has come is taken in between two of them.
 */
const RESOURCE_LOOKS = 30;
const RESOURCE_LOOK_MS = 50;
/** How often buffered requests are looked at, in milliseconds. */
const LOOK_MS = 250;
/** What lines may take in memory that are not known to be the command's, in characters. */
const MAX_UNNAMED_CHARACTERS = 64 * 1024 * 1024;

/**
 * Brings in the records of a command from both ways they come: the JSONL that the engine writes, which is complete, and
 * the OTLP that it sends, which is buffered until the JSONL has ended and gives what that lacks (a level filter, a full disk).
 * Where a trace has no JSONL, its OTLP is appended as it comes, after a short grace.
 */
export class CommandRecords {
  /** Which of their records the JSONL of each trace brought. */
  private readonly inJsonl = new Map<TraceId, JsonlKeys>();
  private readonly resources = new Map<TraceId, Resource>();
  private readonly firstOverOtlpMs = new Map<TraceId, number>();
  private readonly ended = new AbortController();
  /** Records of a shared JSONL, of traces that did not come over OTLP yet. */
  private readonly unnamed = new Map<TraceId, TelemetryRecord[]>();
  private unnamedCharacters = 0;
  /** How traces are treated that did not come over OTLP. */
  private unnamedAre: 'waiting' | 'of the command' | 'of others' = 'waiting';
  /** Those of engines that were killed before they could send. */
  private readonly killed = new Set<TraceId>();
  /** Lines are delivered one batch after the other. */
  private delivering: Promise<void> = Promise.resolve();
  private position: TailPosition | undefined;
  private readonly lineReader = new LineReader();

  constructor(private readonly deps: CommandRecordsDeps) {}

  /** Traces of the engine that were seen. */
  get traceIds(): ReadonlySet<TraceId> {
    return new Set([...this.inJsonl.keys(), ...this.firstOverOtlpMs.keys()]);
  }

  /**
   * Takes in a request without decoding it, where the JSONL has brought some of its trace: its lines are read once a second, so that it
   * waits for them, unless all have come.
   * @returns false for any other request, of which nothing was taken
   * @throws what `BufferedRequests.add` throws
   */
  async bufferUnread(signal: Signal, bytes: Uint8Array): Promise<boolean> {
    const items = readItemKeys(signal, bytes);
    // The first request of a trace says its resource.
    if (items === undefined || !this.firstOverOtlpMs.has(items.traceId)) return false;
    const keys = this.inJsonl.get(items.traceId);
    if (keys === undefined) return false;
    if (keys.hasAll(items)) return true;
    const sinceMs = this.deps.clock.monotonicMs();
    await this.deps.buffered.add({ signal, traceIds: [items.traceId], hasPassthrough: undefined, sinceMs }, bytes);
    return true;
  }

  /** Takes a request in: it is buffered, unless the JSONL has brought all of it. @throws what buffering it throws. */
  async buffer({ delivery }: DecodedRequest, signal: 'traces' | 'logs', bytes: Uint8Array): Promise<void> {
    const nowMs = this.deps.clock.monotonicMs();
    for (const { traceId, resource } of delivery.batches) {
      if (!this.firstOverOtlpMs.has(traceId)) {
        this.firstOverOtlpMs.set(traceId, nowMs);
        if (!this.inJsonl.has(traceId)) this.deps.onTrace(traceId);
      }
      if (!this.resources.has(traceId)) this.resources.set(traceId, resource);
    }
    const hasPassthrough = delivery.passthrough.length > 0;
    if (!hasPassthrough && this.isInJsonl(signal, bytes)) return;
    const traceIds = delivery.batches.map(({ traceId }) => traceId);
    await this.deps.buffered.add({ signal, traceIds, hasPassthrough, sinceMs: nowMs }, bytes);
  }

  /** Up to where the JSONL was taken, in bytes. */
  get takenBytes(): number {
    return this.position?.offset ?? 0;
  }

  /** Brings everything in until `end()` was called and nothing is left. @throws what the target throws for good. */
  async run(giveUp: AbortSignal): Promise<void> {
    await Promise.all([this.takeLines(giveUp), this.takeDueRequests(giveUp)]);
    await this.deps.buffered.drain(
      () => true,
      async ({ signal }, bytes) => {
        if (this.isInJsonl(signal, bytes)) return;
        await this.deliverRequest(signal, bytes, (delivery) => this.lacking(delivery));
      },
    );
  }

  /** The command has ended, and nothing more is written or sent. */
  end(): void {
    this.ended.abort();
  }

  private async takeLines(giveUp: AbortSignal): Promise<void> {
    for await (const { lines, rejects: others, position } of this.deps.lines) {
      giveUp.throwIfAborted();
      const { batches, rejects, release } = this.lineReader.read(lines);
      try {
        if (others.length + rejects.length > 0) await this.deps.onRejects([...others, ...rejects]);
        this.position = position ?? this.position;
        await this.inTurn(() => this.deliverLines(batches));
      } finally {
        release();
      }
    }
    await this.inTurn(async () => {
      await this.deliverUnnamed();
      await this.settleUnnamed();
    });
  }

  private async deliverLines(batches: readonly RecordBatch[]): Promise<void> {
    const taken: RecordBatch[] = [];
    for (const batch of batches) {
      const { traceId } = batch;
      // Behind those of its trace that still wait, though that has come over OTLP meanwhile.
      const hasWaiting = this.unnamed.has(traceId);
      if (this.isOfCommand(traceId) && !hasWaiting) taken.push(await this.noted(batch));
      else if (this.unnamedAre === 'waiting' || hasWaiting) this.wait(traceId, batch.records);
    }
    await this.deliver({ batches: taken, passthrough: [] });
    await this.deliverUnnamed();
    if (this.unnamedCharacters > MAX_UNNAMED_CHARACTERS) await this.settleUnnamed();
  }

  private isOfCommand(traceId: TraceId): boolean {
    const { isShared, isOtlpExpected } = this.deps;
    if (!isShared || !isOtlpExpected || this.unnamedAre === 'of the command') return true;
    return this.firstOverOtlpMs.has(traceId) || this.killed.has(traceId);
  }

  private wait(traceId: TraceId, records: readonly TelemetryRecord[]): void {
    const waiting = this.unnamed.get(traceId) ?? [];
    if (!this.unnamed.has(traceId)) this.deps.onSeen(traceId);
    this.unnamed.set(traceId, waiting);
    for (const record of records) {
      waiting.push(record);
      this.unnamedCharacters += record.line?.length ?? 0;
    }
  }

  /** Delivers what waited for its trace to come over OTLP, where it has. */
  private async deliverUnnamed(): Promise<void> {
    const batches: RecordBatch[] = [];
    for (const [traceId, waiting] of this.unnamed) {
      if (!this.isOfCommand(traceId)) continue;
      this.unnamed.delete(traceId);
      for (const { line } of waiting) this.unnamedCharacters -= line?.length ?? 0;
      batches.push(await this.noted({ traceId, resource: UNKNOWN_RESOURCE, records: waiting }));
    }
    await this.deliver({ batches, passthrough: [] });
  }

  /**
   * Waits no longer. Where nothing came over OTLP, an engine was at work that sends none; where something did, others wrote the
   * rest, but for an engine that did not come to its end though nobody writes any more.
   */
  private async settleUnnamed(): Promise<void> {
    this.unnamedAre = this.firstOverOtlpMs.size === 0 ? 'of the command' : 'of others';
    const isWritten = this.unnamed.size > 0 && (await this.deps.isWritten());
    for (const [traceId, waiting] of this.unnamed) {
      const ofProcess = waiting.filter(isProcess);
      const isCutOff = ofProcess.length > 0 && ofProcess.every(({ recordType }) => recordType === 'SpanStart');
      if (isCutOff && !isWritten) this.killed.add(traceId);
    }
    await this.deliverUnnamed();
    this.unnamed.clear();
    this.unnamedCharacters = 0;
  }

  /** The batch with its resource; the JSONL has brought its records. */
  private async noted(batch: RecordBatch): Promise<RecordBatch> {
    const { traceId } = batch;
    const keys = this.inJsonl.get(traceId) ?? new JsonlKeys();
    if (!this.inJsonl.has(traceId) && !this.firstOverOtlpMs.has(traceId)) this.deps.onTrace(traceId);
    this.inJsonl.set(traceId, keys);
    keys.noteAll(batch);
    return withResource(batch, await this.resourceOf(batch));
  }

  private inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.delivering.then(work);
    this.delivering = done.catch(() => undefined);
    return done;
  }

  private async takeDueRequests(giveUp: AbortSignal): Promise<void> {
    // Made once: each one that is made stays with its signals.
    const isOver = AbortSignal.any([this.ended.signal, giveUp]);
    while (!this.ended.signal.aborted) {
      giveUp.throwIfAborted();
      if (this.unnamed.size > 0) await this.inTurn(() => this.deliverUnnamed());
      const isRead = !(await this.deps.hasUnreadLines(this.position));
      await this.deps.buffered.drain(
        (request) => this.isDue(request, isRead),
        (request, bytes) => this.takeDue(request, bytes),
      );
      await pause(this.deps.clock, LOOK_MS, isOver);
    }
  }

  /** @param isRead whether all lines are taken that the JSONL has now */
  private isDue({ hasPassthrough, traceIds, sinceMs }: BufferedRequest, isRead: boolean): boolean {
    if (hasPassthrough === undefined) return this.isLate(sinceMs);
    return hasPassthrough || (isRead && traceIds.some((traceId) => this.isWithoutJsonl(traceId)));
  }

  /** Takes out what is due, and looks into what nobody has looked into: the JSONL has had time to bring all of it. */
  private async takeDue({ signal, hasPassthrough }: BufferedRequest, bytes: Uint8Array): Promise<void> {
    if (hasPassthrough !== undefined) {
      await this.deliverRequest(signal, bytes, (delivery) => delivery);
      return;
    }
    if (this.isInJsonl(signal, bytes)) return;
    const decoded = await this.deps.decode(signal, bytes);
    try {
      await this.buffer(decoded, signal, bytes);
    } finally {
      decoded.delivery.release?.();
    }
  }

  private isWithoutJsonl(traceId: TraceId): boolean {
    const firstMs = this.firstOverOtlpMs.get(traceId);
    return firstMs !== undefined && !this.inJsonl.has(traceId) && this.isLate(firstMs);
  }

  private isLate(sinceMs: number): boolean {
    return this.deps.clock.monotonicMs() - sinceMs >= JSONL_GRACE_MS;
  }

  /** The engine says its resource over OTLP alone; what it said of one trace goes for all of it. */
  private async resourceOf(batch: RecordBatch): Promise<Resource> {
    const { traceId } = batch;
    const known = this.resources.get(traceId) ?? (await this.waitForResource(traceId));
    if (known !== undefined) return known;
    const guessed = guessResource(batch);
    this.resources.set(traceId, guessed);
    return guessed;
  }

  private async waitForResource(traceId: TraceId): Promise<Resource | undefined> {
    const { clock, isOtlpExpected } = this.deps;
    if (!isOtlpExpected) return undefined;
    for (let look = 0; look < RESOURCE_LOOKS && !this.resources.has(traceId) && !this.ended.signal.aborted; look++) {
      await pause(clock, RESOURCE_LOOK_MS, this.ended.signal);
    }
    return this.resources.get(traceId);
  }

  /** Whether nothing of a request will be asked for; most of the OTLP comes after its lines were taken. */
  private isInJsonl(signal: Signal, bytes: Uint8Array): boolean {
    const items = readItemKeys(signal, bytes);
    return items !== undefined && this.inJsonl.get(items.traceId)?.hasAll(items) === true;
  }

  /** What the JSONL of its trace did not bring. */
  private lacking({ batches, passthrough }: Delivery): Delivery {
    const left = batches.flatMap(({ traceId, resource, records: all }): RecordBatch[] => {
      const keys = this.inJsonl.get(traceId);
      const records = keys === undefined ? all : all.filter((record) => keys.lacks(record));
      return records.length === 0 ? [] : [{ traceId, resource, records }];
    });
    return { batches: left, passthrough };
  }

  private async deliverRequest(signal: Signal, bytes: Uint8Array, part: (all: Delivery) => Delivery): Promise<void> {
    const { delivery } = await this.deps.decode(signal, bytes);
    try {
      await this.deliver(part(delivery));
    } finally {
      delivery.release?.();
    }
  }

  private async deliver(delivery: Delivery): Promise<void> {
    if (delivery.batches.length > 0 || delivery.passthrough.length > 0) await this.deps.target.consume(delivery);
  }
}

const BOTH = STARTED | ENDED;

/**
 * Which records the JSONL of a trace brought, so that of the same records over OTLP those are found that it lacks: spans'
 * starts and ends by id; log records, which have no id over OTLP, by span, time, event type and body, as often as they
 * occur. Where a level filter keeps a span out of the JSONL, its log records stand there under a span further up, or under
 * none: those are found without their span. About 30 bytes a span, 60 a log record.
 */
export class JsonlKeys {
  private readonly spans = new SpanIdTable();
  /** By a hash of 64 bits: how many log records the JSONL brought that did not come over OTLP yet. */
  private readonly logs = new SpanIdTable();
  /** The same log records, of whatever span. */
  private readonly logsOfAnySpan = new SpanIdTable();

  /** The JSONL brought the records of a batch. */
  noteAll(batch: RecordBatch): void {
    if (batch instanceof CellBatch) {
      const { chunk } = batch;
      for (let index = batch.from; index < batch.to; index++) this.noteItem(chunk, index);
    } else for (const record of batch.records) this.note(record);
  }

  private noteItem(chunk: ItemChunk, index: number): void {
    if (!chunk.isLog(index)) {
      this.addSpan(chunk.field(index, FIELD.idHigh), chunk.field(index, FIELD.idLow), chunk.field(index, FIELD.parts));
    } else if (chunk.look(index)) {
      count(this.logs, [chunk.field(index, FIELD.digestHigh), chunk.field(index, FIELD.digestLow)], 1);
      count(this.logsOfAnySpan, logDigest(digestedOfCells()), 1);
    } else for (const record of chunk.recordsOf(index)) this.note(record);
  }

  /** The JSONL brought a record. */
  note(record: TelemetryRecord): void {
    if (record.recordType === 'LogRecord') this.countLog(record, 1);
    else this.addSpan(...spanIdHalves(record.spanId), partOf(record));
  }

  /** Whether the JSONL lacks a record that came over OTLP; to be asked once for each, when all of the JSONL has come. */
  lacks(record: TelemetryRecord): boolean {
    if (record.recordType !== 'LogRecord') return !this.hasSpan(spanIdHalves(record.spanId), partOf(record));
    const isBelowItsSpan = count(this.logs, logDigest(record), -1);
    if (!isBelowItsSpan && this.hasSpanOf(record)) return true;
    return !count(this.logsOfAnySpan, digestWithoutSpan(record), -1) && !isBelowItsSpan;
  }

  /** Whether the JSONL lacks nothing of a request; what is asked of it then counts as asked, and otherwise not. */
  hasAll({ spanIds, logs }: Pick<ItemKeys, 'spanIds' | 'logs'>): boolean {
    for (let at = 0; at < spanIds.length; at += 2) if (!this.hasWholeSpan(spanIds, at)) return false;
    const missing = logs.findIndex((log) => !this.countLog(log, -1));
    if (missing >= 0) for (const log of logs.slice(0, missing)) this.countLog(log, 1);
    return missing < 0;
  }

  private hasWholeSpan(spanIds: readonly number[], at: number): boolean {
    return this.hasSpan([spanIds[at] ?? 0, spanIds[at + 1] ?? 0], BOTH);
  }

  /** Counts a log record. @returns false where there would be fewer than none, and nothing is counted. */
  private countLog(log: Digested, by: 1 | -1): boolean {
    const [digest, spanless] = [logDigest(log), digestWithoutSpan(log)];
    if (!count(this.logs, digest, by)) return false;
    if (count(this.logsOfAnySpan, spanless, by)) return true;
    count(this.logs, digest, 1);
    return false;
  }

  private hasSpan([high, low]: readonly [number, number], parts: number): boolean {
    return ((this.spans.getHalves(high, low) ?? 0) & parts) === parts;
  }

  private addSpan(high: number, low: number, parts: number): void {
    const slot = this.spans.slotFor(high, low);
    this.spans.setValueAt(slot, this.spans.valueAt(slot) | parts);
  }

  private hasSpanOf({ spanId }: LogRecord): boolean {
    return spanId !== null && this.spans.getHalves(...spanIdHalves(spanId)) !== undefined;
  }
}

function digestWithoutSpan({ timeUnixNano, eventType, body }: Digested): Digest {
  return logDigest({ spanId: null, timeUnixNano, eventType, body });
}

/** Counts in a table by digests. @returns false where there would be fewer than none, and nothing is counted. */
function count(table: SpanIdTable, [high, low]: Digest, by: 1 | -1): boolean {
  const sum = (table.getHalves(high, low) ?? 0) + by;
  if (sum < 0) return false;
  table.setHalves(high, low, sum);
  return true;
}

function partOf({ recordType }: SpanStart | SpanEnd): number {
  return recordType === 'SpanStart' ? STARTED : ENDED;
}

/** The resource of records of which nothing came over OTLP, the only way by which the engine says it: the version that the process span, a trace's first record, names. */
export function guessResource(batch: RecordBatch): Resource {
  const first = batch instanceof CellBatch ? batch.first : batch.records[0];
  const version = first?.attributes.text('version');
  return {
    attributes: version === undefined ? {} : { 'service.version': version },
    scope: { name: '', version: '' },
  };
}
