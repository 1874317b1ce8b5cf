import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatRecordLine, parseRecordLine } from '../../src/record/record-line.js';
import type { TelemetryRecord } from '../../src/record/telemetry-record.js';
import type { Told } from './told.js';

/** Log records that wait for the name of their span are there meanwhile. */
const PENDING_FILE = 'pending.jsonl';

/** What has to be in the record logs of a data folder, and nothing else, after bodies were accepted. */
export class ExpectedLog {
  /** By trace and what makes a record the same as another: it is kept once, in the words of whichever came first. */
  private readonly lines = new Map<string, Set<string>>();

  /** Of a body that was answered 200. */
  add({ lines }: Told): void {
    for (const { record } of lines) {
      const key = keyOf(record);
      const known = this.lines.get(key) ?? new Set();
      this.lines.set(key, known.add(wordsOf(record)));
    }
  }

  get recordCount(): number {
    return this.lines.size;
  }

  /** Each thing that is not as it has to be. */
  *problems(dataFolder: string): Generator<string> {
    const found = new Set<string>();
    for (const { traceId, line } of linesBelow(join(dataFolder, 'runs'))) {
      const record = parseRecordLine(line);
      const key = keyOf(record);
      if (record.traceId !== traceId) yield `in the log of ${traceId}: ${line}`;
      if (found.has(key)) yield `twice: ${line}`;
      found.add(key);
      if (!this.lines.get(key)?.has(wordsOf(record))) yield `nobody sent: ${line}`;
    }
    for (const [key, words] of this.lines) if (!found.has(key)) yield `not there: ${[...words][0]}`;
  }
}

function keyOf(record: TelemetryRecord): string {
  const { traceId, recordType, spanId } = record;
  if (recordType !== 'LogRecord') return `${traceId} ${spanId} ${recordType}`;
  return `${traceId} ${spanId} ${record.timeUnixNano} ${record.eventType} ${record.body}`;
}

/** Its line; a log record's without the name of its span, which does not come over OTLP and is found later. */
function wordsOf(record: TelemetryRecord): string {
  if (record.recordType !== 'LogRecord') return formatRecordLine(record);
  const { line: _line, ...rest } = record;
  return formatRecordLine({ ...rest, spanName: null });
}

function* linesBelow(runs: string): Generator<{ readonly traceId: string; readonly line: string }> {
  for (const traceId of readdirSync(runs)) {
    for (const line of linesOf(join(runs, traceId, 'telemetry.jsonl'))) yield { traceId, line };
    for (const pending of linesOf(join(runs, traceId, PENDING_FILE))) {
      yield { traceId, line: (JSON.parse(pending) as { line: string }).line };
    }
  }
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1);
  } catch {
    return [];
  }
}
