import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { closeOnFailure } from '../core/errors.js';
import { readLines, textOf } from '../core/lines.js';
import { inferLogSpanName } from '../otlp/attribute-schema.js';
import { batchOfAccount, CellBatch, ENDED, FIELD, ItemChunk, STARTED } from '../otlp/wire/item-chunk.js';
import { itemReading } from '../otlp/wire/read-items.js';
import {
  accountOf,
  asResource,
  isJsonObject,
  type JsonValue,
  type Resource,
  resourceKey,
} from '../record/attributes.js';
import { Cell, cell, nanosAt } from '../record/cells.js';
import { logDigest } from '../record/log-digest.js';
import type { RecordBatch } from '../record/record-batch.js';
import { LineBuffer, tryParseRecordLine } from '../record/record-line.js';
import { SpanIdTable } from '../record/span-id-table.js';
import type { LogRecord, SpanEnd, TelemetryRecord, TraceId, UnixNano } from '../record/telemetry-record.js';
import { AppendFile, LOG_FILE, makeFolder, PENDING_FILE, RESOURCES_FILE, sizeOf, syncFolder } from './append-file.js';
import { Appended, type AppendedPiece, FreshRecords } from './appended.js';
import { type Occurrences, RecordKeys } from './record-keys.js';
import { ResourceIndex } from './resource-index.js';

const PROCESS = '.process.Process';
/** Log records of a trace that wait for their span's name; of more, the oldest wait no longer. */
const MAX_PENDING_LOGS = 20_000;

/** A log record that waits, as it is reckoned. */
const PENDING_BYTES = 2048;

/** Records to append, from one delivery. */
export interface Addition {
  readonly batch: RecordBatch;
  /** Equal log records seen so far in the same delivery; shared by the additions of one delivery. */
  readonly occurrences: Occurrences;
}

/** The settings of a trace log. */
export interface TraceLogOptions {
  /** Whether an append is synced before it counts. */
  readonly isSynced: boolean;
  /** How long a log record waits for its span's name, in milliseconds. */
  readonly nameHoldMs: number;
  /** Makes the entries of a folder durable. */
  syncFolder(path: string): Promise<void>;
}

/**
 * Log records of one resource that arrived together, and whose spans have not arrived yet. In OTLP they have their spans' ids and not
 * their names, and spans arrive when they end; the record log contains both, so such records wait briefly (durably, in `pending.jsonl`).
 */
interface WaitingLogs {
  readonly traceId: TraceId;
  readonly resource: Resource;
  chunk: ItemChunk;
  /** The numbers in the chunk of those that still wait. */
  readonly indexes: number[];
  /** Monotonic time of their arrival, in milliseconds. */
  readonly sinceMs: number;
}

/** Of log records that came as records. */
const BYTES_PER_LOG = 512;
/** How much more room lines take with a copy of each that has a name. */
const NAMED_LINES = 2.25;

/** The name of one span, as JSON. */
const NAME = new LineBuffer(1024);

/**
 * The open record log of one trace: `telemetry.jsonl`, with `resources.jsonl` (the resource of each part) and
 * `pending.jsonl` (log records that wait for their span's name) beside it. After a failed append, discard it and
 * open it again: opening truncates incomplete lines, makes the rest durable, and reads the contents.
 */
export class TraceLog {
  static async open(folder: string, traceId: TraceId, options: TraceLogOptions, nowMs: number): Promise<TraceLog> {
    const isCreated = await makeFolder(folder, true);
    const files: AppendFile[] = [];
    try {
      let isNew = false;
      // Both files may be new: one sync of their folder does for both.
      const syncLater = async () => {
        isNew = true;
      };
      const opening = { isSynced: options.isSynced, syncFolder: syncLater };
      const log = await AppendFile.open(join(folder, LOG_FILE), opening);
      files.push(log);
      const resourceFile = await AppendFile.open(join(folder, RESOURCES_FILE), opening);
      files.push(resourceFile);
      if (isNew) {
        // The folder's entry, too: the process that created it may have failed to make it durable.
        await options.syncFolder(dirname(folder));
        await options.syncFolder(folder);
      }
      if (isCreated) return new TraceLog(folder, traceId, options, log, resourceFile, new ResourceIndex());
      await log.settle();
      await resourceFile.settle();
      const index = ResourceIndex.parse(await readFile(resourceFile.path, 'utf8'));
      const opened = new TraceLog(folder, traceId, options, log, resourceFile, index);
      await opened.learn();
      await opened.restorePending(nowMs);
      return opened;
    } catch (error) {
      await Promise.allSettled(files.map((file) => file.close()));
      throw error;
    }
  }

