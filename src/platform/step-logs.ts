import type { RecordLogReader } from '../log/record-log.js';
import { type LogRecord, toUnixMs } from '../record/telemetry-record.js';
import type { CatalogInvocation, CatalogStep } from '../storage/run-catalog.js';
import { NO_LOGS, type StepLogs } from './documents.js';

/** What is read of a record log for a step's text, the end of it, in bytes. */
export const MAX_READ_BYTES = 16 * 1024 * 1024;
/** The most characters of a text; of a longer one the end stays. */
export const MAX_LOG_CHARACTERS = 200_000;
/** Invocations of one step whose logs are read. */
const MAX_INVOCATIONS = 20;
/** OpenTelemetry's number of INFO. */
const INFO = 9;
/** Clocks are read one after the other: a record's timestamp may be this much outside its step's times. In milliseconds. */
const SLACK_MS = 1_000;

/** Makes the text of a step's logs of the log records in its telemetry: what a person reads, a line each. */
export class StepLogReader {
  constructor(private readonly reader: RecordLogReader) {}

  /** `logs` has what is INFO and above, `debugLogs` everything with its severity. */
  async read(step: CatalogStep): Promise<StepLogs> {
    const logs = new LogText();
    const debugLogs = new LogText();
    for (const invocation of step.invocations.slice(0, MAX_INVOCATIONS)) {
      const fromOffset = Math.max(0, (await this.reader.lengthBytes(invocation.traceId)) - MAX_READ_BYTES);
      if (fromOffset > 0) for (const text of [logs, debugLogs]) text.isCut = true;
      for await (const record of this.records(step, invocation, fromOffset)) {
        const time = new Date(toUnixMs(record.timeUnixNano)).toISOString().slice(11, 19);
        if (record.severityNumber >= INFO) logs.add(`${time}  ${record.body}`);
        debugLogs.add(`${time}  ${record.severityText}  ${record.body}`);
      }
    }
    if (step.statusMessage !== null) logs.add(step.statusMessage);
    return step.invocations.length === 0 && step.statusMessage === null
      ? NO_LOGS
      : { logs: logs.text, debugLogs: debugLogs.text };
  }

  /** If commands share a trace: the records logged while the step was running. */
  private async *records(
    step: CatalogStep,
    { traceId }: CatalogInvocation,
    fromOffset: number,
  ): AsyncIterable<LogRecord> {
    const fromMs = (step.startedUnixMs ?? step.createdUnixMs) - SLACK_MS;
    const toMs = (step.finishedUnixMs ?? Number.MAX_SAFE_INTEGER) + SLACK_MS;
    for await (const chunk of this.reader.read(traceId, { fromOffset, isWithinLine: fromOffset > 0 })) {
      for (const { record } of chunk) {
        if (record.recordType !== 'LogRecord' || record.body === '') continue;
        const timeMs = toUnixMs(record.timeUnixNano);
        if (timeMs >= fromMs && timeMs <= toMs) yield record;
      }
    }
  }
}

/** Lines of which the last ones stay. */
class LogText {
  private readonly lines: string[] = [];
  private length = 0;
  /** Whether something is left out at its beginning. */
  isCut = false;

  add(line: string): void {
    this.lines.push(line);
    this.length += line.length + 1;
    // Cut in large steps: what goes is moved about only now and then.
    if (this.length > 2 * MAX_LOG_CHARACTERS) this.cut();
  }

  get text(): string {
    this.cut();
    const text = this.lines.join('\n');
    return this.isCut ? `… (the beginning is left out)\n${text.slice(-MAX_LOG_CHARACTERS)}` : text;
  }

  private cut(): void {
    let count = 0;
    while (this.length > MAX_LOG_CHARACTERS && count < this.lines.length - 1) {
      this.length -= (this.lines[count]?.length ?? 0) + 1;
      count += 1;
    }
    if (count > 0) this.lines.splice(0, count);
    this.isCut ||= count > 0 || this.length > MAX_LOG_CHARACTERS;
  }
}
