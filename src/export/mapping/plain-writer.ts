import { type Attributes, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import {
  ATTR_DB_COLLECTION_NAME,
  ATTR_DB_NAMESPACE,
  ATTR_DB_OPERATION_NAME,
  ATTR_DB_QUERY_SUMMARY,
  ATTR_DB_QUERY_TEXT,
  ATTR_DB_SYSTEM_NAME,
} from '@opentelemetry/semantic-conventions';
import {
  ATTR_DB_RESPONSE_RETURNED_ROWS,
  ATTR_TEST_CASE_NAME,
  ATTR_TEST_CASE_RESULT_STATUS,
  ATTR_TEST_SUITE_NAME,
  TEST_CASE_RESULT_STATUS_VALUE_FAIL,
  TEST_CASE_RESULT_STATUS_VALUE_PASS,
} from '@opentelemetry/semantic-conventions/incubating';
import type { MappingSwitches } from '../../config/mapping-options.js';
import type { Resource } from '../../record/attributes.js';
import { spanIdOf } from '../../record/span-id-table.js';
import type { TraceId } from '../../record/telemetry-record.js';
import type { Redactor } from '../../redaction/redactor.js';
import { FAIL_FAST, type NodeVerdict } from '../../run/verdict.js';
import { isTestId } from '../../storage/manifest.js';
import {
  EVENT,
  encodeAttribute,
  encodeAttributes,
  encodeEvent,
  encodeLink,
  encodeSpanEnd,
  encodeValue,
  LOG,
  optionalText,
  RECORD,
  SPAN,
  type SpanEvents,
  WireWriter,
} from '../wire/wire-writer.js';
import { type CommandAttributes, testSuiteOf } from './command-attributes.js';
import {
  EVENT_TYPE,
  flattenAttributes,
  int64Value,
  isStructuralName,
  shortEventType,
  stableSpanName,
} from './exported-names.js';
import type { MadeEvent } from './made-events.js';
import type { IdHalves, Interval, PlainRecord, Time } from './mapped-record.js';
import type { NodeIndex } from './node-index.js';
import { type Closing, type SpanOutcome, SpanOutcomes } from './span-outcomes.js';
import type { UpstreamLinks } from './upstream-links.js';

/** Writes spans of any look as OTLP's bytes: this says what is right. `CellWriter` does the same faster for what looks as nearly all do. */
export class SpanWriter {
  private readonly outcomes: SpanOutcomes;
  /** What was made of the span that was written last; `undefined` for nothing. */
  made: MadeEvent | undefined;

  constructor(
    private readonly switches: MappingSwitches,
    private readonly redactor: Redactor,
    private readonly nodes: NodeIndex,
    private readonly commands: CommandAttributes,
    private readonly upstream: UpstreamLinks,
  ) {
    this.outcomes = new SpanOutcomes(nodes, redactor, switches);
  }

  /**
   * Writes the span of a record, its tag and length included.
   * @param resource that the record came with
   * @param closing of a start, whose end never came.
   * @returns false when the record turns out to be damaged; what was written is to be passed over.
   */
  write(out: WireWriter, record: PlainRecord, resource: Resource, events: SpanEvents, closing?: Closing): boolean {
    this.made = undefined;
    try {
      this.writeSpan(out, record, resource, events, closing);
      return true;
    } catch (error) {
      if (error instanceof SyntaxError) return false;
      throw error;
    }
  }

  /** Takes down what became of a test whose span is not written. */
  noteTest(record: PlainRecord): void {
    const { uniqueId, spanHigh, spanLow } = record;
    if (uniqueId !== undefined) this.commands.noteTest(spanHigh, spanLow, uniqueId, this.outcomes.verdictOf(record));
  }

  private writeSpan(
    out: WireWriter,
    record: PlainRecord,
    resource: Resource,
    events: SpanEvents,
    closing: Closing | undefined,
  ): void {
    const verdict = closing === undefined ? this.outcomes.verdictOf(record) : undefined;
    out.tag(RECORD);
    const start = out.open();
    const originalName = this.writeHead(out, record, closing);
    const isInvocation = record.eventType === EVENT_TYPE.invocation;
    const added = attributesOf(record, this.switches, this.redactor);
    this.writeStatement(record, added);
    const outcome =
      closing === undefined
        ? this.outcomes.of(record, verdict, added)
        : this.outcomes.ofUnfinished(record, closing, added);
    if (isInvocation && closing === undefined) {
      const isFailed = outcome.status.code === SpanStatusCode.ERROR;
      const ended = isFailed ? this.failureOf(record) : 'success';
      const id = [record.spanHigh, record.spanLow] as const;
      this.commands.write({ id, resource, word: commandOf(record) ?? null, verdict: ended }, added);
    }
    if (closing === undefined && record.eventType === EVENT_TYPE.nodeProcessed) {
      writeNodeAttributes(record, { nodes: this.nodes, switches: this.switches, verdict }, added);
      if (isTestId(record.uniqueId ?? '')) this.noteTest(record);
    }
    if (originalName !== undefined) added['run_bridge.span.original_name'] = originalName;
    encodeAttributes(out, SPAN.attributes, added);
    const { event, status } = outcome;
    const { traceId, uniqueId } = record;
    if (event !== undefined) this.made = { event, traceId, spanId: [record.spanHigh, record.spanLow], uniqueId };
    const shown = this.switches.events === 'logs' ? { event: undefined, status } : outcome;
    writeSpanTail(out, events, shown, () => this.writeLinks(out, record));
    out.close(start);
  }

  /** Writes what stands before the attributes. @returns the name as it was, where another is exported. */
  private writeHead(out: WireWriter, record: PlainRecord, closing: Closing | undefined): string | undefined {
    const { eventType } = record;
    const original = isStructuralName(eventType) ? record.name : this.redactor.text(record.name);
    const name = this.switches.names
      ? stableSpanName(original, eventType, eventType === EVENT_TYPE.invocation ? commandOf(record) : undefined)
      : original;
    writeSpanHead(out, {
      traceId: record.traceId,
      id: [record.spanHigh, record.spanLow],
      parent: [record.parentHigh, record.parentLow],
      name,
      kind: eventType === EVENT_TYPE.queryExecuted ? SpanKind.CLIENT : SpanKind.INTERNAL,
      start: [record.startSeconds, record.startNanos],
      end: [(closing ?? record).endSeconds, (closing ?? record).endNanos],
    });
    return name === original ? undefined : original;
  }

  private writeStatement(record: PlainRecord, into: Attributes): void {
    const isQuery = record.eventType === EVENT_TYPE.queryExecuted && this.switches.attributes;
    const uniqueId = isQuery ? record.uniqueId : undefined;
    const namespace = uniqueId === undefined ? undefined : this.nodes.namespaceOf(uniqueId);
    writeStatement(record, into, this.redactor, namespace, isQuery);
  }

  /** The result of a command that ended with errors: it was interrupted, unless it was to stop by itself at the first failure. */
  private failureOf(record: PlainRecord): 'error' | 'canceled' {
    return this.nodes.wasInterrupted && !FAIL_FAST.test(record.text('raw_command') ?? '') ? 'canceled' : 'error';
  }

  /** @returns how many links there was no room for */
  private writeLinks(out: WireWriter, record: PlainRecord): number {
    for (const link of record.links) {
      const attributes: Attributes = {};
      flattenAttributes(link.attributes.value, record.eventType, attributes, this.redactor, true);
      encodeLink(out, link.traceId, link.spanId, attributes);
    }
    if (this.switches.verdicts) this.writeSkipLink(out, record);
    const { upstream } = this;
    const isProcessed = record.isEnd && record.eventType === EVENT_TYPE.nodeProcessed;
    if (!isProcessed || !upstream.make(record, record.uniqueId, () => record.traceId)) return 0;
    out.raw(upstream.out.bytes.subarray(0, upstream.out.length));
    return upstream.droppedCount;
  }

  /** The link of a skipped node to the one that caused it. */
  private writeSkipLink(out: WireWriter, record: PlainRecord): void {
    const upstreamId = record.attributes.object('node_skip_upstream_detail')?.upstream_unique_id;
    if (typeof upstreamId !== 'string') return;
    const cause = this.nodes.processedSpanOf(upstreamId, record);
    if (cause === undefined) return;
    const attributes = { 'run_bridge.link.type': 'skip_cause', unique_id: upstreamId };
    encodeLink(out, record.traceId, spanIdOf(cause[0], cause[1]), attributes);
  }
}

/** What stands in a span before its attributes. */
export interface SpanHead {
  readonly traceId: TraceId;
  readonly id: IdHalves;
  /** `undefined`, or halves that are 0, for none. */
  readonly parent: IdHalves | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  readonly start: Time;
  readonly end: Time;
}

/** Writes what stands in a span before its attributes. */
export function writeSpanHead(out: WireWriter, { traceId, id, parent, name, kind, start, end }: SpanHead): void {
  out.tag(SPAN.traceId);
  out.hex(traceId);
  out.tag(SPAN.spanId);
  out.id(id[0], id[1]);
  if (parent !== undefined && (parent[0] !== 0 || parent[1] !== 0)) {
    out.tag(SPAN.parentSpanId);
    out.id(parent[0], parent[1]);
  }
  out.tag(SPAN.name);
  out.text(name);
  out.tag(SPAN.kind);
  out.varint(kind + 1);
  out.tag(SPAN.startTime);
  out.time(start[0], start[1]);
  out.tag(SPAN.endTime);
  out.time(end[0], end[1]);
}

/** Writes what stands in a span behind its attributes. */
export function writeSpanTail(
  out: WireWriter,
  events: SpanEvents,
  { event, status }: SpanOutcome,
  writeLinks?: () => number,
): void {
  out.tag(SPAN.droppedAttributesCount);
  out.varint(0);
  events.writeTo(out);
  if (event !== undefined) encodeEvent(out, event);
  out.tag(SPAN.droppedEventsCount);
  out.varint(events.droppedCount);
  const droppedLinksCount = writeLinks?.() ?? 0;
  out.tag(SPAN.droppedLinksCount);
  out.varint(droppedLinksCount);
  encodeSpanEnd(out, status);
}

/** A record's attributes as they are exported, its event's type before them; without its statement. */
export function attributesOf(record: PlainRecord, switches: MappingSwitches, redactor: Redactor): Attributes {
  const attributes: Attributes = { event_type: record.eventType };
  flattenAttributes(record.attributes.value, record.eventType, attributes, redactor, switches.attributes);
  return attributes;
}

/** The command that an invocation ran, for example `build`. */
function commandOf(record: PlainRecord): string | undefined {
  const command = record.attributes.object('eval_args')?.command;
  return typeof command === 'string' ? command : undefined;
}

/** Names of OTel's `db.system.name` by the engine's `adapter_type`, where they differ. */
const SYSTEMS: ReadonlyMap<string, string> = new Map([
  ['postgres', 'postgresql'],
  ['redshift', 'aws.redshift'],
  ['athena', 'aws.athena'],
  ['bigquery', 'gcp.bigquery'],
  ['sqlserver', 'microsoft.sql_server'],
  ['fabric', 'microsoft.sql_server'],
  ['synapse', 'microsoft.sql_server'],
  ['oracle', 'oracle.db'],
]);

/** OTel's name of the engine's `adapter_type`. */
export function systemNameOf(adapterType: string): string {
  return SYSTEMS.get(adapterType) ?? adapterType;
}

/**
 * Writes a record's statement: as `db.query.text` beside the other `db.*` attributes for a query, as `sql` otherwise. Where
 * no SQL may be shown, `run_bridge.sql.sha256` stands for a statement that the engine gave no `sql_hash`.
 * @param namespace where the relation lies that the query works for, for `db.namespace`.
 */
export function writeStatement(
  record: { text(name: string): string | undefined },
  into: Attributes,
  redactor: Redactor,
  namespace: string | undefined,
  isDatabaseSpan: boolean,
): void {
  const statement = record.text('sql');
  const adapterType = record.text('adapter_type');
  const sql = statement === undefined ? undefined : redactor.sql(statement, adapterType);
  if (sql?.text !== undefined) into[isDatabaseSpan ? ATTR_DB_QUERY_TEXT : 'sql'] = sql.text;
  else if (sql?.sha256 !== undefined && record.text('sql_hash') === undefined)
    into['run_bridge.sql.sha256'] = sql.sha256;
  if (!isDatabaseSpan) return;
  if (adapterType !== undefined) into[ATTR_DB_SYSTEM_NAME] = systemNameOf(adapterType);
  if (sql?.operation !== undefined) into[ATTR_DB_OPERATION_NAME] = sql.operation;
  if (sql?.summary !== undefined) into[ATTR_DB_QUERY_SUMMARY] = sql.summary;
  if (sql?.collection !== undefined) into[ATTR_DB_COLLECTION_NAME] = sql.collection;
  if (namespace !== undefined) into[ATTR_DB_NAMESPACE] = namespace;
}

/**
 * Writes what the span of a processed node carries beside the engine's attributes: what share of its time its queries took,
 * how many rows it came to, and of a test its name and result.
 * @param verdict `undefined` if unknown
 */
export function writeNodeAttributes(
  span: Interval & { text(name: string): string | undefined },
  known: { readonly nodes: NodeIndex; readonly switches: MappingSwitches; readonly verdict: NodeVerdict | undefined },
  into: Attributes,
): void {
  const { nodes, switches, verdict } = known;
  const uniqueId = span.text('unique_id');
  if (uniqueId === undefined) return;
  if (switches.attributes) {
    writeQueryTime(nodes, uniqueId, span, into);
    const rows = span.text('rows_affected');
    if (rows !== undefined) into[ATTR_DB_RESPONSE_RETURNED_ROWS] = int64Value(rows);
  }
  writeTestAttributes(uniqueId, verdict, into);
}

/** Writes the name, the suite and the result of a test; nothing of another node. */
export function writeTestAttributes(uniqueId: string, verdict: NodeVerdict | undefined, into: Attributes): void {
  const name = testNameOf(uniqueId);
  if (name === undefined) return;
  into[ATTR_TEST_CASE_NAME] = name;
  into[ATTR_TEST_SUITE_NAME] = testSuiteOf(uniqueId);
  const result = verdict === undefined ? undefined : RESULTS[verdict];
  if (result !== undefined) into[ATTR_TEST_CASE_RESULT_STATUS] = result;
}

function writeQueryTime(nodes: NodeIndex, uniqueId: string, span: Interval, into: Attributes): void {
  const queryTime = nodes.queryTimeOf(uniqueId, span);
  if (queryTime === undefined) return;
  into['run_bridge.node.query_count'] = queryTime.count;
  into['run_bridge.node.query_time_ms'] = Math.trunc(queryTime.nanos / 1_000) / 1_000;
}

/**
 * `not_null_orders_id` of `test.shop.not_null_orders_id.1a2b3c4d5e`, `adds_up` of `unit_test.shop.orders.adds_up`, `adds_up.v2`
 * of `unit_test.shop.orders.adds_up.v2`, which tests a version.
 */
function testNameOf(uniqueId: string): string | undefined {
  const parts = uniqueId.split('.');
  if (parts[0] === 'unit_test') return parts.slice(Math.min(3, parts.length - 1)).join('.');
  return parts[0] === 'test' ? parts[2] : undefined;
}

/** A warning does not fail a test. What did not run to its end has no result. */
const RESULTS: Readonly<Partial<Record<NodeVerdict, string>>> = {
  success: TEST_CASE_RESULT_STATUS_VALUE_PASS,
  warned: TEST_CASE_RESULT_STATUS_VALUE_PASS,
  failed: TEST_CASE_RESULT_STATUS_VALUE_FAIL,
  error: TEST_CASE_RESULT_STATUS_VALUE_FAIL,
};

/**
 * Writes log records of any look as OTLP's bytes, as events of their spans and as log records: this says what is right. What both
 * have in common is made once: `read` comes first.
 */
export class LogWriter {
  private readonly event = new WireWriter(4096);
  private attributes: Attributes = {};
  private body = '';

  constructor(
    private readonly switches: MappingSwitches,
    private readonly redactor: Redactor,
  ) {}

  /** @throws SyntaxError when the record turns out to be damaged */
  read(record: PlainRecord): void {
    const { redactor } = this;
    this.body = redactor.text(record.body);
    this.attributes = attributesOf(record, this.switches, redactor);
    writeStatement(record, this.attributes, redactor, undefined, false);
  }

  /** The event, as `EventBuffer.addText` takes it. */
  eventText(record: PlainRecord): string {
    const { event: out } = this;
    out.length = 0;
    out.tag(EVENT.message);
    const start = out.open();
    out.tag(EVENT.time);
    out.time(record.startSeconds, record.startNanos);
    out.tag(EVENT.name);
    out.text(shortEventType(record.eventType));
    encodeAttributes(out, EVENT.attributes, {
      ...(this.body === '' ? {} : { body: this.body }),
      severity_text: record.severityText,
      severity_number: record.severityNumber,
      ...this.attributes,
    });
    out.tag(EVENT.droppedAttributesCount);
    out.varint(0);
    out.close(start);
    return out.bytes.toString('latin1', 0, out.length);
  }

  /** Writes the log record, its tag and length included. @param record the one that was read */
  write(out: WireWriter, record: PlainRecord): void {
    out.tag(RECORD);
    const start = out.open();
    out.tag(LOG.time);
    out.time(record.startSeconds, record.startNanos);
    if (record.severityNumber !== 0) {
      out.tag(LOG.severityNumber);
      out.int64(record.severityNumber);
    }
    optionalText(out, LOG.severityText, record.severityText);
    out.tag(LOG.body);
    encodeValue(out, this.body);
    encodeAttributes(out, LOG.attributes, this.attributes);
    out.tag(LOG.droppedAttributesCount);
    out.varint(0);
    if (record.spanHigh !== 0 || record.spanLow !== 0) {
      out.tag(LOG.flags);
      out.fixed32(TraceFlags.SAMPLED);
      out.tag(LOG.traceId);
      out.hex(record.traceId);
      out.tag(LOG.spanId);
      out.id(record.spanHigh, record.spanLow);
    }
    out.tag(LOG.observedTime);
    out.time(record.startSeconds, record.startNanos);
    optionalText(out, LOG.eventName, record.eventType);
    out.close(start);
  }
}

/** When an event happened, in nanoseconds: the first of its fields. */
export function eventTimeOf(event: string): bigint {
  const at = bodyStartOf(event) + 1;
  return Buffer.from(event.slice(at, at + 8), 'latin1').readBigUInt64LE(0);
}

/** An event that stands on another span than it happened in. @param span the one in which it happened */
export function movedEvent(event: string, span: IdHalves): string {
  const body = event.slice(bodyStartOf(event), -TAIL_BYTES);
  const wasMoved = body.startsWith(SPAN_ID_HEAD, body.length - SPAN_ID_HEAD.length - SPAN_ID_DIGITS);
  const own = wasMoved ? body.slice(0, -SPAN_ID_HEAD.length - SPAN_ID_DIGITS) : body;
  const moved = own + SPAN_ID_HEAD + spanIdOf(span[0], span[1]) + event.slice(-TAIL_BYTES);
  const head = new WireWriter(8);
  head.tag(EVENT.message);
  head.varint(moved.length);
  return head.bytes.toString('latin1', 0, head.length) + moved;
}

/** Where its fields begin, behind its tag and length. */
function bodyStartOf(event: string): number {
  let at = 1;
  while (event.charCodeAt(at) >= 0x80) at++;
  return at + 1;
}

/** The number of dropped attributes, which ends each event. */
const TAIL_BYTES = 2;
const SPAN_ID_DIGITS = 16;
/** The attribute that names the span, up to the id. */
const SPAN_ID_HEAD = spanIdHead();

function spanIdHead(): string {
  const out = new WireWriter(64);
  encodeAttribute(out, EVENT.attributes, 'run_bridge.event.span_id', '0'.repeat(SPAN_ID_DIGITS));
  return out.bytes.toString('latin1', 0, out.length - SPAN_ID_DIGITS);
}
