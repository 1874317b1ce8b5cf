import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { DEFAULT_MAPPING_OPTIONS, type MappingOptions } from '../../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../../src/export/mapping/otel-run-mapper.js';
import type { LoggedRecord } from '../../../../src/log/record-log.js';
import { formatRecordLine } from '../../../../src/record/record-line.js';
import { parseSpanId, parseTraceId, type SpanId } from '../../../../src/record/telemetry-record.js';
import type { InvocationSummary, RunSummary } from '../../../../src/run/verdict.js';
import { itemsOf, type MappedItem, type MappedLog } from '../../../fake/mapped-items.js';
import { ENGINE } from './read-sample.js';

/** What a mapper made of a whole log. */
export interface MappedRun {
  readonly items: readonly MappedItem[];
  readonly spans: readonly ReadableSpan[];
  readonly logs: readonly MappedLog[];
}

/** Maps a log to its end. @param invocations what the run model would say; without it the run stays unfinished. @param prepare what is done before the first record */
export function mapRun(
  log: readonly LoggedRecord[],
  options: Partial<MappingOptions> = {},
  invocations?: readonly InvocationSummary[],
  prepare?: (mapper: OtelRunMapper) => void,
): MappedRun {
  const mapper = new OtelRunMapper({ ...DEFAULT_MAPPING_OPTIONS, ...options });
  prepare?.(mapper);
  pushRecords(mapper, log);
  const items = [...itemsOf(mapper.take(true))];
  if (invocations !== undefined) items.push(...itemsOf(mapper.finish(runSummary(log, invocations))));
  return {
    items,
    spans: items.flatMap((item) => (item.signal === 'traces' ? [item.span] : [])),
    logs: items.flatMap((item) => (item.signal === 'logs' ? [item.log] : [])),
  };
}

/** Pushes records as the lines that they are in a record log. @returns how many were passed over */
export function pushRecords(mapper: OtelRunMapper, log: readonly LoggedRecord[]): number {
  return log.reduce((damagedCount, { record, resource, offset }) => {
    // Tests change records and leave the line as it was.
    const { line: _line, ...content } = record;
    const lines = Buffer.from(`${formatRecordLine(content)}\n`);
    return damagedCount + mapper.pushLines({ resource, offset, lines });
  }, 0);
}

/** An invocation as the run model tells it. */
export function invocationSummary(given: Partial<InvocationSummary>): InvocationSummary {
  return {
    index: 1,
    spanId: null,
    processSpanId: null,
    outerParentSpanId: null,
    hasInvocationEnd: false,
    hasProcessEnd: false,
    isAmbiguous: false,
    command: 'build',
    rawCommand: 'dbt build --fail-fast',
    resource: ENGINE,
    startTimeUnixNano: 0n,
    endTimeUnixNano: 0n,
    verdict: null,
    statusMessage: null,
    totalErrors: null,
    totalWarnings: null,
    nodeCounts: { success: 0, warned: 0, failed: 0, error: 0, canceled: 0, skipped: 0, unfinished: 0 },
    recordCount: 0,
    parquetFile: 'telemetry.parquet',
    step: null,
    ...given,
  };
}

export function spanId(text: string): SpanId {
  const id = parseSpanId(text);
  if (id === undefined) throw new Error(`${text} is no span id`);
  return id;
}

function runSummary(log: readonly LoggedRecord[], invocations: readonly InvocationSummary[]): RunSummary {
  const traceId = log[0]?.record.traceId ?? parseTraceId('00000000000000000000000000000001');
  if (traceId === undefined) throw new Error('the log is empty');
  const logBytes = log.at(-1)?.endOffset ?? 0;
  return { traceId, firstSeenUnixMs: 0, lastSeenUnixMs: 0, state: 'finished', logBytes, invocations };
}

/** The spans with this value of an attribute. */
export function withAttribute(run: MappedRun, name: string, value: unknown): readonly ReadableSpan[] {
  return run.spans.filter((span) => span.attributes[name] === value);
}

/** The NodeProcessed span of a node. */
export function nodeSpan(run: MappedRun, uniqueId: string): ReadableSpan {
  const span = withAttribute(run, 'unique_id', uniqueId).find((one) => one.name.startsWith('Node processed'));
  if (span === undefined) throw new Error(`no node ${uniqueId}`);
  return span;
}

/** The one span with this name. */
export function namedSpan(run: MappedRun, name: string): ReadableSpan {
  const [span, ...others] = run.spans.filter((one) => one.name === name);
  if (span === undefined || others.length > 0) throw new Error(`${others.length + 1} spans named ${name}`);
  return span;
}

/** Names of a span's events. */
export function eventNames(span: ReadableSpan): readonly string[] {
  return span.events.map((event) => event.name);
}
