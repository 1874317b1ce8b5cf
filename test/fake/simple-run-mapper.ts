import { SpanKind, TraceFlags } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { LoggedLines, RunMapper } from '../../src/export/run-mapper.js';
import { ExportGroup } from '../../src/export/wire/export-group.js';
import { type MappedItems, WindowWriter } from '../../src/export/wire/item-window.js';
import type { LoggedRecord } from '../../src/log/record-log.js';
import { tryParseRecordLine } from '../../src/record/record-line.js';
import type { RunSummary } from '../../src/run/verdict.js';
import { addLog, addSpan } from './encoded-item.js';

const RESOURCE = resourceFromAttributes({ 'service.name': 'dbt-core' });
const SCOPE = { name: 'dbt-core', version: '2' };
const GROUP = new ExportGroup(RESOURCE.attributes, SCOPE);

interface Held {
  readonly anchorOffset: number;
  readonly spanId: string;
  readonly name: string;
  readonly events: string[];
}

/**
 * The least that a mapper does: log records at once, a span once `holdRecords` further records came or the run is quiet,
 * spans that never ended at the finish.
 */
export class SimpleRunMapper implements RunMapper {
  private held: Held[] = [];
  private readonly started = new Map<string, string>();
  private readonly windows = new WindowWriter();
  private traceId = '';
  private endOffset = 0;
  /** Records pushed. */
  pushedCount = 0;

  constructor(private readonly holdRecords = 2) {}

  get bufferedCount(): number {
    return this.held.length;
  }

  push(records: readonly LoggedRecord[]): void {
    for (const { record, offset, endOffset } of records) {
      if (offset !== this.endOffset) throw new Error(`expected the record at ${this.endOffset}, not at ${offset}`);
      this.pushedCount += 1;
      this.traceId = record.traceId;
      this.endOffset = endOffset;
      if (record.recordType === 'SpanStart') this.started.set(record.spanId, record.spanName);
      if (record.recordType === 'SpanEnd') {
        this.started.delete(record.spanId);
        this.held.push({ anchorOffset: offset, spanId: record.spanId, name: record.spanName, events: [] });
      }
      if (record.recordType === 'LogRecord') {
        this.held.find((span) => span.spanId === record.spanId)?.events.push(record.body);
        this.writeLog(offset, record.body);
      }
      while (this.held.length > this.holdRecords) this.release();
    }
  }

  pushLines({ lines, offset, resource }: LoggedLines): number {
    let at = offset;
    let damagedCount = 0;
    for (const line of Buffer.from(lines).toString().split('\n').slice(0, -1)) {
      const endOffset = at + Buffer.byteLength(line) + 1;
      const record = tryParseRecordLine(line);
      if (record === undefined) damagedCount += 1;
      else this.push([{ record, resource, offset: at, endOffset }]);
      this.endOffset = endOffset;
      at = endOffset;
    }
    return damagedCount;
  }

  take(isQuiet: boolean): MappedItems {
    while (isQuiet && this.held.length > 0) this.release();
    return this.windows.take();
  }

  finish(_run: RunSummary): MappedItems {
    for (const [spanId, name] of this.started)
      this.writeSpan({ anchorOffset: this.endOffset, spanId, name: `${name} unfinished`, events: [] });
    return this.windows.take();
  }

  closingSpanIds(): readonly string[] {
    return [...this.started.keys()];
  }

  /** All items are made: whoever replays passes over those that were sent. */
  skipTo(): void {}

  private release(): void {
    const span = this.held.shift();
    if (span !== undefined) this.writeSpan(span);
  }

  private writeSpan({ anchorOffset, spanId, name, events }: Held): void {
    const { traceId } = this;
    const span: ReadableSpan = {
      name,
      kind: SpanKind.INTERNAL,
      spanContext: () => ({ traceId, spanId, traceFlags: TraceFlags.SAMPLED }),
      startTime: [1, 0],
      endTime: [2, 0],
      duration: [1, 0],
      ended: true,
      status: { code: 0 },
      attributes: {},
      links: [],
      events: events.map((event) => ({ name: event, time: [1, 0] })),
      resource: RESOURCE,
      instrumentationScope: SCOPE,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    };
    addSpan(this.windows, span, anchorOffset, GROUP);
  }

  private writeLog(anchorOffset: number, body: string): void {
    const log: ReadableLogRecord = {
      hrTime: [1, 0],
      hrTimeObserved: [1, 0],
      body,
      resource: RESOURCE,
      instrumentationScope: SCOPE,
      attributes: {},
      droppedAttributesCount: 0,
    };
    addLog(this.windows, log, anchorOffset, GROUP);
  }
}
