import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { closeOnFailure } from '../core/errors.js';
import { readLines, textOf } from '../core/lines.js';
import { inferLogSpanName } from '../otlp/attribute-schema.js';
import { batchOfAccount, CellBatch, type ChunkPool, ItemChunk, NULL, PLACE } from '../otlp/wire/item-chunk.js';
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
import { tryParseRecordLine } from '../record/record-line.js';
import type { LogRecord, SpanEnd, TelemetryRecord, TraceId, UnixNano } from '../record/telemetry-record.js';
import { AppendFile, LOG_FILE, makeFolder, PENDING_FILE, RESOURCES_FILE, sizeOf, syncFolder } from './append-file.js';
import { Appended, type AppendedPiece, FreshRecords } from './appended.js';
import { ENDED, type Occurrences, RecordKeys, STARTED } from './record-keys.js';
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
  /** Where log records get the names of their spans. */
  readonly chunks: ChunkPool;
}

/**
 * A log record whose span has not arrived yet. In OTLP it has its span's id and not its name, and spans arrive when they end;
 * the record log contains both, so such records wait briefly (durably, in `pending.jsonl`).
 */
interface PendingLog {
  chunk: ItemChunk;
  index: number;
  /** The halves of its span's id. */
  readonly idHigh: number;
  readonly idLow: number;
  readonly resource: Resource;
  /** Monotonic time of its arrival, in milliseconds. */
  readonly sinceMs: number;
}