  private readonly keys = new RecordKeys();
  /** In order of arrival. */
  private pending: WaitingLogs[] = [];
  /** How many log records these are. */
  private waitingCount = 0;
  /** Where they stand, and those that have just been named. */
  private readonly kept = new Set<ItemChunk>();
  /** When the last process of a resource ended, by its key: no further span of what went on before will come. Commands one after the other may have one resource. */
  private readonly endedResources = new Map<string, UnixNano>();
  private pendingFile: AppendFile | undefined;
  /** Whether it was there before, open or not. */
  private hasPendingFile = false;
  /** The resource that the last line of one in the pending file names. */
  private pendingResource: Resource | undefined;
  /** Whose the trace is; `undefined` until its first records come. */
  private accountId: number | null | undefined;

  private constructor(
    private readonly folder: string,
    readonly traceId: TraceId,
    private readonly options: TraceLogOptions,
    private readonly log: AppendFile,
    private readonly resourceFile: AppendFile,
    private readonly index: ResourceIndex,
  ) {
    this.accountId = index.first && accountOf(index.first);
  }

  get lengthBytes(): number {
    return this.log.lengthBytes;
  }

  /** Memory that it takes while it is open, in bytes, about. */
  get memoryBytes(): number {
    return this.keys.byteCount + this.waitingCount * PENDING_BYTES;
  }

  get pendingCount(): number {
    return this.waitingCount;
  }

  /** Returns when the one that waits longest has come, in monotonic milliseconds; `undefined` where none waits. */
  get pendingSinceMs(): number | undefined {
    return this.pending[0]?.sinceMs;
  }

  /** Returns whether something has waited for its name long enough. */
  isDue(nowMs: number): boolean {
    const { pendingSinceMs } = this;
    return pendingSinceMs !== undefined && nowMs - pendingSinceMs >= this.options.nameHoldMs;
  }

  /**
   * Appends new records, and pending log records whose wait is over. Resolves when everything
   * is durable. Returns what was appended to the log, empty if everything was known; valid until `release`.
   */
  async append(additions: readonly Addition[], nowMs: number): Promise<Appended> {
    const fresh = new FreshRecords();
    const arrived: WaitingLogs[] = [];
    for (const { batch: sent, occurrences } of additions) {
      const batch = this.ofTrace(sent);
      if (batch instanceof CellBatch) this.addItems(batch, occurrences, fresh, arrived, nowMs);
      else this.addRecords(batch, occurrences, fresh, arrived, nowMs);
    }
    const records = this.takeDue(arrived, nowMs);
    // Before the batch with the span: the mapper needs a span's events before the span.
    records.addAll(fresh);
    const waiting = this.keepWaiting(arrived);
    // Everything is known: then the file has to exist still.
    if (waiting.length === 0 && records.isEmpty && additions.length > 0) this.log.checkName();
    if (waiting.length > 0) await this.writePending(waiting);
    const pieces = records.pieces(this.log.lengthBytes);
    if (pieces.length > 0) await this.write(pieces);
    if (this.waitingCount === 0) await this.closePending();
    return new Appended(this.traceId, pieces, this.log.lengthBytes);
  }

  /** What was appended is not read any more: gives back what log records stand in that wait no longer. */
  release(): void {
    for (const chunk of this.kept) {
      if (this.pending.some((logs) => logs.chunk === chunk)) continue;
      chunk.clear();
      this.kept.delete(chunk);
    }
  }

