import { mkdir, readFile, truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { inferLogSpanName } from '../decode/log-span-name.js';
import type { TraceId } from '../record/ids.js';
import { formatRecordLine, parseRecordLine, RecordParseError, tryParseRecordLine } from '../record/record-line.js';
import { type Resource, resourceKey } from '../record/resource.js';
import type { LogRecord, TelemetryRecord } from '../record/telemetry-record.js';
import { AppendFile, syncFolder } from './append-file.js';
import { readLines } from './line-reader.js';
import { type PendingLog, PendingLogs } from './pending-logs.js';
import { RecordKeys } from './record-keys.js';
import type { Appended, LoggedRecord } from './record-log.js';
import { ResourceIndex } from './resource-index.js';
import { SpanNames } from './span-names.js';

export const LOG_FILE = 'telemetry.jsonl';
export const RESOURCES_FILE = 'resources.jsonl';
export const PENDING_FILE = 'pending.jsonl';

const PROCESS = '.process.Process';
/** Log records of a trace that wait for their span's name; of more, the oldest wait no longer. */
const MAX_PENDING_LOGS = 20_000;

/** Records of one resource to append, as one delivery brought them. */
export interface Addition {
  readonly resource: Resource;
  readonly records: readonly TelemetryRecord[];
  /** Equal log records seen so far in the same delivery; shared by the additions of one delivery. */
  readonly occurrences: Map<string, number>;
}

/** What a trace log needs to know of the configuration. */
export interface TraceLogOptions {
  /** Whether an append is synced before it counts. */
  readonly isSynced: boolean;
  /** How long a log record waits for its span's name, in milliseconds. */
  readonly nameHoldMs: number;
}

/**
 * One trace's record log, open for appending: `telemetry.jsonl`, with `resources.jsonl` (whose records they are) and
 * `pending.jsonl` (log records that wait for their span's name) beside it. After an append that failed, throw it away and
 * open it again: opening cuts off what is not whole and reads what is known.
 */
export class TraceLog {
  static async open(folder: string, traceId: TraceId, options: TraceLogOptions, nowMs: number): Promise<TraceLog> {
    const created = await mkdir(folder, { recursive: true });
    if (created !== undefined) await syncFolder(dirname(folder));
    const files: AppendFile[] = [];
    try {
      const log = await AppendFile.open(join(folder, LOG_FILE));
      files.push(log);
      const resourceFile = await AppendFile.open(join(folder, RESOURCES_FILE));
      files.push(resourceFile);
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
  private readonly names = new SpanNames();
  private readonly pending = new PendingLogs();
  /** Resources whose process has ended: no further span of theirs will come. */
  private readonly endedResources = new Set<string>();
  private pendingFile: AppendFile | undefined;

  private constructor(
    private readonly folder: string,
    readonly traceId: TraceId,
    private readonly options: TraceLogOptions,
    private readonly log: AppendFile,
    private readonly resourceFile: AppendFile,
    private readonly index: ResourceIndex,
  ) {}

  get lengthBytes(): number {
    return this.log.lengthBytes;
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
    const fresh: { resource: Resource; record: TelemetryRecord }[] = [];
    for (const { resource, records, occurrences } of additions) {
      for (const record of records) {
        if (!this.keys.add(record, occurrences)) continue;
        if (record.recordType !== 'LogRecord') this.noteSpan(record, resource);
        if (this.mustWait(record)) held.push(this.hold({ record, resource, sinceMs: nowMs }));
        else fresh.push({ resource, record });
      }
    }
    // Before the batch that names them: whoever maps the log wants a span's events before the span.
    const due: typeof fresh = [];
    const excess = this.pending.size - MAX_PENDING_LOGS;
    let waiting = 0;
    for (const { record, resource } of this.pending.take((log) => waiting++ < excess || this.isDue(log, nowMs))) {
      due.push({ resource, record: { ...record, spanName: this.nameFor(record) } });
    }
    // All of it known already: then it has to be there still.
    if (held.length === 0 && fresh.length === 0 && additions.length > 0) await this.log.checkName();
    await this.writePending(held);
    const appended = await this.write([...due, ...fresh]);
    if (this.pending.size === 0 && (this.pendingFile?.lengthBytes ?? 0) > 0) await this.pendingFile?.rewind(0);
    return appended;
  }

  async close(): Promise<void> {
    await Promise.all([this.log.close(), this.resourceFile.close(), this.pendingFile?.close()]);
  }

  private async write(fresh: readonly { resource: Resource; record: TelemetryRecord }[]): Promise<Appended> {
    const records: LoggedRecord[] = [];
    const lines: Uint8Array[] = [];
    let offset = this.log.lengthBytes;
    let resourceLines = '';
    let current: Resource | undefined;
    for (const { resource, record } of fresh) {
      const line = record.lineBytes ?? Buffer.from(`${formatRecordLine(record)}\n`);
      if (resource !== current) resourceLines += this.index.switchTo(resource, offset);
      current = resource;
      const endOffset = offset + line.length;
      records.push({ record, resource, offset, endOffset });
      lines.push(line);
      offset = endOffset;
    }
    // The resources first: a stretch without records does no harm, records without their resource do.
    if (resourceLines !== '') await this.resourceFile.append(Buffer.from(resourceLines), this.options.isSynced);
    if (lines.length > 0) await this.log.append(Buffer.concat(lines), this.options.isSynced);
    return { traceId: this.traceId, records, lengthBytes: this.log.lengthBytes };
  }

  private async writePending(lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    this.pendingFile ??= await AppendFile.open(join(this.folder, PENDING_FILE));
    await this.pendingFile.append(Buffer.from(lines.join('')), this.options.isSynced);
  }

  private hold(log: PendingLog): string {
    this.pending.add(log);
    return `${JSON.stringify({ resource: log.resource, line: formatRecordLine(log.record) })}\n`;
  }

  private noteSpan(record: TelemetryRecord & { recordType: 'SpanStart' | 'SpanEnd' }, resource: Resource): void {
    this.names.set(record.spanId, record.spanName);
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
    if (spanId === null || this.names.get(spanId) !== undefined) return true;
    return nowMs - log.sinceMs >= this.options.nameHoldMs || this.endedResources.has(resourceKey(log.resource));
  }

  private nameFor(record: LogRecord): string | null {
    const known = record.spanId === null ? undefined : this.names.get(record.spanId);
    return known ?? inferLogSpanName(record);
  }

  /** Reads the log once, so that what it holds is known. */
  private async learn(): Promise<void> {
    const occurrences = new Map<string, number>();
    for await (const lines of readLines(this.log.path)) {
      for (const { text, offset } of lines) {
        // A line that the disk damaged is passed over here; reading the log says so.
        const record = tryParseRecordLine(text);
        if (record === undefined) continue;
        this.keys.add(record, occurrences);
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
        const { line: _line, ...bare } = record;
        this.pending.add({ record: bare, resource, sinceMs: nowMs });
      }
    }
    this.pendingFile = this.pending.size === 0 ? undefined : await AppendFile.open(path);
    if (this.pendingFile !== undefined) await this.pendingFile.cutTornLine();
    else await truncate(path).catch(() => undefined);
  }
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
