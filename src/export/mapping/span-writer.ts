import { type Attributes as OtelAttributes, SpanKind, type SpanStatus, SpanStatusCode } from '@opentelemetry/api';
import type { TimedEvent } from '@opentelemetry/sdk-trace-base';
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
  CICD_PIPELINE_RESULT_VALUE_CANCELLATION,
  CICD_PIPELINE_RESULT_VALUE_ERROR,
  CICD_PIPELINE_RESULT_VALUE_FAILURE,
  CICD_PIPELINE_RESULT_VALUE_SUCCESS,
  TEST_CASE_RESULT_STATUS_VALUE_FAIL,
  TEST_CASE_RESULT_STATUS_VALUE_PASS,
} from '@opentelemetry/semantic-conventions/incubating';
import type { MappingSwitches } from '../../config/mapping-options.js';
import { counted, cut } from '../../core/text.js';
import { Attributes, type JsonValue } from '../../record/attributes.js';
import { withoutStatement } from '../../record/error-statement.js';
import type { Redactor } from '../../redaction/redactor.js';
import {
  freshnessOutcomeOf,
  type InterruptionSign,
  isCanceledQuery,
  nodeVerdictOf,
  testOutcomeOf,
  withoutFrames,
} from '../../run/node-outcome.js';
import { FAIL_FAST, type InvocationSummary, type NodeVerdict, type Verdict } from '../../run/verdict.js';
import { flattenAttributes, int64Value, roleIndexOf } from '../lines/event-mappings.js';
import { LineAttributes } from '../lines/line-intake.js';
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
import { type Interval, type NodeError, type NodeIndex, spanIdOf } from './span-tree.js';

/** How a span whose own end never came is closed, not before its start. */
export interface Closing {
  readonly endSeconds: number;
  readonly endNanos: number;
  /** The saved state of an invocation. */
  readonly reported: ReportedInvocation | undefined;
}

/** How a span ended, as OTel says it. */
export interface SpanOutcome {
  readonly status: SpanStatus;
  /** The `exception` or warning event that goes with it. */
  readonly event: TimedEvent | undefined;
}

/** A failure before it is written: what backends group by, and what people read. */
interface Failure {
  readonly type: string;
  /** Redacted; may have several lines. */
  readonly message: string;
  /** One line for the span's status; made of the message where it is left out. */
  readonly headline?: string;
}

/** Reads how a span ended, across what the engine reports and what its logs say, and adds what it learns to the attributes. */
export class SpanOutcomes {
  constructor(
    private readonly nodes: NodeIndex,
    private readonly redactor: Redactor,
    private readonly switches: MappingSwitches,
  ) {}

  /** What became of a node; `undefined` for other spans. */
  verdictOf(span: LineReader): NodeVerdict | undefined {
    if (!NODE_SPANS.has(span.eventType)) return undefined;
    const sign = this.interruptionSignOf(span);
    if (sign !== 'none' || !span.hasAttributeCells) return nodeVerdictOf(span, sign);
    const outcome = span.text('node_outcome');
    if (outcome === 'NODE_OUTCOME_ERROR') return 'error';
    if (outcome === 'NODE_OUTCOME_SKIPPED') return 'skipped';
    if (outcome !== 'NODE_OUTCOME_SUCCESS') return nodeVerdictOf(span, sign);
    // Of what ended well, only the attributes with the result of a check are parsed, where it has any.
    let checks: Record<string, JsonValue> | undefined;
    for (let index = 0; index < CHECKS.length; index++) {
      const cell = span.find(CHECK_ROLES[index] as number);
      if (cell === 0) continue;
      checks ??= { node_outcome: outcome };
      checks[CHECKS[index] as string] = span.valueAt(cell);
    }
    return checks === undefined ? 'success' : nodeVerdictOf({ attributes: Attributes.of(checks), status: null }, sign);
  }

  /** @param verdict as `verdictOf` gives it */
  of(span: LineReader, verdict: NodeVerdict | undefined, into: OtelAttributes): SpanOutcome {
    if (verdict !== undefined) {
      into['run_bridge.node.verdict'] = verdict;
      return this.ofVerdict(verdict, span, into);
    }
    if (span.eventType === EVENT_TYPE.queryExecuted) return this.ofQuery(span, into);
    if (span.eventType === EVENT_TYPE.hookProcessed) return this.ofHook(span, into);
    return this.reported(span);
  }