  async close(): Promise<void> {
    this.pending = [];
    this.release();
    await Promise.all([this.log.close(), this.resourceFile.close(), this.pendingFile?.close()]);
  }

  /**
   * Assigns a batch to the account of its trace's first sender: another account's records are added to that run, and give no
   * access to it.
   */
  private ofTrace(batch: RecordBatch): RecordBatch {
    if (this.accountId === undefined) {
      // A check of pending records has no account.
      if (!(batch instanceof CellBatch) && batch.records.length === 0) return batch;
      this.accountId = accountOf(batch.resource);
    }
    return batchOfAccount(batch, this.accountId);
  }

  /** Adds spans and log records that were decoded to lines, mostly all of them new: the hot path. */
  private addItems(
    batch: CellBatch,
    occurrences: Occurrences,
    fresh: FreshRecords,
    arrived: WaitingLogs[],
    nowMs: number,
  ): void {
    const { chunk, resource } = batch;
    const waiting = this.waitingIn(chunk, resource, nowMs);
    const hasProcess = [...chunk.eventTypes].some((eventType) => eventType.endsWith(PROCESS));
    for (let index = batch.from; index < batch.to; index++) {
      if (chunk.isLog(index)) {
        if (!this.addLog(chunk, index, occurrences)) continue;
        if (chunk.lacksName(index)) waiting.indexes.push(index);
        else fresh.addItem(batch, index);
        continue;
      }
      const parts = chunk.field(index, FIELD.parts);
      const isNew = this.keys.spans.addItem(chunk, index);
      if (isNew === 0) continue;
      if (hasProcess && (parts & ENDED) !== 0) this.noteProcess(chunk, index, resource);
      const [start, end] = isNew === parts ? [] : chunk.recordsOf(index);
      const missing = isNew === STARTED ? start : end;
      if (missing === undefined) fresh.addItem(batch, index);
      else fresh.addRecord(missing, resource);
    }
    arrived.push(waiting);
  }

  /** @returns whether the log record is new */
  private addLog(chunk: ItemChunk, index: number, occurrences: Occurrences): boolean {
    const digest = [chunk.field(index, FIELD.digestHigh), chunk.field(index, FIELD.digestLow)] as const;
    const eventId = chunk.eventIdOf(index);
    return eventId === null ? this.keys.addNameless(...digest, occurrences) : this.keys.addNamed(digest, eventId);
  }

  private waitingIn(chunk: ItemChunk, resource: Resource, sinceMs: number): WaitingLogs {
    return { traceId: this.traceId, resource, chunk, indexes: [], sinceMs };
  }

  private addRecords(
    { records, resource }: RecordBatch,
    occurrences: Occurrences,
    fresh: FreshRecords,
    arrived: WaitingLogs[],
    nowMs: number,
  ): void {
    let waiting: WaitingLogs | undefined;
    for (const record of records) {
      if (!this.keys.add(record, occurrences)) continue;
      if (record.recordType === 'SpanEnd') this.noteEnd(record, resource);
      if (mustWait(record)) {
        waiting ??= this.waitingIn(newRecordChunk(), resource, nowMs);
        addWaiting(waiting, record);
      } else fresh.addRecord(record, resource);
    }
    if (waiting !== undefined) arrived.push(waiting);
  }

  /**
   * Gives waiting log records, the ones that have just arrived among them, the names of their spans where they need wait no longer.
   * @returns these, in order of arrival
   */
  private takeDue(arrived: readonly WaitingLogs[], nowMs: number): FreshRecords {
    const due = new FreshRecords();
    for (const { indexes } of arrived) this.waitingCount += indexes.length;
    const all = [...this.pending, ...arrived];
    for (const logs of all) this.takeNamed(logs, due, nowMs);
    this.pending = all.filter(({ indexes }) => indexes.length > 0);
    return due;
  }

