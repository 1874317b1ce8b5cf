import type { LineSource } from '../../src/export/record-log-lines.js';
import { Appended, type AppendedPiece, type AppendListener } from '../../src/log/appended.js';
import type { LoggedRecord, LogRange, RecordLogReader } from '../../src/log/record-log.js';
import { Attributes, UNKNOWN_RESOURCE } from '../../src/record/attributes.js';
import { formatRecordLine } from '../../src/record/record-line.js';
import {
  parseSpanId,
  parseTraceId,
  type SpanId,
  type TelemetryRecord,
  type TraceId,
} from '../../src/record/telemetry-record.js';

/** Every record of the fake takes this many bytes of its log; a longer one is refused. */
export const RECORD_BYTES = 512;
/** Records that are read at once. */
const CHUNK_RECORDS = 8;

/** A record log in memory, whose lines are all `RECORD_BYTES` long: they are filled up with blanks. */
export class MemoryRecordLog implements RecordLogReader {
  private readonly logs = new Map<TraceId, LoggedRecord[]>();
  /** Told of every append. */
  readonly listeners: AppendListener[] = [];
  /** How often lines of a log were read. */
  readCount = 0;
  /** The logs as lines. */
  readonly lines: LineSource = {
    read: async (traceId, { fromOffset, toOffset }, use) => {
      this.readCount += 1;
      const log = this.logs.get(traceId) ?? [];
      const from = fromOffset / RECORD_BYTES;
      const records = log.slice(from, Math.min(from + CHUNK_RECORDS, toOffset / RECORD_BYTES));
      if (records.length === 0) return use([]);
      const lines = Buffer.from(records.map(lineOf).join(''));
      return use([{ resource: UNKNOWN_RESOURCE, offset: fromOffset, lines }]);
    },
  };

  append(traceId: TraceId, ...records: readonly TelemetryRecord[]): Appended {
    const log = this.logs.get(traceId) ?? [];
    this.logs.set(traceId, log);
    const logged = records.map((record, index) => {
      const offset = (log.length + index) * RECORD_BYTES;
      return { record, resource: UNKNOWN_RESOURCE, offset, endOffset: offset + RECORD_BYTES };
    });
    log.push(...logged);
    const appended = new Appended(traceId, piecesOf(logged), log.length * RECORD_BYTES);
    for (const listener of this.listeners) listener.onAppended(appended);
    return appended;
  }

  /** The last records are gone, as after a power cut where appends are not synced. */
  lose(traceId: TraceId, count: number): void {
    this.logs.set(traceId, (this.logs.get(traceId) ?? []).slice(0, -count));
  }

  async *read(traceId: TraceId, range: LogRange): AsyncIterable<readonly LoggedRecord[]> {
    const log = this.logs.get(traceId) ?? [];
    const end = range.toOffset ?? log.length * RECORD_BYTES;
    for (let from = range.fromOffset / RECORD_BYTES; from * RECORD_BYTES < end; from += CHUNK_RECORDS) {
      yield log.slice(from, Math.min(from + CHUNK_RECORDS, end / RECORD_BYTES));
    }
  }

  async lengthBytes(traceId: TraceId): Promise<number> {
    return (this.logs.get(traceId)?.length ?? 0) * RECORD_BYTES;
  }
}

function piecesOf(logged: readonly LoggedRecord[]): readonly AppendedPiece[] {
  const [first] = logged;
  if (first === undefined) return [];
  const { resource, offset } = first;
  const lines = Buffer.from(logged.map(lineOf).join(''));
  return [
    { resource, offset, lines, records: logged.map(({ record }) => record), lineBytes: logged.map(() => RECORD_BYTES) },
  ];
}

function lineOf({ record }: LoggedRecord): string {
  const line = formatRecordLine(record);
  if (Buffer.byteLength(line) >= RECORD_BYTES) throw new Error(`a record of the fake is too long: ${line}`);
  return `${line}${' '.repeat(RECORD_BYTES - 1 - Buffer.byteLength(line))}\n`;
}

/** The trace id of a number. */
export function traceIdOf(number: number): TraceId {
  const id = parseTraceId(number.toString(16).padStart(32, '0'));
  if (id === undefined) throw new Error('not a trace id');
  return id;
}

/** The span id of a number. */
export function spanIdOf(number: number): SpanId {
  const id = parseSpanId(number.toString(16).padStart(16, '0'));
  if (id === undefined) throw new Error('not a span id');
  return id;
}

const ENVELOPE = { severityNumber: 9, severityText: 'INFO', eventType: 'v1.public.events.fusion.dev.Unknown' } as const;

/** A span's start. */
export function spanStart(traceId: TraceId, number: number): TelemetryRecord {
  return {
    ...ENVELOPE,
    recordType: 'SpanStart',
    traceId,
    spanId: spanIdOf(number),
    spanName: `span ${number}`,
    parentSpanId: null,
    links: null,
    startTimeUnixNano: 1n,
    attributes: Attributes.EMPTY,
  };
}

/** A span's end. */
export function spanEnd(traceId: TraceId, number: number): TelemetryRecord {
  return {
    ...ENVELOPE,
    recordType: 'SpanEnd',
    traceId,
    spanId: spanIdOf(number),
    spanName: `span ${number}`,
    parentSpanId: null,
    links: null,
    startTimeUnixNano: 1n,
    endTimeUnixNano: 2n,
    status: null,
    attributes: Attributes.EMPTY,
  };
}

/** A log record on a span. */
export function logRecord(traceId: TraceId, number: number, body: string): TelemetryRecord {
  return {
    ...ENVELOPE,
    recordType: 'LogRecord',
    traceId,
    spanId: spanIdOf(number),
    spanName: null,
    eventId: null,
    timeUnixNano: 1n,
    body,
    attributes: Attributes.EMPTY,
  };
}