  /** Of a span that never ended: unset for most. */
  ofUnfinished(span: LineReader, { endSeconds, endNanos, reported }: Closing, into: OtelAttributes): SpanOutcome {
    into['run_bridge.unfinished'] = true;
    Object.assign(into, reported?.attributes);
    if (reported !== undefined) return reported.outcome;
    const isPhase = span.eventType === EVENT_TYPE.nodeEvaluated;
    const isNode = isPhase || span.eventType === EVENT_TYPE.nodeProcessed;
    if (isNode && span.uniqueId !== undefined && this.switches['true-cancellations']) {
      const { spanHigh, spanLow, startSeconds, startNanos } = span;
      const sign = isPhase
        ? this.nodes.interruptionOfPhase(span.uniqueId, span)
        : this.nodes.interruptionOfNode(span.uniqueId, {
            spanHigh,
            spanLow,
            startSeconds,
            startNanos,
            endSeconds,
            endNanos,
          });
      into['run_bridge.node.verdict'] = sign === 'none' ? 'unfinished' : 'canceled';
      if (sign !== 'none') {
        into.node_outcome = CANCELED_NODE;
        return canceled(into);
      }
    }
    return { status: { code: SpanStatusCode.UNSET }, event: undefined };
  }

  private ofVerdict(verdict: NodeVerdict, span: LineReader, into: OtelAttributes): SpanOutcome {
    if (verdict === 'canceled') return this.canceledNode(span, into);
    if (verdict === 'error' && this.switches['node-errors']) return this.failed(span, into, this.nodeFailure(span));
    if (verdict === 'failed') return this.ofCheck(span, into, 'failed');
    if (verdict === 'warned') return this.ofCheck(span, into, 'warned');
    return this.reported(span);
  }

  private interruptionSignOf(span: LineReader): InterruptionSign {
    const { uniqueId } = span;
    if (uniqueId === undefined || !this.switches['true-cancellations'] || !this.nodes.hasInterruption(uniqueId)) {
      return 'none';
    }
    const isNode = span.eventType === EVENT_TYPE.nodeProcessed;
    return isNode ? this.nodes.interruptionOfNode(uniqueId, span) : this.nodes.interruptionOfPhase(uniqueId, span);
  }

  private canceledNode(span: LineReader, into: OtelAttributes): SpanOutcome {
    const reported = span.text('node_outcome');
    if (reported !== undefined && reported !== CANCELED_NODE) into['run_bridge.node_outcome.original'] = reported;
    into.node_outcome = CANCELED_NODE;
    return canceled(into);
  }

  private ofCheck(span: LineReader, into: OtelAttributes, verdict: 'failed' | 'warned'): SpanOutcome {
    const isSource = testOutcomeOf(span.attributes) === undefined && freshnessOutcomeOf(span.attributes) !== undefined;
    if (isSource) {
      if (!this.switches['stale-source-errors']) return this.reported(span);
      const ageSeconds = this.ageOf(span);
      const age = typeof ageSeconds === 'number' ? `, ${ageSeconds} s old` : '';
      return this.failed(span, into, { type: 'source_stale', message: `stale source (${verdict})${age}` });
    }
    const failure = this.testFailure(span, verdict);
    if (verdict === 'failed') {
      if (this.switches['test-errors']) return this.failed(span, into, failure);
    } else if (this.switches['warning-events']) {
      return { status: this.reported(span).status, event: warningEvent(span, failure.message) };
    }
    return this.reported(span);
  }

  /** The age of a source in seconds, where it is exported. */
  private ageOf({ attributes }: LineReader): number | string | undefined {
    if (!this.switches['lifted-attributes']) return undefined;
    const age = attributes.object('node_freshness_outcome')?.age_seconds ?? attributes.get('age_seconds');
    if (typeof age === 'number') return age;
    return typeof age === 'string' ? int64Value(age) : undefined;
  }

  private testFailure(span: LineReader, verdict: 'failed' | 'warned'): Failure {
    const detail = span.attributes.object('node_test_detail') ?? {};
    const rows = detail.failing_rows;
    const count = typeof rows === 'number' ? `: ${counted(rows, 'failing row')}` : '';
    const headline = `${detail.diff_table === undefined ? 'test' : 'unit test'} ${verdict}${count}`;
    const error = this.errorOf(span);
    const diffTable = detail.diff_table;
    const details = [
      ...(typeof diffTable === 'string' ? [this.redactor.diffTable(diffTable)] : []),
      ...(error === undefined ? [] : [this.redactor.text(withoutFrames(error.message))]),
    ];
    return { type: `test_${verdict}`, message: [headline, ...details].join('\n'), headline };
  }

