import { readFile, truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { closeOnFailure } from '../component/close-on-failure.js';
import { inferLogSpanName } from '../decode/log-span-name.js';
import { accountOf } from '../record/account-attribute.js';
import { batchOfAccount } from '../record/batch-of-account.js';
import type { TraceId } from '../record/ids.js';
import type { RecordBatch } from '../record/record-batch.js';
import { formatRecordLine, parseRecordLine, RecordParseError, tryParseRecordLine } from '../record/record-line.js';
import { type Resource, resourceKey } from '../record/resource.js';
import { SpanBatch } from '../record/span-batch.js';
import { CELL } from '../record/span-page.js';
import type { LogRecord, TelemetryRecord } from '../record/telemetry-record.js';
import { AppendFile } from './append-file.js';
import { Appended, type AppendedPiece } from './appended.js';
import { FreshRecords } from './fresh-records.js';
import { ENDED, STARTED } from './known-spans.js';
import { readLines } from './line-reader.js';
import { makeFolder } from './make-folder.js';
import { type PendingLog, PendingLogs } from './pending-logs.js';
import { RecordKeys } from './record-keys.js';
import { ResourceIndex } from './resource-index.js';

export const LOG_FILE = 'telemetry.jsonl';
export const RESOURCES_FILE = 'resources.jsonl';
export const PENDING_FILE = 'pending.jsonl';

const PROCESS = '.process.Process';
/** Log records of a trace that wait for their span's name; of more, the oldest wait no longer. */
const MAX_PENDING_LOGS = 20_000;

/** A log record that waits, as it is reckoned. */
const PENDING_BYTES = 2048;

/** Records to append, as one delivery brought them. */
export interface Addition {
  readonly batch: RecordBatch;
  /** Equal log records seen so far in the same delivery; shared by the additions of one delivery. */
  readonly occurrences: Map<string, number>;
}

/** What a trace log needs to know of the configuration. */
export interface TraceLogOptions {
  /** Whether an append is synced before it counts. */
  readonly isSynced: boolean;
  /** How long a log record waits for its span's name, in milliseconds. */
  readonly nameHoldMs: number;
  /** Makes the entries of a folder durable. */
  syncFolder(path: string): Promise<void>;
}

/**
 * One trace's record log, open for appending: `telemetry.jsonl`, with `resources.jsonl` (whose records they are) and
 * `pending.jsonl` (log records that wait for their span's name) beside it. After an append that failed, throw it away and
 * open it again: opening cuts off what is not whole and reads what is known.
 */
export class TraceLog {
  static async open(folder: string, traceId: TraceId, options: TraceLogOptions, nowMs: number): Promise<TraceLog> {
    const isCreated = await makeFolder(folder, true);
    if (isCreated) await options.syncFolder(dirname(folder));
    const files: AppendFile[] = [];
    try {
      let isNew = false;
      // Both files may be new: one sync of their folder does for both.
      const later = async () => {
        isNew = true;
      };
      const log = await AppendFile.open(join(folder, LOG_FILE), later);
      files.push(log);
      const resourceFile = await AppendFile.open(join(folder, RESOURCES_FILE), later);
      files.push(resourceFile);
      if (isNew) await options.syncFolder(folder);
      if (isCreated) return new TraceLog(folder, traceId, options, log, resourceFile, new ResourceIndex());
      await log.cutTornLine();
      await resourceFile.cutTornLine();
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
  private readonly pending = new PendingLogs();
  /** Resources whose process has ended: no further span of theirs will come. */
  private readonly endedResources = new Set<string>();
  private pendingFile: AppendFile | undefined;
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
  get heldBytes(): number {
    return this.keys.byteCount + this.pending.size * PENDING_BYTES;
  }

  get pendingCount(): number {
    return this.pending.size;
  }

  /**
   * Appends what is new of the additions, and those waiting log records that need wait no longer. Resolves when all of
   * it is durable. Returns what was appended to the log; empty where everything was known.
   */
  async append(additions: readonly Addition[], nowMs: number): Promise<Appended> {
    const held: string[] = [];
    const fresh = new FreshRecords();
    for (const { batch: sent, occurrences } of additions) {
      const batch = this.ofTrace(sent);
      if (batch instanceof SpanBatch) this.addSpans(batch, fresh);
      else this.addRecords(batch, occurrences, fresh, held, nowMs);
    }
    // Before the batch that names them: whoever maps the log wants a span's events before the span.
    const due = new FreshRecords();
    const excess = this.pending.size - MAX_PENDING_LOGS;
    let waiting = 0;
    for (const { record, resource } of this.pending.take((log) => waiting++ < excess || this.isDue(log, nowMs))) {
      due.addRecord({ ...record, spanName: this.nameFor(record) }, resource);
    }
    // All of it known already: then it has to be there still.
    if (held.length === 0 && fresh.isEmpty && additions.length > 0) await this.log.checkName();
    await this.writePending(held);
    const first = due.pieces(this.log.lengthBytes);
    const appended = await this.write([...first, ...fresh.pieces(endOf(first) ?? this.log.lengthBytes)]);
    if (this.pending.size === 0 && (this.pendingFile?.lengthBytes ?? 0) > 0) await this.pendingFile?.rewind(0);
    return appended;
  }

  async close(): Promise<void> {
    await Promise.all([this.log.close(), this.resourceFile.close(), this.pendingFile?.close()]);
  }

  /**
   * A trace is its first sender's account's: who adds to a trace of another account's adds to that one's run, and gets none
   * of their own by which they could read the trace.
   */
  private ofTrace(batch: RecordBatch): RecordBatch {
    if (this.accountId === undefined) {
      // Nothing but a look at what waits says nothing of an account.
      if (!(batch instanceof SpanBatch) && batch.records.length === 0) return batch;
      this.accountId = accountOf(batch.resource);
    }
    return batchOfAccount(batch, this.accountId);
  }

  /** The hot path: spans that were decoded to lines, mostly all of them new. */
  private addSpans(batch: SpanBatch, fresh: FreshRecords): void {
    const { page, resource } = batch;
    const processType = page.eventTypes.findIndex((eventType) => eventType.endsWith(PROCESS));
    for (let span = batch.from; span < batch.to; span++) {
      const isNew = this.keys.spans.addBoth(page, span);
      if (isNew === 0) continue;
      if (page.cell(span, CELL.eventType) === processType) this.endedResources.add(resourceKey(resource));
      if (isNew === (STARTED | ENDED)) fresh.addSpan(batch, span);
      else fresh.addRecord(page.recordsOf(span)[isNew === STARTED ? 0 : 1], resource);
    }
  }

  private addRecords(
    { records, resource }: RecordBatch,
    occurrences: Map<string, number>,
    fresh: FreshRecords,
    held: string[],
    nowMs: number,
  ): void {
    for (const record of records) {
      if (!this.keys.add(record, occurrences)) continue;
      if (record.recordType !== 'LogRecord') this.noteSpan(record, resource);
      if (this.mustWait(record)) held.push(this.hold({ record, resource, sinceMs: nowMs }));
      else fresh.addRecord(record, resource);
    }
  }

  private async write(pieces: readonly AppendedPiece[]): Promise<Appended> {
    let resourceLines = '';
    let current: Resource | undefined;
    for (const { resource, offset } of pieces) {
      if (resource !== current) resourceLines += this.index.switchTo(resource, offset);
      current = resource;
    }
    // The resources first: a stretch without records does no harm, records without their resource do.
    const { isSynced } = this.options;
    if (resourceLines !== '') await this.resourceFile.append([Buffer.from(resourceLines)], isSynced);
    if (pieces.length > 0) {
      await this.log.append(
        pieces.map(({ lines }) => lines),
        isSynced,
      );
    }
    return new Appended(this.traceId, pieces, this.log.lengthBytes);
  }

  private async writePending(lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    this.pendingFile ??= await AppendFile.open(join(this.folder, PENDING_FILE), this.options.syncFolder);
    await this.pendingFile.append([Buffer.from(lines.join(''))], this.options.isSynced);
  }

  private hold(log: PendingLog): string {
    this.pending.add(log);
    return `${JSON.stringify({ resource: log.resource, line: formatRecordLine(log.record) })}\n`;
  }

  private noteSpan(record: TelemetryRecord & { recordType: 'SpanStart' | 'SpanEnd' }, resource: Resource): void {
    if (record.recordType === 'SpanEnd' && record.eventType.endsWith(PROCESS)) {
      this.endedResources.add(resourceKey(resource));
    }
  }

  private mustWait(record: TelemetryRecord): record is LogRecord {
    if (record.recordType !== 'LogRecord' || record.line !== undefined) return false;
    return record.spanName === null && record.spanId !== null;
  }

  private isDue(log: PendingLog, nowMs: number): boolean {
    const { spanId } = log.record;
    if (spanId === null || this.keys.spans.nameOf(spanId) !== undefined) return true;
    return nowMs - log.sinceMs >= this.options.nameHoldMs || this.endedResources.has(resourceKey(log.resource));
  }

  private nameFor(record: LogRecord): string | null {
    const known = record.spanId === null ? undefined : this.keys.spans.nameOf(record.spanId);
    return known ?? inferLogSpanName(record);
  }

  /** Reads the log once, so that what it holds is known. */
  private async learn(): Promise<void> {
    for await (const lines of readLines(this.log.path)) {
      for (const { text, offset } of lines) {
        // A line that the disk damaged is passed over here; reading the log says so.
        const record = tryParseRecordLine(text);
        if (record === undefined) continue;
        this.keys.learn(record);
        if (record.recordType !== 'LogRecord') this.noteSpan(record, this.index.at(offset));
      }
    }
  }

  private async restorePending(nowMs: number): Promise<void> {
    const path = join(this.folder, PENDING_FILE);
    const occurrences = new Map<string, number>();
    for await (const lines of readLines(path)) {
      for (const { text } of lines) {
        const { resource, record } = parsePending(text) ?? {};
        if (resource === undefined || record?.recordType !== 'LogRecord') continue;
        if (!this.keys.add(record, occurrences)) continue;
        this.accountId ??= accountOf(resource);
        const { line: _line, ...bare } = record;
        this.pending.add({ record: bare, resource, sinceMs: nowMs });
      }
    }
    const file = this.pending.size === 0 ? undefined : await AppendFile.open(path);
    this.pendingFile = file;
    if (file !== undefined) await closeOnFailure(file, () => file.cutTornLine());
    else await truncate(path).catch(() => undefined);
  }
}

function endOf(pieces: readonly AppendedPiece[]): number | undefined {
  const last = pieces.at(-1);
  return last === undefined ? undefined : last.offset + last.lines.length;
}

/** A line of pending.jsonl; `undefined` where the disk damaged it. */
function parsePending(text: string): { readonly resource: Resource; readonly record: TelemetryRecord } | undefined {
  try {
    const { resource, line } = JSON.parse(text) as { resource: Resource; line: string };
    return { resource, record: parseRecordLine(line) };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError || error instanceof RecordParseError)
      return undefined;
    throw error;
  }
}
