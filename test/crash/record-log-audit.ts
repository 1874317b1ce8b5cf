import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExpectedRun } from './expected-runs.js';
import { addTallies, EMPTY_TALLY, type Tally, tally } from './tally.js';

/** What the record logs of a data folder hold of what was acknowledged. */
export interface RecordLogFigures {
  readonly spans: Tally;
  readonly spanStarts: Tally;
  readonly logs: Tally;
  /** Lines that are no record: torn, or glued to another. Each with its file. */
  readonly badLines: readonly string[];
}

interface Line {
  readonly record_type: string;
  readonly trace_id: string;
  readonly span_id: string | null;
  readonly time_unix_nano?: string;
}

/** Reads every run's record log line by line. */
export function auditRecordLogs(dataFolder: string, runs: readonly ExpectedRun[]): RecordLogFigures {
  const badLines: string[] = [];
  let [spans, spanStarts, logs] = [EMPTY_TALLY, EMPTY_TALLY, EMPTY_TALLY];
  for (const run of runs) {
    const path = join(dataFolder, 'runs', run.traceId, 'telemetry.jsonl');
    const counts = countLines(readFileSync(path, 'utf8'), run, (text) => badLines.push(`${path}: ${text}`));
    const once = new Map([...run.spanKeys].map((key) => [key, 1]));
    spans = addTallies(spans, tally(once, counts.ends));
    spanStarts = addTallies(spanStarts, tally(once, counts.starts));
    logs = addTallies(logs, tally(run.logs, counts.logs));
  }
  return { spans, spanStarts, logs, badLines };
}

function countLines(text: string, run: ExpectedRun, bad: (text: string) => void) {
  const ends = new Map<number, number>();
  const starts = new Map<number, number>();
  const logs = new Map<string, number>();
  if (!text.endsWith('\n')) bad('its last line has no end');
  for (const line of text.trimEnd().split('\n')) {
    const record = parse(line, run.traceId);
    if (record === undefined) bad(line.slice(0, 200));
    else if (record.record_type === 'LogRecord') increment(logs, `${record.span_id} ${record.time_unix_nano}`);
    else increment(record.record_type === 'SpanEnd' ? ends : starts, Number.parseInt(record.span_id ?? '', 16));
  }
  return { ends, starts, logs };
}

function parse(line: string, traceId: string): Line | undefined {
  try {
    const record = JSON.parse(line) as Line;
    return record.trace_id === traceId ? record : undefined;
  } catch {
    return undefined;
  }
}

function increment<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
