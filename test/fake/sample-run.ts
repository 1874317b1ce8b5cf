import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TraceId } from '../../src/record/ids.js';
import { parseRecordLine } from '../../src/record/record-line.js';
import type { TelemetryRecord } from '../../src/record/telemetry-record.js';

/** Where the engine's real runs are; their README says what each is. */
export const SAMPLES = 'test/fixture/samples';

/** The lines of a sample's JSONL as the engine wrote them. */
export function sampleLines(run: string): readonly string[] {
  return readFileSync(join(SAMPLES, run, 'otel.jsonl'), 'utf8')
    .trimEnd()
    .split('\n');
}

/** The records of a sample's JSONL. */
export function sampleRecords(run: string): readonly TelemetryRecord[] {
  return sampleLines(run).map(parseRecordLine);
}

/** The trace id of a sample. */
export function sampleTraceId(run: string): TraceId {
  const [first] = sampleRecords(run);
  if (first === undefined) throw new Error(`the sample ${run} is empty`);
  return first.traceId;
}
