import { createReadStream, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLargeSample, largeSampleFolder } from '../test/tool/large-samples.js';

/** What is sent to both programs: copies of real runs, or made-up spans. */
export interface Workload {
  readonly name: string;
  readonly what: string;
  /** Names of recorded runs, sent one after the other; none for made-up spans. */
  readonly samples: readonly string[];
}

/** What is sent, in the order of the table. */
export const WORKLOADS: readonly Workload[] = [
  {
    name: 'big-build',
    what: 'a build of 400 models at the default level, with failures: 7,009 spans and 2,259 log records',
    samples: ['big-build'],
  },
  {
    name: 'big-build-trace',
    what: 'the same project at trace level: 14,499 spans and 5,789 log records',
    samples: ['big-build-trace'],
  },
  {
    name: 'mixed',
    what: 'the first, and five small runs of other commands and of another engine build',
    samples: ['big-build', 'build-mixed', 'build-mixed-fusion', 'build-clean', 'test-command', 'stale-source'],
  },
  {
    name: 'made-up',
    what: 'spans of one shape, 512 a body, without log records, of runs that never end',
    samples: [],
  },
];

/** The folders with a workload's requests, in the order in which they are sent; none for made-up spans. */
export function requestFolders({ samples }: Workload): readonly string[] {
  return samples.map((sample) => join(sampleFolder(sample), 'otlp'));
}

/** What one copy of a workload becomes in a record log. */
export interface RecordCounts {
  /** Spans, each of which has two records. */
  readonly spans: number;
  readonly logRecords: number;
}

/** Counted in the engine's own files. */
export async function recordCounts({ samples }: Workload): Promise<RecordCounts> {
  const counts = { spans: 0, logRecords: 0 };
  for (const sample of samples) {
    const lines = readFileSync(join(sampleFolder(sample), 'otel.jsonl'), 'latin1').split('\n');
    counts.spans += lines.filter((line) => line.includes('"record_type":"SpanEnd"')).length;
    counts.logRecords += lines.filter((line) => line.includes('"record_type":"LogRecord"')).length;
  }
  return counts;
}

/** The record logs in a data folder, each as the number of its lines. */
export async function lineCounts(dataFolder: string): Promise<readonly number[]> {
  const counts: number[] = [];
  for (const run of readdirSync(join(dataFolder, 'runs'))) {
    let count = 0;
    for await (const chunk of createReadStream(join(dataFolder, 'runs', run, 'telemetry.jsonl'))) {
      for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) count += 1;
    }
    counts.push(count);
  }
  return counts;
}

function sampleFolder(sample: string): string {
  if (isLargeSample(sample)) return largeSampleFolder(sample);
  return join('test/fixture/samples', sample);
}
