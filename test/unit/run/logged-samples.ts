import type { LoggedRecord } from '../../../src/log/record-log.js';
import { type Resource, UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import { formatRecordLine, parseRecordLine } from '../../../src/record/record-line.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { decodeBody } from '../../fake/decode-at-once.js';
import { sampleBodies, sampleLines } from '../../fake/sample-run.js';

/** Records as a record log would hold them. */
export function logged(records: readonly TelemetryRecord[], resource: Resource = UNKNOWN_RESOURCE): LoggedRecord[] {
  let offset = 0;
  return records.map((record) => {
    const endOffset = offset + Buffer.byteLength(formatRecordLine(record)) + 1;
    const item = { record, resource, offset, endOffset };
    offset = endOffset;
    return item;
  });
}

/** A sample as its JSONL file brings it. */
export function fromJsonl(run: string): LoggedRecord[] {
  return logged(sampleLines(run).map(parseRecordLine));
}

/** Decoded once a file of tests; records are never changed. */
const decoded = new Map<string, readonly LoggedRecord[]>();

/**
 * A sample as its OTLP bodies bring it, in the order in which they came.
 * @param bodyCount how many of the bodies came; all when left out
 */
export function fromOtlp(run: string, bodyCount = Number.POSITIVE_INFINITY): LoggedRecord[] {
  const key = `${run} ${bodyCount}`;
  const known = decoded.get(key) ?? decodeSample(run, bodyCount);
  decoded.set(key, known);
  return [...known];
}

function decodeSample(run: string, bodyCount: number): readonly LoggedRecord[] {
  let offset = 0;
  return sampleBodies(run)
    .slice(0, bodyCount)
    .flatMap(({ signal, body }) =>
      decodeBody(signal, body).delivery.batches.flatMap(({ resource, records }) =>
        records.map((record) => ({ record, resource })),
      ),
    )
    .map(({ record, resource }) => {
      const endOffset = offset + Buffer.byteLength(formatRecordLine(record)) + 1;
      const item = { record, resource, offset, endOffset };
      offset = endOffset;
      return item;
    });
}

export function bodyCount(run: string): number {
  return sampleBodies(run).length;
}