  private nodeFailure(span: LineReader): Failure {
    const error = this.errorOf(span);
    const type = error?.codeName ?? nodeErrorTypeOf(span.text('node_error_type'));
    return { type, message: this.redactor.text(withoutFrames(error?.message ?? span.status.message ?? 'error')) };
  }

  private errorOf(span: LineReader): NodeError | undefined {
    const uniqueId = span.text('unique_id');
    return uniqueId === undefined ? undefined : this.nodes.errorOf(uniqueId, span);
  }

  private ofQuery(span: LineReader, into: OtelAttributes): SpanOutcome {
    const outcome = span.text('query_outcome');
    if (outcome !== undefined && CANCELED.test(outcome) && isCanceledQuery(span)) return canceled(into);
    const hasFailed = outcome === 'QUERY_OUTCOME_ERROR' || outcome === 'QUERY_OUTCOME_CANCELED';
    if (!hasFailed || !this.switches['node-errors']) {
      return this.reported(span);
    }
    const message = withoutFrames(span.text('query_error_adapter_message') ?? span.status.message ?? '');
    return this.failed(span, into, { type: this.errorClass(message), message: this.redactor.text(message) });
  }

  /**
   * The database's class of error, for example `Conversion Error`, as far as it is made of safe words; else the driver's,
   * which stands in front: `Integrity`.
   */
  private errorClass(message: string): string {
    const error = withoutStatement(message);
    const named = ERROR_CLASS.exec(error)?.[1] ?? DRIVER_CLASS.exec(error)?.[1];
    const shown = named === undefined ? undefined : this.redactor.text(named);
    return shown === undefined || shown.includes('?') ? 'query_error' : shown;
  }

  private ofHook(span: LineReader, into: OtelAttributes): SpanOutcome {
    const outcome = span.text('hook_outcome');
    if (outcome === 'HOOK_OUTCOME_CANCELED') {
      return canceled(into);
    }
    if (outcome === 'HOOK_OUTCOME_ERROR' && this.switches['node-errors']) {
      return this.failed(span, into, {
        ...this.nodeFailure(span),
        type: this.errorOf(span)?.codeName ?? 'hook_error',
      });
    }
    return this.reported(span);
  }

  private failed(span: LineReader, into: OtelAttributes, failure: Failure): SpanOutcome {
    into['error.type'] = failure.type;
    return {
      status: { code: SpanStatusCode.ERROR, message: failure.headline ?? headlineOf(failure.message) },
      event: {
        name: 'exception',
        time: span.endTime,
        attributes: { 'exception.type': failure.type, 'exception.message': failure.message },
        droppedAttributesCount: 0,
      },
    };
  }

  /** As the engine sent it. */
  private reported(span: LineReader): SpanOutcome {
    const { code, message } = span.status;
    if (code === SpanStatusCode.OK) return OK;
    if (code !== SpanStatusCode.ERROR) return UNSET;
    const shown = withoutFrames(message ?? '');
    const status = shown === '' ? { code } : { code, message: this.redactor.text(shown) };
    return { status, event: undefined };
  }
}

const OK: SpanOutcome = { status: { code: SpanStatusCode.OK }, event: undefined };
const UNSET: SpanOutcome = { status: { code: SpanStatusCode.UNSET }, event: undefined };

function canceled(into: OtelAttributes): SpanOutcome {
  into['error.type'] = 'canceled';
  return { status: { code: SpanStatusCode.ERROR, message: 'canceled' }, event: undefined };
}

const NODE_SPANS: ReadonlySet<string> = new Set([
  EVENT_TYPE.nodeProcessed,
  EVENT_TYPE.nodeEvaluated,
  EVENT_TYPE.microbatchEvaluated,
]);
/** Attributes with the result of a check (test, unit test, freshness). */
const CHECKS = ['test_outcome', 'node_test_detail', 'node_freshness_outcome', 'node_outcome_detail'];
const CHECK_ROLES = CHECKS.map(roleIndexOf);
const CANCELED = /canceled$/i;
const CANCELED_NODE = 'NODE_OUTCOME_CANCELED';
/** The status codes of ADBC, as the engine's drivers write them. */
const DRIVER_CLASS =
  /^(Unknown|NotImplemented|NotFound|AlreadyExists|InvalidArguments|InvalidState|InvalidData|Integrity|Internal|IO|Cancelled|Timeout|Unauthenticated|Unauthorized): /;
