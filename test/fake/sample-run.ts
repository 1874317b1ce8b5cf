import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Signal } from '../../src/record/record-batch.js';
import { parseRecordLine } from '../../src/record/record-line.js';
import type { TelemetryRecord, TraceId } from '../../src/record/telemetry-record.js';
import { isLargeSample, largeSampleFolder } from '../tool/large-samples.js';

/** Where the engine's real runs are; their README says what each is. */
export const SAMPLES = 'test/fixture/samples';

/** The small samples' names. */
export const SMALL_SAMPLES: readonly string[] = readdirSync(SAMPLES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** The folder of a sample, small or large (`test/tool/large-samples.ts`). Nothing may write there. */
export function sampleFolder(run: string): string {
  return isLargeSample(run) ? largeSampleFolder(run) : join(SAMPLES, run);
}

/** The lines of a sample's JSONL as the engine wrote them. */
export function sampleLines(run: string): readonly string[] {
  return readFileSync(join(sampleFolder(run), 'otel.jsonl'), 'utf8')
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

/** An OTLP body, as the engine sent it. */
export interface SampleBody {
  readonly file: string;
  readonly signal: Signal;
  readonly body: Buffer;
}

/** A sample's OTLP bodies, in the order in which they were sent. */
export function sampleBodies(run: string): readonly SampleBody[] {
  return bodiesIn(join(sampleFolder(run), 'otlp'));
}

/** The bodies in a folder whose files are named by their order and signal. */
export function bodiesIn(folder: string): readonly SampleBody[] {
  return readdirSync(folder)
    .sort()
    .map((file) => ({
      file,
      signal: file.includes('traces') ? 'traces' : 'logs',
      body: readFileSync(join(folder, file)),
    }));
}

/** The bodies of spans of all samples, each with a name. */
export function allTracesBodies(): readonly (readonly [string, Buffer])[] {
  return SENT_SAMPLES.flatMap((name) => sampleBodies(name).map((one) => ({ ...one, name: `${name}/${one.file}` })))
    .filter(({ signal }) => signal === 'traces')
    .map(({ name, body }) => [name, body] as const);
}

/** Small samples that the engine sent as OTLP, too; of the others that was not kept. */
export const SENT_SAMPLES = SMALL_SAMPLES.filter((name) => existsSync(join(SAMPLES, name, 'otlp')));