  private takeNamed(logs: WaitingLogs, due: FreshRecords, nowMs: number): void {
    const { chunk, indexes } = logs;
    let restCount = 0;
    for (let at = 0; at < indexes.length; at++) {
      const index = indexes[at] as number;
      if (this.readName(logs, index, nowMs)) {
        chunk.nameLog(index, NAME);
        due.addItem(logs, chunk.itemCount - 1);
        this.waitingCount -= 1;
      } else indexes[restCount++] = index;
    }
    indexes.length = restCount;
  }

  /** Makes `NAME` the name of a log record's span. @returns false where it is to wait for it */
  private readName({ chunk, resource, sinceMs }: WaitingLogs, index: number, nowMs: number): boolean {
    if (this.keys.spans.readName(chunk.field(index, FIELD.idHigh), chunk.field(index, FIELD.idLow), NAME)) return true;
    const endedUnixNano = this.endedResources.get(resourceKey(resource));
    const hasEnded = endedUnixNano !== undefined && timeOfLog(chunk, index) <= endedUnixNano;
    const isTooMany = this.waitingCount > MAX_PENDING_LOGS;
    if (!isTooMany && nowMs - sinceMs < this.options.nameHoldMs && !hasEnded) return false;
    const [record] = chunk.recordsOf(index);
    NAME.length = 0;
    NAME.utf8(JSON.stringify(record?.recordType === 'LogRecord' ? inferLogSpanName(record) : null));
    return true;
  }

  /** Copies what has arrived and has to wait out of the chunks that are only borrowed. @returns the lines by which they are found after a crash */
  private keepWaiting(arrived: readonly WaitingLogs[]): readonly Uint8Array[] {
    let lineBytes = 0;
    let itemBytes = 0;
    for (const { chunk, indexes } of arrived) {
      lineBytes += chunk.sizeOf(indexes, FIELD.startLine, FIELD.lineEnd);
      itemBytes += chunk.sizeOf(indexes, FIELD.itemStart, FIELD.itemEnd);
    }
    if (lineBytes === 0) return [];
    const kept = new ItemChunk(Math.ceil(lineBytes * NAMED_LINES));
    kept.beginCopies(itemBytes);
    this.kept.add(kept);
    const lines: Uint8Array[] = [];
    for (const logs of arrived) {
      const { chunk, indexes, resource } = logs;
      if (indexes.length === 0) continue;
      if (resource !== this.pendingResource) lines.push(Buffer.from(`${JSON.stringify({ resource })}\n`));
      this.pendingResource = resource;
      const start = kept.out.length;
      kept.copyLogs(chunk, indexes);
      lines.push(kept.lines.subarray(start, kept.out.length));
      logs.chunk = kept;
    }
    return lines;
  }

  private async write(pieces: readonly AppendedPiece[]): Promise<void> {
    let resourceLines = '';
    let current: Resource | undefined;
    for (const { resource, offset } of pieces) {
      if (resource !== current) resourceLines += this.index.switchTo(resource, offset);
      current = resource;
    }
    // The resources first: a part without records does no harm, records without their resource do.
    if (resourceLines !== '') await this.resourceFile.append([Buffer.from(resourceLines)]);
    await this.log.append(pieces.map(({ lines }) => lines));
  }

  private async writePending(lines: readonly Uint8Array[]): Promise<void> {
    // The folder's account decides for an existing file.
    const { isSynced } = this.options;
    const syncFolder = this.hasPendingFile ? async () => {} : this.options.syncFolder;
    this.pendingFile ??= await AppendFile.open(join(this.folder, PENDING_FILE), { isSynced, syncFolder });
    this.hasPendingFile = true;
    await this.pendingFile.append(lines);
  }

  /** Most of the time nothing waits: then the file takes no descriptor. */
  private async closePending(): Promise<void> {
    const file = this.pendingFile;
    if (file === undefined) return;
    await file.rewind(0);
    this.pendingFile = undefined;
    this.pendingResource = undefined;
    await file.close();
  }