const ERROR_CLASS = /(?:^|: )([A-Z][A-Za-z]*(?: [A-Za-z]+){0,3} (?:Error|Exception))(?::|$)/m;
function warningEvent(span: LineReader, message: string): TimedEvent {
  return {
    name: 'test_warned',
    time: span.endTime,
    attributes: { message },
    droppedAttributesCount: 0,
  };
}

/** What backends group a failed node by, of the engine's type of error: `node_error_user` for `NODE_ERROR_TYPE_USER`. */
function nodeErrorTypeOf(errorType: string | undefined): string {
  return errorType === undefined
    ? 'node_error'
    : `node_error_${errorType.replace(/^NODE_ERROR_TYPE_/, '').toLowerCase()}`;
}

/** Longest status message; the whole text is in the `exception` event. */
const MAX_HEADLINE_LENGTH = 512;

/**
 * What a span's status says of a message: its first two lines in one, which is where the engine and databases say what is
 * wrong. At most 512 UTF-16 units and `…`.
 */
function headlineOf(message: string): string {
  if (message.length <= MAX_HEADLINE_LENGTH && !message.includes('\n')) {
    // Most messages, without lists made of them.
    const line = message.trim();
    return line.startsWith('LINE ') ? '' : line;
  }
  const lines = message.split('\n').map((line) => line.trim());
  const headline = lines
    .filter((line) => line !== '' && !line.startsWith('LINE '))
    .slice(0, 2)
    .join(' ');
  return cut(headline, MAX_HEADLINE_LENGTH + 1);
}

/** What the run model says about an invocation whose span never ended. */
export interface ReportedInvocation {
  readonly outcome: SpanOutcome;
  readonly attributes: OtelAttributes;
}

/** The verdict on an invocation as a span's status and attributes. */
export function reportedInvocation(invocation: InvocationSummary, redactor: Redactor): ReportedInvocation {
  const { verdict, totalErrors, totalWarnings, command, rawCommand } = invocation;
  const reason = invocation.statusMessage === null ? undefined : redactor.text(invocation.statusMessage);
  const attributes: OtelAttributes = {};
  if (verdict !== null) {
    attributes['run_bridge.verdict'] = verdict;
    attributes[ATTR_CICD_PIPELINE_RESULT] = PIPELINE_RESULTS[verdict];
  }
  if (command !== null) attributes['eval_args.command'] = command;
  if (rawCommand !== null) attributes.raw_command = redactor.command(rawCommand);
  if (totalErrors !== null) attributes['metrics.total_errors'] = totalErrors;
  if (totalWarnings !== null) attributes['metrics.total_warnings'] = totalWarnings;
  const isFailure = verdict === 'error' || verdict === 'canceled' || verdict === 'lost';
  if (isFailure) attributes['error.type'] = verdict;
  const code = verdict === 'success' ? SpanStatusCode.OK : SpanStatusCode.UNSET;
  const status = isFailure ? { code: SpanStatusCode.ERROR, message: describe(verdict, reason) } : { code };
  return { outcome: { status, event: undefined }, attributes };
}

/** How an invocation ended, as OpenTelemetry says it of a pipeline's run. */
export const PIPELINE_RESULTS: Readonly<Record<Verdict, string>> = {
  success: CICD_PIPELINE_RESULT_VALUE_SUCCESS,
  error: CICD_PIPELINE_RESULT_VALUE_FAILURE,
  canceled: CICD_PIPELINE_RESULT_VALUE_CANCELLATION,
  lost: CICD_PIPELINE_RESULT_VALUE_ERROR,
};

function describe(verdict: string, reason: string | undefined): string {
  return reason === undefined || reason === '' || reason === verdict ? verdict : `${verdict}: ${reason}`;
}

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

  /** The result of a command that ended with errors: it was interrupted, unless it was to stop by itself at the first failure. */
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
 * @param verdict `undefined` if unknown
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
