import type {
  AnyValue,
  ExportRequest,
  KeyValue,
  OtlpLogRecord,
  OtlpSpan,
  ResourceGroup,
} from '../otlp/export-request.js';
import { invocationIdOf, type TraceId } from '../record/ids.js';
import type { UnixNano } from '../record/unix-nano.js';

/** How a recorded run becomes one of its own. */
export interface Rebase {
  readonly from: TraceId;
  readonly to: TraceId;
  /** Added to every time. */
  readonly shiftNano: UnixNano;
}

/** A recorded request as if its run happened at another time, under another trace and invocation id. */
export function rebaseRequest(request: ExportRequest, rebase: Rebase): ExportRequest {
  return request.signal === 'traces'
    ? { signal: 'traces', resources: mapRecords(request.resources, (span) => rebaseSpan(span, rebase)) }
    : { signal: 'logs', resources: mapRecords(request.resources, (log) => rebaseLog(log, rebase)) };
}

/** The latest time in some requests, in nanoseconds since the Unix epoch. */
export function latestTime(requests: readonly ExportRequest[]): UnixNano {
  let latest = 0n;
  for (const request of requests) {
    for (const time of timesOf(request)) if (time > latest) latest = time;
  }
  return latest;
}

function timesOf(request: ExportRequest): readonly UnixNano[] {
  return request.signal === 'traces'
    ? recordsOf(request.resources).map((span) => span.endTimeUnixNano)
    : recordsOf(request.resources).map((log) => log.timeUnixNano);
}

function recordsOf<T>(groups: readonly ResourceGroup<T>[]): readonly T[] {
  return groups.flatMap(({ scopes }) => scopes).flatMap(({ records }) => records);
}

function mapRecords<T>(groups: readonly ResourceGroup<T>[], map: (record: T) => T): readonly ResourceGroup<T>[] {
  return groups.map((group) => ({
    ...group,
    scopes: group.scopes.map((scope) => ({ ...scope, records: scope.records.map(map) })),
  }));
}

function rebaseSpan(span: OtlpSpan, rebase: Rebase): OtlpSpan {
  return {
    ...span,
    traceId: replaceId(span.traceId, rebase),
    name: replaceId(span.name, rebase),
    startTimeUnixNano: span.startTimeUnixNano + rebase.shiftNano,
    endTimeUnixNano: span.endTimeUnixNano + rebase.shiftNano,
    attributes: rebaseAttributes(span.attributes, rebase),
    events: span.events.map((event) => ({ ...event, timeUnixNano: event.timeUnixNano + rebase.shiftNano })),
    links: span.links.map((link) => ({ ...link, traceId: replaceId(link.traceId, rebase) })),
  };
}

function rebaseLog(log: OtlpLogRecord, rebase: Rebase): OtlpLogRecord {
  return {
    ...log,
    traceId: replaceId(log.traceId, rebase),
    timeUnixNano: log.timeUnixNano + rebase.shiftNano,
    observedTimeUnixNano: log.observedTimeUnixNano + rebase.shiftNano,
    attributes: rebaseAttributes(log.attributes, rebase),
  };
}

function rebaseAttributes(attributes: readonly KeyValue[], rebase: Rebase): readonly KeyValue[] {
  return attributes.map(({ key, value }) => ({ key, value: rebaseValue(value, rebase) }));
}

function rebaseValue(value: AnyValue, rebase: Rebase): AnyValue {
  return typeof value === 'string' ? replaceId(value, rebase) : value;
}

function replaceId(text: string, { from, to }: Rebase): string {
  return text.replaceAll(from, to).replaceAll(invocationIdOf(from), invocationIdOf(to));
}