/** Of log records that wait together. */
const BYTES_PER_LOG = 512;

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
        // The folder's own entry, too: whoever created it may have failed to make it durable.
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
  private pending: PendingLog[] = [];
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
    return this.keys.byteCount + this.pending.length * PENDING_BYTES;
  }

  get pendingCount(): number {
    return this.pending.length;
  }

  /** When the one that waits longest has come, in monotonic milliseconds; `undefined` where none waits. */
  get pendingSinceMs(): number | undefined {
    return this.pending[0]?.sinceMs;
  }

  /** Whether something has waited for its name long enough. */
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
    const arrived: PendingLog[] = [];
    for (const { batch: sent, occurrences } of additions) {
      const batch = this.ofTrace(sent);
      if (batch instanceof CellBatch) this.addItems(batch, occurrences, fresh, arrived, nowMs);
      else this.addRecords(batch, occurrences, fresh, arrived, nowMs);
    }
    const { due, copies } = this.takeDue(arrived, nowMs);
    try {
      const held = this.keepWaiting(arrived);
      // Everything is known: then the file has to exist still.
      if (held.length === 0 && due.isEmpty && fresh.isEmpty && additions.length > 0) this.log.checkName();
      await this.writePending(held);
      // Before the batch with the span: the mapper needs a span's events before the span.
      const first = due.pieces(this.log.lengthBytes);
      const appended = await this.write([...first, ...fresh.pieces(endOf(first) ?? this.log.lengthBytes)], copies);
      if (this.pending.length === 0) await this.closePending();
      return appended;
    } catch (error) {
      copies.release();
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.log.close(), this.resourceFile.close(), this.pendingFile?.close()]);
  }

  /**
   * A trace belongs to the account of its first sender: another account's records are added to that run, and give no
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

  /** The hot path: spans and log records that were decoded to lines, mostly all of them new. */
  private addItems(
    batch: CellBatch,
    occurrences: Occurrences,
    fresh: FreshRecords,
    arrived: PendingLog[],
    nowMs: number,
  ): void {
    const { chunk, resource } = batch;
    const hasProcess = [...chunk.eventTypes].some((eventType) => eventType.endsWith(PROCESS));
    for (let index = batch.from; index < batch.to; index++) {
      if (chunk.isOfLogs) {
        const digest = [chunk.place(index, PLACE.digestHigh), chunk.place(index, PLACE.digestLow)] as const;
        if (!this.keys.addLog(digest, null, occurrences)) continue;
        if (chunk.lacksName(index)) arrived.push(pendingLog(chunk, index, resource, nowMs));
        else fresh.addItem(batch, index);
        continue;
      }
      const isNew = this.keys.spans.addBoth(chunk, index);
      if (isNew === 0) continue;
      if (hasProcess) this.noteProcess(chunk, index, resource);
      const [start, end] = isNew === (STARTED | ENDED) ? [] : chunk.recordsOf(index);
      const missing = isNew === STARTED ? start : end;
      if (missing === undefined) fresh.addItem(batch, index);
      else fresh.addRecord(missing, resource);
    }
  }

  private addRecords(
    { records, resource }: RecordBatch,
    occurrences: Occurrences,
    fresh: FreshRecords,
    arrived: PendingLog[],
    nowMs: number,
  ): void {
    let chunk: ItemChunk | undefined;
    for (const record of records) {
      if (!this.keys.add(record, occurrences)) continue;
      if (record.recordType === 'SpanEnd') this.noteEnd(record, resource);
      if (mustWait(record)) {
        chunk ??= newCopies(BYTES_PER_LOG);
        chunk.addLog(record, logDigest(record));
        arrived.push(pendingLog(chunk, chunk.itemCount - 1, resource, nowMs));
      } else fresh.addRecord(record, resource);
    }
  }

  /**
   * Takes those out of the waiting log records, the ones that have just arrived among them, that need wait no longer, with their
   * spans' names, in order of arrival.
   * @returns them, and the chunks in which they stand, which are lent.
   */
  private takeDue(arrived: readonly PendingLog[], nowMs: number): { due: FreshRecords; copies: LogCopies } {
    const due = new FreshRecords();
    const { chunks } = this.options;
    const copies = new LogCopies(
      () => {
        const chunk = chunks.take(BYTES_PER_LOG);
        chunk.beginCopies();
        return chunk;
      },
      (chunk) => chunks.giveBack(chunk),
    );
    const rest: PendingLog[] = [];
    let excess = this.pending.length + arrived.length - MAX_PENDING_LOGS;
    for (const logs of [this.pending, arrived]) {
      for (const log of logs) {
        const name = this.nameFor(log, nowMs, excess > 0);
        if (name === undefined) {
          rest.push(log);
          continue;
        }
        excess -= 1;
        const chunk = copies.add(log, name);
        const index = chunk.itemCount - 1;
        due.addItem(new CellBatch(this.traceId, log.resource, chunk, index, index + 1), index);
      }
    }
    this.pending = rest;
    return { due, copies };
  }

  /** The name of a log record's span as JSON; `undefined` where it is to wait for it. */
  private nameFor(
    { chunk, index, idHigh, idLow, resource, sinceMs }: PendingLog,
    nowMs: number,
    isTooMany: boolean,
  ): Uint8Array | undefined {
    const known = this.keys.spans.nameJson(idHigh, idLow);
    if (known !== undefined) return known;
    const endedUnixNano = this.endedResources.get(resourceKey(resource));
    const hasEnded = endedUnixNano !== undefined && timeOfLog(chunk, index) <= endedUnixNano;
    const isOver = isTooMany || nowMs - sinceMs >= this.options.nameHoldMs || hasEnded;
    if (!isOver) return undefined;
    const [record] = chunk.recordsOf(index);
    const name = record?.recordType === 'LogRecord' ? inferLogSpanName(record) : null;
    return name === null ? NULL : Buffer.from(JSON.stringify(name));
  }

  /** Copies what has arrived and has to wait out of the chunks that are only lent. @returns the lines by which they are found after a crash */
  private keepWaiting(arrived: readonly PendingLog[]): readonly Uint8Array[] {
    if (arrived.length === 0 || this.pending.length === 0) return [];
    const own = new Set(arrived);
    const waiting = this.pending.filter((log) => own.has(log));
    if (waiting.length === 0) return [];
    let lineBytes = 0;
    let itemBytes = 0;
    for (const { chunk, index } of waiting) {
      lineBytes += chunk.place(index, PLACE.lineEnd) - chunk.place(index, PLACE.startLine);
      itemBytes += chunk.place(index, PLACE.itemEnd) - chunk.place(index, PLACE.itemStart);
    }
    const kept = new LogCopies(() => newCopies(lineBytes, itemBytes));
    const lines: Uint8Array[] = [];
    for (const log of waiting) {
      if (log.resource !== this.pendingResource) {
        lines.push(Buffer.from(`${JSON.stringify({ resource: log.resource })}\n`));
        this.pendingResource = log.resource;
      }
      lines.push(log.chunk.linesOf(log.index));
      const chunk = kept.add(log);
      log.chunk = chunk;
      log.index = chunk.itemCount - 1;
    }
    return lines;
  }

  private async write(pieces: readonly AppendedPiece[], copies: LogCopies): Promise<Appended> {
    let resourceLines = '';
    let current: Resource | undefined;
    for (const { resource, offset } of pieces) {
      if (resource !== current) resourceLines += this.index.switchTo(resource, offset);
      current = resource;
    }
    // The resources first: a part without records does no harm, records without their resource do.
    if (resourceLines !== '') await this.resourceFile.append([Buffer.from(resourceLines)]);
    if (pieces.length > 0) await this.log.append(pieces.map(({ lines }) => lines));
    copies.load();
    return new Appended(this.traceId, pieces, this.log.lengthBytes, () => copies.release());
  }

  private async writePending(lines: readonly Uint8Array[]): Promise<void> {
    if (lines.length === 0) return;
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
    if (this.pending.length === 0) await this.closePending();
  }

  private async readPending(path: string, nowMs: number): Promise<void> {
    const occurrences: Occurrences = new Map();
    const chunk = newCopies(BYTES_PER_LOG);
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
        chunk.addLog(record, logDigest(record));
        this.pending.push(pendingLog(chunk, chunk.itemCount - 1, resource, nowMs));
      }
    }
  }
}

