import { reasonOf } from '../core/errors.js';
import { type Line, MAX_LINE_BYTES, textOf } from '../core/lines.js';
import { type OtlpCodec, OtlpDecodeError } from '../otlp/otlp-codec.js';
import type { BodyDecoder } from '../otlp/wire/wire-decoder.js';
import { isJsonObject, type JsonValue } from '../record/attributes.js';
import type { PassthroughBatch, RecordBatch, Signal } from '../record/record-batch.js';
import { unreadable } from './jsonl-file.js';
import { readLineChunks } from './line-stream.js';
import { partsOf, rejectLine, rejectLongLine } from './read-record.js';
import type { RecordSource, Reject, SourceChunk } from './record-source.js';

/** What is needed to read OTLP. */
export interface OtlpReading {
  /** Decodes OTLP's JSON. */
  readonly codec: OtlpCodec;
  readonly bodies: Readonly<Record<Signal, BodyDecoder>>;
}

/**
 * OTLP JSON lines as a source: each line is an export request of traces, logs or both, as the Collector's file exporter writes them. Spans of other services are returned as pass-through telemetry. Any
 * other line becomes a reject.
 */
export class OtlpJsonFile implements RecordSource {
  constructor(
    readonly path: string,
    readonly sizeBytes: number,
    private readonly reading: OtlpReading,
  ) {}

  async *read(signal: AbortSignal): AsyncGenerator<SourceChunk> {
    try {
      for await (const { lines, tooLong, bytesRead } of readLineChunks(this.path, signal)) {
        const rejects = tooLong.map((line) => rejectLongLine(line, MAX_LINE_BYTES));
        const taken: Taken = { batches: [], passthrough: [], rejects };
        for (const line of lines) await this.take(line, taken);
        yield { delivery: taken, rejects, bytesRead };
      }
    } catch (cause) {
      throw unreadable(this.path, cause);
    }
  }

  /** Reads a line, or the complete requests in it. */
  private async take(line: Line, into: Taken): Promise<void> {
    const reason = await this.decode(line, into);
    if (reason === undefined) return;
    const { lines, rejects } = partsOf(line, rejectLine(line, reason), BEGINNINGS);
    for (const reject of rejects) into.rejects.push(reject);
    for (const part of lines) {
      const why = await this.decode(part, into);
      if (why !== undefined) into.rejects.push(rejectLine(part, why));
    }
  }

  /** Reads the valid part of a request. @returns the reason if nothing is valid */
  private async decode(line: Line, into: Taken): Promise<string | undefined> {
    const signals = signalsOf(textOf(line));
    if (typeof signals === 'string') return signals;
    const faults: string[] = [];
    for (const signal of signals) {
      try {
        const { delivery, rejectedCount, rejectionMessage } = await this.reading.bodies[signal].decode(line.bytes);
        for (const batch of delivery.batches) into.batches.push(batch);
        for (const batch of delivery.passthrough) into.passthrough.push(batch);
        if (rejectedCount > 0) into.rejects.push(rejectLine(line, rejectionMessage, rejectedCount));
      } catch (error) {
        if (!(error instanceof OtlpDecodeError)) throw error;
        faults.push(error.message);
      }
    }
    const [fault] = faults;
    if (faults.length === signals.length) return fault;
    if (fault !== undefined) into.rejects.push(rejectLine(line, fault));
    return undefined;
  }
}

/** The contents of a chunk's lines. */
interface Taken {
  readonly batches: RecordBatch[];
  readonly passthrough: PassthroughBatch[];
  readonly rejects: Reject[];
}

/** How exporters begin a request in OTLP's JSON. */
const BEGINNINGS: readonly Buffer[] = ['resourceSpans', 'resourceLogs', 'resource_spans', 'resource_logs'].map((key) =>
  Buffer.from(`{"${key}":`),
);

const SIGNAL_KEYS: readonly (readonly [Signal, RegExp])[] = [
  ['traces', /^resource_?spans$/i],
  ['logs', /^resource_?logs$/i],
];

/** Returns the signals in a line, or what is wrong with it. */
function signalsOf(line: string): readonly Signal[] | string {
  // In most lines the first key decides; only others are parsed.
  const start = /^\s*\{\s*"(resource_?(?:spans|logs))"\s*:/i.exec(line);
  if (start !== null && !/"resource_?(?:spans|logs)"/i.test(line.slice(start[0].length))) {
    return SIGNAL_KEYS.filter(([, key]) => key.test(start[1] ?? '')).map(([signal]) => signal);
  }
  let value: JsonValue;
  try {
    value = JSON.parse(line) as JsonValue;
  } catch (error) {
    return `not JSON: ${reasonOf(error)}`;
  }
  if (!isJsonObject(value)) return 'not a JSON object';
  const keys = Object.keys(value);
  const signals = SIGNAL_KEYS.filter(([, pattern]) => keys.some((key) => pattern.test(key))).map(([signal]) => signal);
  if (signals.length > 0 || keys.length === 0) return signals;
  return 'neither resourceSpans nor resourceLogs is there; metrics are not kept';
}
