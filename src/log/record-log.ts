import type { TraceId } from '../record/ids.js';
import type { Resource } from '../record/resource.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';

/** A record with its place in its trace's record log. */
export interface LoggedRecord {
  readonly record: TelemetryRecord;
  readonly resource: Resource;
  /** Offset of the line's first byte in the record log. */
  readonly offset: number;
  /** Offset of the byte after the line break. */
  readonly endOffset: number;
}

/** The part of a record log to read, in bytes; both ends are offsets of lines, unless `isWithinLine` is set. */
export interface LogRange {
  readonly fromOffset: number;
  /** `fromOffset` is any position: the line that contains it is skipped. */
  readonly isWithinLine?: boolean;
  /** Exclusive; the log's present end when left out. */
  readonly toOffset?: number;
}

/** Reads record logs, whether their run is open or long finished. */
export interface RecordLogReader {
  /** Yields records in chunks of at most about 1 MiB of lines; an unknown trace yields nothing. */
  read(traceId: TraceId, range: LogRange): AsyncIterable<readonly LoggedRecord[]>;
  /** Length of the durable part of the log in bytes; 0 for an unknown trace. */
  lengthBytes(traceId: TraceId): Promise<number>;
}
