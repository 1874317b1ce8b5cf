import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatRecordLine, parseRecordLine } from '../../src/record/record-line.js';
import type { TelemetryRecord } from '../../src/record/telemetry-record.js';
import type { Decoded } from './decoded.js';

/** Log records that wait for the name of their span are there meanwhile. */
const PENDING_FILE = 'pending.jsonl';

/** What has to be in the record logs of a data folder, and nothing else, after bodies were accepted. */
export class ExpectedLog {
  /** By trace and what makes a record the same as another: it is kept once, in the words of whichever came first. */
  private readonly lines = new Map<string, { readonly words: Set<string>; count: number }>();

  /** Of a body that was answered 200. Equal log records of one body are several; equal spans are one. */
  add({ lines }: Decoded): void {
    const inBody = new Map<string, number>();
    for (const { record } of lines) {
      const key = keyOf(record);
      const known = this.lines.get(key) ?? { words: new Set(), count: 1 };
      this.lines.set(key, known);
      known.words.add(wordsOf(record));
      inBody.set(key, (inBody.get(key) ?? 0) + 1);
      if (record.recordType === 'LogRecord') known.count = Math.max(known.count, inBody.get(key) ?? 1);
    }
  }

  get recordCount(): number {
    return this.lines.size;
  }

  /** Each thing that is not as it has to be. */
  *problems(dataFolder: string): Generator<string> {
    const found = new Map<string, number>();
    for (const { traceId, line } of linesBelow(join(dataFolder, 'runs'))) {
      const record = parseRecordLine(line);
      const key = keyOf(record);
      if (record.traceId !== traceId) yield `in the log of ${traceId}: ${line}`;
      found.set(key, (found.get(key) ?? 0) + 1);
      if (!this.lines.get(key)?.words.has(wordsOf(record))) yield `nobody sent: ${line}`;
    }
    for (const [key, { words, count }] of this.lines) {
      const times = found.get(key) ?? 0;
      if (times !== count) yield `there ${times} times, not ${count}: ${[...words][0]}`;
    }
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
  // Where nothing was accepted there is no folder.
  for (const traceId of existsSync(runs) ? readdirSync(runs) : []) {
    for (const line of linesOf(join(runs, traceId, 'telemetry.jsonl'))) yield { traceId, line };
    for (const pending of linesOf(join(runs, traceId, PENDING_FILE))) {
      if (!pending.startsWith('{"resource":')) yield { traceId, line: pending };
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