function mustWait(record: TelemetryRecord): record is LogRecord {
  if (record.recordType !== 'LogRecord' || record.line !== undefined) return false;
  return record.spanName === null && record.spanId !== null;
}

function endOf(pieces: readonly AppendedPiece[]): number | undefined {
  const last = pieces.at(-1);
  return last === undefined ? undefined : last.offset + last.lines.length;
}

/** The resource that a line of pending.jsonl names for those behind it; `undefined` for any other line, or a damaged one. */
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

/** Log records are copied into a new chunk beyond so many bytes of lines. */
const MAX_COPIES_BYTES = 1024 * 1024;

function newCopies(lineBytes: number, itemBytes = 0): ItemChunk {
  const chunk = new ItemChunk(Math.min(lineBytes, MAX_COPIES_BYTES));
  chunk.beginCopies(Math.min(itemBytes, MAX_COPIES_BYTES));
  return chunk;
}

/** Copies of log records, in as many chunks as they need. */
class LogCopies {
  private readonly chunks: ItemChunk[] = [];

  /** @param take begins a chunk of copies; @param giveBack left out where nobody lends them */
  constructor(
    private readonly take: () => ItemChunk,
    private readonly giveBack: (chunk: ItemChunk) => void = () => {},
  ) {}

  /** @returns the chunk whose last item is the copy */
  add({ chunk: from, index }: PendingLog, name?: Uint8Array): ItemChunk {
    let chunk = this.chunks.at(-1);
    if (chunk === undefined || chunk.out.length >= MAX_COPIES_BYTES) {
      chunk = this.take();
      this.chunks.push(chunk);
    }
    chunk.copyLog(from, index, name);
    return chunk;
  }

  /** They are going to be looked at. */
  load(): void {
    for (const chunk of this.chunks) chunk.load();
  }

  release(): void {
    for (const chunk of this.chunks.splice(0)) this.giveBack(chunk);
  }
}

function pendingLog(chunk: ItemChunk, index: number, resource: Resource, sinceMs: number): PendingLog {
  const [idHigh, idLow] = [chunk.place(index, PLACE.idHigh), chunk.place(index, PLACE.idLow)];
  return { chunk, index, idHigh, idLow, resource, sinceMs };
}

function timeOfLog(chunk: ItemChunk, index: number): UnixNano {
  if (chunk.look(index)) return nanosAt(Cell.startLow);
  const [record] = chunk.recordsOf(index);
  return record?.recordType === 'LogRecord' ? record.timeUnixNano : (0n as UnixNano);
}
