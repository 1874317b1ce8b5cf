import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll } from 'vitest';
import { otlpReading } from '../../../src/cli/otlp-reading.js';
import type { OtlpReading } from '../../../src/files/otlp-json-file.js';
import type { RecordSource, Reject, SourceChunk } from '../../../src/files/record-source.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { sampleFolder } from '../../fake/sample-run.js';

export { sampleLines } from '../../fake/sample-run.js';

/** The real codec and decoders. */
export const otlp: OtlpReading = otlpReading([]);

/** A signal that never aborts. */
export const running = new AbortController().signal;

/** A folder for one test file, removed at its end. */
export function temporaryFolder(name: string) {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  afterAll(() => rmSync(folder, { recursive: true }));
  return {
    path: (file: string) => join(folder, file),
    write(file: string, content: string | Uint8Array) {
      writeFileSync(join(folder, file), content);
      return join(folder, file);
    },
    lines: (file: string) => readFileSync(join(folder, file), 'utf8').trimEnd().split('\n'),
  };
}

export function samplePath(sample: string, file = 'otel.jsonl'): string {
  return join(resolve(sampleFolder(sample)), file);
}

export async function readAll(
  source: RecordSource,
): Promise<{ chunks: SourceChunk[]; records: TelemetryRecord[]; rejects: Reject[] }> {
  const chunks: SourceChunk[] = [];
  for await (const chunk of source.read(running)) chunks.push(chunk);
  return {
    chunks,
    records: chunks.flatMap((chunk) => chunk.delivery.batches.flatMap((batch) => batch.records)),
    rejects: chunks.flatMap((chunk) => chunk.rejects),
  };
}
