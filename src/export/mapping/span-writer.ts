import { type Attributes as OtelAttributes, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import {
  ATTR_DB_COLLECTION_NAME,
  ATTR_DB_NAMESPACE,
  ATTR_DB_OPERATION_NAME,
  ATTR_DB_QUERY_SUMMARY,
  ATTR_DB_QUERY_TEXT,
  ATTR_DB_SYSTEM_NAME,
} from '@opentelemetry/semantic-conventions';
import {
  ATTR_CICD_PIPELINE_RESULT,
  ATTR_DB_RESPONSE_RETURNED_ROWS,
  ATTR_TEST_CASE_NAME,
  ATTR_TEST_CASE_RESULT_STATUS,
  TEST_CASE_RESULT_STATUS_VALUE_FAIL,
  TEST_CASE_RESULT_STATUS_VALUE_PASS,
} from '@opentelemetry/semantic-conventions/incubating';
import type { Redactor } from '../../redaction/redactor.js';
import type { NodeVerdict } from '../../run/run-summary.js';
import { FAIL_FAST } from '../../run/verdict.js';
import { roleIndexOf } from '../lines/event-mappings.js';
import { LineAttributes } from '../lines/line-attributes.js';
import type { LineReader } from '../lines/line-reader.js';
import { CELL, isEscaped, LINK_CELLS } from '../lines/line-scanner.js';
import {
  encodeAttributes,
  encodeEvent,
  encodeLink,
  encodeSpanEnd,
  LINK,
  RECORD,
  SAMPLED_FLAGS,
  SPAN,
  type SpanEvents,
  type WireWriter,
} from '../wire/wire-writer.js';
import { EVENT_TYPE, isStructuralName, stableSpanName } from './event-types.js';
import { flattenAttributes, int64Value } from './flatten-attributes.js';
import type { MappingSwitches } from './mapping-options.js';
import type { NodeIndex } from './node-index.js';
import { type Closing, PIPELINE_RESULTS, type SpanOutcome, SpanOutcomes } from './span-outcome.js';
import { type Interval, spanIdOf } from './span-tree.js';

/** Writes spans as OTLP's bytes, of the bytes of their lines. */
export class SpanWriter {
  private readonly outcomes: SpanOutcomes;
  private readonly attributes: LineAttributes;

  constructor(
    private readonly switches: MappingSwitches,
    private readonly redactor: Redactor,
    private readonly nodes: NodeIndex,
  ) {
    this.outcomes = new SpanOutcomes(nodes, redactor, switches);
    this.attributes = new LineAttributes(switches, redactor);
  }

  /**
   * Writes the span of a line, its tag and length included.
   * @param closing of a start, whose end never came.
   * @throws SyntaxError when the line turns out to be damaged; what was written is to be passed over.
   */
  write(out: WireWriter, line: LineReader, events: SpanEvents, closing?: Closing): void {
    const verdict = closing === undefined ? this.outcomes.verdictOf(line) : undefined;
    out.tag(RECORD);
    const start = out.open();
    const originalName = this.writeHead(out, line, closing);
    const isInvocation = line.eventType === EVENT_TYPE.invocation;
    const mayMeet = closing !== undefined || isInvocation || verdict === 'canceled';
    const added = this.attributes.write(out, SPAN.attributes, line, mayMeet);
    this.writeStatement(line, added);
    const outcome =
      closing === undefined ? this.outcomes.of(line, verdict, added) : this.outcomes.ofUnfinished(line, closing, added);
    if (isInvocation && closing === undefined) {
      const isFailed = outcome.status.code === SpanStatusCode.ERROR;
      added[ATTR_CICD_PIPELINE_RESULT] = PIPELINE_RESULTS[isFailed ? this.failureOf(line) : 'success'];
    }
    if (closing === undefined && line.eventType === EVENT_TYPE.nodeProcessed) {
      writeNodeAttributes(line, { nodes: this.nodes, switches: this.switches, verdict }, added);
    }
    if (originalName !== undefined) added['run_bridge.span.original_name'] = originalName;
    encodeAttributes(out, SPAN.attributes, added);
    out.tag(SPAN.droppedAttributesCount);
    out.varint(0);
    this.writeTail(out, line, events, outcome);
    out.close(start);
  }

  /** Writes what stands before the attributes. @returns the name as it was, where another is exported. */
  private writeHead(out: WireWriter, line: LineReader, closing: Closing | undefined): string | undefined {
    out.tag(SPAN.traceId);
    out.hexBytes(line.bytes, line.start + line.traceIdStart, TRACE_ID_DIGITS);
    out.tag(SPAN.spanId);
    out.id(line.spanHigh, line.spanLow);
    if (line.parentHigh !== 0 || line.parentLow !== 0) {
      out.tag(SPAN.parentSpanId);
      out.id(line.parentHigh, line.parentLow);
    }
    out.tag(SPAN.name);
    const originalName = this.writeName(out, line);
    out.tag(SPAN.kind);
    out.varint((line.eventType === EVENT_TYPE.queryExecuted ? SpanKind.CLIENT : SpanKind.INTERNAL) + 1);
    out.tag(SPAN.startTime);
    out.time(line.startSeconds, line.startNanos);
    out.tag(SPAN.endTime);
    const { endSeconds, endNanos } = closing ?? line;
    out.time(endSeconds, endNanos);
    return originalName;
  }

  private writeName(out: WireWriter, line: LineReader): string | undefined {
    const end = line.cell(CELL.name + 1);
    if (line.event.isNameKept && !isEscaped(end)) {
      const start = line.cell(CELL.name);
      out.varint(end - start);
      out.copy(line.bytes, line.start + start, line.start + end);
      return undefined;
    }
    const { eventType } = line;
    const given = line.textIn(CELL.name);
    const original = isStructuralName(eventType) ? given : this.redactor.text(given);
    const name = this.switches['stable-names']
      ? stableSpanName(original, eventType, eventType === EVENT_TYPE.invocation ? commandOf(line) : undefined)
      : original;
    out.text(name);
    return name === original ? undefined : original;
  }

  private writeStatement(line: LineReader, into: OtelAttributes): void {
    const isQuery = line.eventType === EVENT_TYPE.queryExecuted && this.switches['database-attributes'];
    const uniqueId = isQuery ? line.uniqueId : undefined;
    const relation = uniqueId === undefined ? undefined : this.nodes.relationOf(uniqueId);
    writeStatement(line, into, this.redactor, relation, isQuery);
  }

  /** What a command came to that ended with errors: it was interrupted, unless it was to stop by itself at the first failure. */
  private failureOf(line: LineReader): 'error' | 'canceled' {
    return this.nodes.wasInterrupted && !FAIL_FAST.test(line.text('raw_command') ?? '') ? 'canceled' : 'error';
  }

  private writeTail(out: WireWriter, line: LineReader, events: SpanEvents, outcome: SpanOutcome): void {
    for (const event of events.events) out.latin1(event);
    if (outcome.event !== undefined) encodeEvent(out, outcome.event);
    out.tag(SPAN.droppedEventsCount);
    out.varint(events.droppedCount);
    this.writeLinks(out, line);
    out.tag(SPAN.droppedLinksCount);
    out.varint(0);
    encodeSpanEnd(out, outcome.status);
  }

  private writeLinks(out: WireWriter, line: LineReader): void {
    const count = line.cell(CELL.linkCount);
    for (let cell = CELL.links; cell < CELL.links + count * LINK_CELLS; cell += LINK_CELLS) {
      out.tag(SPAN.links);
      const start = out.open();
      out.tag(SPAN.traceId);
      out.hexBytes(line.bytes, line.start + line.cell(cell), TRACE_ID_DIGITS);
      out.tag(SPAN.spanId);
      out.hexBytes(line.bytes, line.start + line.cell(cell + 1), SPAN_ID_DIGITS);
      out.tag(LINK.droppedAttributesCount);
      out.varint(0);
      out.tag(LINK.flags);
      out.fixed32(SAMPLED_FLAGS);
      out.close(start);
    }
    for (const link of count < 0 ? line.otherLinks() : []) {
      const attributes: OtelAttributes = {};
      flattenAttributes(link.attributes, line.eventType, attributes, this.redactor, true);
      encodeLink(out, link.trace_id, link.span_id, attributes);
    }
    if (this.switches['skip-links']) this.writeSkipLink(out, line);
  }

  /** The link of a skipped node to the one that caused it. */
  private writeSkipLink(out: WireWriter, line: LineReader): void {
    if (line.hasAttributeCells && line.find(SKIP_DETAIL) === 0) return;
    const upstreamId = line.attributes.object('node_skip_upstream_detail')?.upstream_unique_id;
    if (typeof upstreamId !== 'string') return;
    const cause = this.nodes.processedSpanOf(upstreamId, line);
    if (cause === undefined) return;
    const traceId = line.bytes.toString(
      'latin1',
      line.start + line.traceIdStart,
      line.start + line.traceIdStart + TRACE_ID_DIGITS,
    );
    const attributes = { 'run_bridge.link.type': 'skip_cause', unique_id: upstreamId };
    encodeLink(out, traceId, spanIdOf(cause[0], cause[1]), attributes);
  }
}

/** The command that an invocation ran, for example `build`. */
function commandOf(line: LineReader): string | undefined {
  const command = line.attributes.object('eval_args')?.command;
  return typeof command === 'string' ? command : undefined;
}

const SKIP_DETAIL = roleIndexOf('node_skip_upstream_detail');
const TRACE_ID_DIGITS = 32;
const SPAN_ID_DIGITS = 16;

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

/**
 * Writes a record's statement: as `db.query.text` beside the other `db.*` attributes for a query, as `sql` otherwise. Where
 * no SQL may be shown, `run_bridge.sql.sha256` stands for a statement that the engine gave no `sql_hash`.
 * @param database where the relation lies that the query works for, for `db.namespace`.
 */
export function writeStatement(
  record: { text(name: string): string | undefined },
  into: OtelAttributes,
  redactor: Redactor,
  database: { readonly database: string | undefined; readonly schema: string | undefined } | undefined,
  isDatabaseSpan: boolean,
): void {
  const statement = record.text('sql');
  const adapterType = record.text('adapter_type');
  const sql = statement === undefined ? undefined : redactor.sql(statement, adapterType);
  if (sql?.text !== undefined) into[isDatabaseSpan ? ATTR_DB_QUERY_TEXT : 'sql'] = sql.text;
  else if (sql?.sha256 !== undefined && record.text('sql_hash') === undefined)
    into['run_bridge.sql.sha256'] = sql.sha256;
  if (!isDatabaseSpan) return;
  if (adapterType !== undefined) into[ATTR_DB_SYSTEM_NAME] = SYSTEMS.get(adapterType) ?? adapterType;
  if (sql?.operation !== undefined) into[ATTR_DB_OPERATION_NAME] = sql.operation;
  if (sql?.summary !== undefined) into[ATTR_DB_QUERY_SUMMARY] = sql.summary;
  if (sql?.collection !== undefined) into[ATTR_DB_COLLECTION_NAME] = sql.collection;
  const namespace = [database?.database, database?.schema].filter((part) => part !== undefined && part !== '');
  if (namespace.length > 0) into[ATTR_DB_NAMESPACE] = namespace.join('|');
}

/**
 * Writes what the span of a processed node carries beside the engine's attributes: what share of its time its queries took,
 * how many rows it came to, and of a test its name and result.
 * @param verdict `undefined` where nobody knows
 */
export function writeNodeAttributes(
  span: Interval & { text(name: string): string | undefined },
  known: { readonly nodes: NodeIndex; readonly switches: MappingSwitches; readonly verdict: NodeVerdict | undefined },
  into: OtelAttributes,
): void {
  const { nodes, switches, verdict } = known;
  const uniqueId = span.text('unique_id');
  if (uniqueId === undefined) return;
  if (switches['query-time']) writeQueryTime(nodes, uniqueId, span, into);
  const rows = switches['database-attributes'] ? span.text('rows_affected') : undefined;
  if (rows !== undefined) into[ATTR_DB_RESPONSE_RETURNED_ROWS] = int64Value(rows);
  const name = testNameOf(uniqueId);
  if (name === undefined) return;
  into[ATTR_TEST_CASE_NAME] = name;
  const result = verdict === undefined ? undefined : RESULTS[verdict];
  if (result !== undefined) into[ATTR_TEST_CASE_RESULT_STATUS] = result;
}

function writeQueryTime(nodes: NodeIndex, uniqueId: string, span: Interval, into: OtelAttributes): void {
  const queryTime = nodes.queryTimeOf(uniqueId, span);
  if (queryTime === undefined) return;
  into['run_bridge.node.query_count'] = queryTime.count;
  into['run_bridge.node.query_time_ms'] = Math.trunc(queryTime.nanos / 1_000) / 1_000;
}

/** `not_null_orders_id` of `test.shop.not_null_orders_id.1a2b3c4d5e`, `adds_up` of `unit_test.shop.orders.adds_up`. */
function testNameOf(uniqueId: string): string | undefined {
  const parts = uniqueId.split('.');
  if (parts[0] === 'unit_test') return parts.at(-1);
  return parts[0] === 'test' ? parts[2] : undefined;
}

/** A warning does not fail a test. What did not run to its end has no result. */
const RESULTS: Readonly<Partial<Record<NodeVerdict, string>>> = {
  success: TEST_CASE_RESULT_STATUS_VALUE_PASS,
  warned: TEST_CASE_RESULT_STATUS_VALUE_PASS,
  failed: TEST_CASE_RESULT_STATUS_VALUE_FAIL,
  error: TEST_CASE_RESULT_STATUS_VALUE_FAIL,
};
