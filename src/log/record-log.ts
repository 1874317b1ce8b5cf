import type { Guard } from '../core/guard.js';
import { CellBatch } from '../otlp/wire/item-chunk.js';
import type { Resource } from '../record/attributes.js';
import { ConsumeError, type ConsumeErrorCode, type Delivery, type RecordConsumer } from '../record/record-batch.js';
import type { TelemetryRecord, TraceId } from '../record/telemetry-record.js';

/** A record with its offsets in its trace's record log. */
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
  /** Length of the durable part of the log in bytes, without a last line that was cut off; 0 for an unknown trace. */
  lengthBytes(traceId: TraceId): Promise<number>;
}

/** A record that has no text yet, as it is reckoned, in bytes. */
const RECORD_BYTES = 1024;

/** Asks a guard before it passes deliveries on, where no receiver has asked it: for records of files. */
export class GuardedConsumer implements RecordConsumer {
  /** @param code of the error when the guard refuses: `refused` for a sender that does not retry. */
  constructor(
    private readonly consumer: RecordConsumer,
    private readonly guard: Guard,
    private readonly code: ConsumeErrorCode,
  ) {}

  /** @throws ConsumeError */
  async consume(delivery: Delivery): Promise<void> {
    const bodyBytes = bodyBytesOf(delivery);
    const shortage = this.guard.findShortage(bodyBytes);
    if (shortage !== undefined) throw new ConsumeError(this.code, shortage.message, shortage.retryAfterMs);
    await this.consumer.consume(delivery);
    this.guard.onBody(bodyBytes);
  }
}

/** About what the records would be as a request body, which is less than half of their lines. */
function bodyBytesOf({ batches, passthrough }: Delivery): number {
  let lineBytes = 0;
  for (const batch of batches) {
    if (batch instanceof CellBatch) lineBytes += batch.lineBytes;
    else for (const { line } of batch.records) lineBytes += line?.length ?? RECORD_BYTES;
  }
  for (const { body } of passthrough) lineBytes += body.length;
  return Math.ceil(lineBytes / 2);
}
