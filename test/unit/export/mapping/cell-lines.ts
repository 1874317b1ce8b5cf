import { SMALL_SAMPLES, sampleLines } from '../../../fake/sample-run.js';

const TRACE = '01a1fb8ea78d7281ae8c1be536b674cd';
const FIRST_MS = 1_700_000_000_000;
const V1 = 'v1.public.events.fusion.';

/** What a line is made of: members of its JSON but for the attributes, and these by name, each as JSON. */
export interface LineParts {
  readonly head: Readonly<Record<string, unknown>>;
  readonly attributes: ReadonlyMap<string, string>;
}

/** Ends of spans and log records of the samples: a few of each event type. */
export function sampleParts(): readonly LineParts[] {
  const found = new Map<string, LineParts[]>();
  for (const line of SMALL_SAMPLES.flatMap(sampleLines)) {
    const { attributes, ...head } = JSON.parse(line);
    if (head.record_type === 'SpanStart') continue;
    const kind = `${head.event_type} ${attributes.node_outcome ?? ''} ${attributes.sql === undefined} ${/ \(/.test(head.span_name)}`;
    const parts = found.get(kind) ?? [];
    found.set(kind, parts);
    if (parts.length >= 3) continue;
    const texts = Object.entries(attributes).map(([name, value]) => [name, JSON.stringify(value)] as const);
    parts.push({ head: own(head), attributes: new Map(texts) });
  }
  return [...found.values()].flat();
}

/** As `LineWriter` writes it of OTLP: without an event's id; and of the trace that all lines here are of. */
function own(head: Record<string, unknown>): Record<string, unknown> {
  const id = 'event_id' in head ? { event_id: null } : {};
  return { ...head, trace_id: TRACE, ...id, ...('links' in head && { links: null }) };
}

/** The id of a number. */
export function idOf(id: number): string {
  return id.toString(16).padStart(16, '0');
}

/** Unix nanoseconds of a time in milliseconds. */
export function nanosOf(ms: number): string {
  return `${FIRST_MS + ms}000000`;
}

/** The link to a span. */
export function linkTo(id: number): unknown {
  return [{ trace_id: TRACE, span_id: idOf(id), attributes: {} }];
}

/** A span's end, or a log record, as one line; its attributes in the order of their names. */
export function lineOf({ head, attributes }: LineParts): string {
  const members = [...attributes]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${JSON.stringify(name)}:${value}`);
  return `${JSON.stringify(head).slice(0, -1)},"attributes":{${members.join(',')}}}\n`;
}

/** The start of a span by its end. */
export function startOf({ head, attributes }: LineParts): string {
  const { end_time_unix_nano: _end, status: _status, ...start } = head;
  return lineOf({ head: { ...start, record_type: 'SpanStart' }, attributes });
}

const PARTS = sampleParts();

/**
 * The end of a span that ended well, with the head that the samples' have.
 * @param type of its event, without what is common to all
 */
export function spanLine(id: number, type: string, attributes: Readonly<Record<string, unknown>>): string {
  const head = PARTS.find((one) => one.head.event_type === V1 + type && / \(/.test(String(one.head.span_name)))?.head;
  if (head === undefined) throw new Error(`no sample has ${type}`);
  const own = { span_id: idOf(id), parent_span_id: null, ...timesOf(0, 1) };
  return lineOf({ head: { ...head, ...own }, attributes: jsonOf(attributes) });
}

/** Times of a span that began and ended at times in milliseconds. */
export function timesOf(startMs: number, endMs: number): Readonly<Record<string, string>> {
  return { start_time_unix_nano: nanosOf(startMs), end_time_unix_nano: nanosOf(endMs) };
}

/** A log record of span 1. @param type the whole type of its event */
export function logLine(type: string, body: string, attributes: Readonly<Record<string, unknown>>): string {
  const head = {
    ...{ record_type: 'LogRecord', trace_id: TRACE, span_id: idOf(1), span_name: null, event_id: null },
    ...{ time_unix_nano: nanosOf(0), severity_number: 9, severity_text: 'INFO', body, event_type: type },
  };
  return lineOf({ head, attributes: jsonOf(attributes) });
}

function jsonOf(attributes: Readonly<Record<string, unknown>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(attributes).map(([name, value]) => [name, JSON.stringify(value)]));
}