  /** Notes the end of a process, where the span is one. */
  private noteProcess(chunk: ItemChunk, index: number, resource: Resource): void {
    if (!chunk.look(index)) {
      for (const record of chunk.recordsOf(index)) if (record.recordType === 'SpanEnd') this.noteEnd(record, resource);
      return;
    }
    const { eventType } = itemReading().layouts.layout(cell(Cell.layout)).event;
    if (eventType.endsWith(PROCESS)) this.noteProcessEnd(resource, nanosAt(Cell.endLow));
  }

  private noteEnd({ eventType, endTimeUnixNano }: SpanEnd, resource: Resource): void {
    if (eventType.endsWith(PROCESS)) this.noteProcessEnd(resource, endTimeUnixNano);
  }

  private noteProcessEnd(resource: Resource, endTimeUnixNano: UnixNano): void {
    const key = resourceKey(resource);
    const known = this.endedResources.get(key);
    if (known === undefined || known < endTimeUnixNano) this.endedResources.set(key, endTimeUnixNano);
  }

  /** Reads the log once to learn its contents. */
  private async learn(): Promise<void> {
    for await (const { lines } of readLines(this.log.path)) {
      for (const line of lines) {
        // A damaged line is skipped here; readers of the log report it.
        const record = tryParseRecordLine(textOf(line));
        if (record === undefined) continue;
        this.keys.learn(record);
        if (record.recordType === 'SpanEnd') this.noteEnd(record, this.index.at(line.offset));
      }
    }
  }

  private async restorePending(nowMs: number): Promise<void> {
    const path = join(this.folder, PENDING_FILE);
    // A file without bytes may have an entry that is not durable yet.
    this.hasPendingFile = (await sizeOf(path)) > 0;
    if (!this.hasPendingFile) return;
    const file = await AppendFile.open(path, { isSynced: this.options.isSynced, syncFolder });
    await closeOnFailure(file, async () => {
      await file.settle();
      await this.readPending(path, nowMs);
    });
    this.pendingFile = file;
    if (this.waitingCount === 0) await this.closePending();
  }

  private async readPending(path: string, nowMs: number): Promise<void> {
    const occurrences = new SpanIdTable();
    const chunk = newRecordChunk();
    let waiting: WaitingLogs | undefined;
    // Where the disk damaged the line that names it.
    let resource = this.index.first;
    for await (const { lines } of readLines(path)) {
      for (const line of lines) {
        const text = textOf(line);
        resource = parseResource(text) ?? resource;
        const record = tryParseRecordLine(text);
        if (resource === undefined || record?.recordType !== 'LogRecord') continue;
        if (!this.keys.add(record, occurrences)) continue;
        this.accountId ??= accountOf(resource);
        if (waiting?.resource !== resource) {
          waiting = this.waitingIn(chunk, resource, nowMs);
          this.pending.push(waiting);
        }
        addWaiting(waiting, record);
        this.waitingCount += 1;
      }
    }
  }
}

function mustWait(record: TelemetryRecord): record is LogRecord {
  if (record.recordType !== 'LogRecord' || record.line !== undefined) return false;
  return record.spanName === null && record.spanId !== null;
}

/** Returns the resource that a line of pending.jsonl names for those behind it; `undefined` for any other line, or a damaged one. */
function parseResource(text: string): Resource | undefined {
  if (!text.startsWith('{"resource":')) return undefined;
  try {
    const value = JSON.parse(text) as JsonValue;
    return isJsonObject(value) ? asResource(value.resource) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function newRecordChunk(): ItemChunk {
  const chunk = new ItemChunk(BYTES_PER_LOG);
  chunk.beginCopies();
  return chunk;
}

function addWaiting({ chunk, indexes }: WaitingLogs, record: LogRecord): void {
  indexes.push(chunk.itemCount);
  chunk.addLog(record, logDigest(record));
}

function timeOfLog(chunk: ItemChunk, index: number): UnixNano {
  if (chunk.look(index)) return nanosAt(Cell.startLow);
  const [record] = chunk.recordsOf(index);
  return record?.recordType === 'LogRecord' ? record.timeUnixNano : (0n as UnixNano);
}
