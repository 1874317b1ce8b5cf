import {
  type Link,
  type Attributes as OtelAttributes,
  SpanKind,
  type SpanStatus,
  SpanStatusCode,
  TraceFlags,
} from '@opentelemetry/api';
import { Attributes } from '../../record/attributes.js';
import type { JsonObject, JsonValue } from '../../record/json.js';
import { nodeVerdictOf } from '../../run/node-outcome.js';
import { NO_EVENTS, type SpanEvents } from '../mapping/event-buffer.js';
import { EVENT_TYPE } from '../mapping/event-types.js';
import { flattenAttributes } from '../mapping/flatten-attributes.js';
import { int64Value } from '../mapping/int64-fields.js';
import type { MappingSwitches } from '../mapping/mapping-switches.js';
import { writeNodeAttributes } from '../mapping/node-attributes.js';
import type { NodeIndex } from '../mapping/node-index.js';
import { writeStatement } from '../mapping/query-attributes.js';
import { isStructuralName, stableSpanName } from '../mapping/span-name.js';
import type { SpanOutcome, SpanOutcomes } from '../mapping/span-outcome.js';
import type { Redactor } from '../redaction/redactor.js';
import { encodeAttribute, encodeAttributes } from '../wire/encode-attributes.js';
import { encodeSpanTail, RECORD, SPAN } from '../wire/encode-span.js';
import { WireWriter } from '../wire/wire-writer.js';
import { type AttributePlan, roleIndexOf } from './attribute-plan.js';
import { SPECIAL_NAME } from './event-plan.js';
import type { EventPlans } from './event-plans.js';
import {
  ATTRIBUTE_CELLS,
  CELL,
  FALSE,
  INTEGER,
  LINK_CELLS,
  NULL,
  OTHER,
  OTHER_TEXT,
  PLAIN_TEXT,
  TRUE,
} from './line-cells.js';
import type { LineReader } from './line-reader.js';
import { VERDICT_ATTRIBUTES } from './verdict-attributes.js';
import { writeIntegerAttribute, writeTextAttribute } from './write-attribute.js';

/** What the transcoder works with; all of one run and one destination. */
export interface TranscoderDeps {
  readonly switches: MappingSwitches;
  readonly redactor: Redactor;
  readonly nodes: NodeIndex;
  readonly outcomes: SpanOutcomes;
  /** Those that the lines were scanned with. */
  readonly plans: EventPlans;
}

/**
 * Makes a span's OTLP bytes of its line's bytes: what `SpanMapper` and `encodeSpan` make of its record, without a record.
 * Attributes that need no look are copied, the others go through the same functions as there. It knows spans that ended
 * well and failed nodes; one whose outcome has to be found out, or whose attributes would meet under one name, it leaves to `SpanMapper`.
 */
export class SpanTranscoder {
  private readonly isRedacted: boolean;

  constructor(private readonly deps: TranscoderDeps) {
    this.isRedacted = deps.redactor.level !== 'off';
  }

  /**
   * Writes the span, its tag and length included.
   * @returns false for a span that it leaves to `SpanMapper`; nothing is written then.
   * @throws SyntaxError when the line turns out to be damaged; what was written is to be passed over.
   */
  write(out: WireWriter, line: LineReader, uniqueId: string | undefined, events: SpanEvents): boolean {
    const verdict = this.verdictOf(line, uniqueId);
    if (verdict === undefined) return false;
    const begin = out.length;
    out.tag(RECORD);
    const start = out.open();
    const originalName = this.writeHead(out, line);
    out.copy(line.event.typeAttribute, 0, line.event.typeAttribute.length);
    if (!this.writeAttributes(out, line)) {
      out.length = begin;
      return false;
    }
    this.writeStatement(out, line, uniqueId);
    if (verdict !== '') out.raw(VERDICT_ATTRIBUTES[verdict]);
    const failure = verdict === 'error' && this.deps.switches['node-errors'] ? this.failureOf(out, line) : undefined;
    if (line.eventType === EVENT_TYPE.nodeProcessed) this.writeNodeAttributes(out, line, verdict);
    if (originalName !== undefined) {
      encodeAttribute(out, SPAN.attributes, 'run_bridge.span.original_name', originalName);
    }
    out.tag(SPAN.droppedAttributesCount);
    out.varint(0);
    if (failure === undefined && events === NO_EVENTS && line.cell(CELL.linkCount) === 0) {
      this.writeShortTail(out, line);
      out.close(start);
      return true;
    }
    const spanEvents = events.events.map((waiting) => waiting.event);
    if (failure?.event !== undefined) spanEvents.push(failure.event);
    encodeSpanTail(out, {
      events: spanEvents,
      droppedEventsCount: events.droppedCount,
      links: linksOf(line),
      droppedLinksCount: 0,
      status: failure?.status ?? this.statusOf(line),
    });
    out.close(start);
    return true;
  }

  /** The tail of a span without events and links, which is mostly the same few bytes. */
  private writeShortTail(out: WireWriter, line: LineReader): void {
    const status = this.statusOf(line);
    const tail = status.message === undefined ? SHORT_TAILS[status.code] : undefined;
    if (tail !== undefined) out.copy(tail, 0, tail.length);
    else encodeSpanTail(out, { ...EMPTY_TAIL, status });
  }

  /** What became of a node; empty for other spans. `undefined` where more than the line has to be asked. */
  private verdictOf(line: LineReader, uniqueId: string | undefined): KnownVerdict | '' | undefined {
    const { switches, nodes } = this.deps;
    const { event } = line;
    if (switches['skip-links'] && line.find(SKIP_DETAIL) !== 0) return undefined;
    switch (event.eventType) {
      case EVENT_TYPE.nodeProcessed:
      case EVENT_TYPE.nodeEvaluated:
      case EVENT_TYPE.microbatchEvaluated:
        if (uniqueId !== undefined && switches['true-cancellations'] && nodes.hasInterruption(uniqueId))
          return undefined;
        return nodeVerdict(line);
      case EVENT_TYPE.queryExecuted:
        return isUsualOutcome(line.text('query_outcome'));
      case EVENT_TYPE.hookProcessed:
        return isUsualOutcome(line.text('hook_outcome'));
      default:
        return '';
    }
  }

  /** Writes what stands before the attributes. @returns the name as it was, where another is exported. */
  private writeHead(out: WireWriter, line: LineReader): string | undefined {
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
    out.time(line.cell(CELL.startSeconds) >>> 0, line.cell(CELL.startNanos));
    out.tag(SPAN.endTime);
    out.time(line.cell(CELL.endSeconds) >>> 0, line.cell(CELL.endNanos));
    return originalName;
  }

  private writeName(out: WireWriter, line: LineReader): string | undefined {
    const { event } = line;
    const start = line.start + line.cell(CELL.nameStart);
    const end = line.start + line.cell(CELL.nameEnd);
    if (event.isNameKept) {
      out.varint(end - start);
      out.copy(line.bytes, start, end);
      return undefined;
    }
    const { redactor, switches } = this.deps;
    const original = isStructuralName(event.eventType) ? line.name : redactor.text(line.name);
    const name = switches['stable-names'] ? stableSpanName(original, event.eventType, undefined) : original;
    out.text(name);
    return name === original ? undefined : original;
  }

  /** @returns false when two attributes would have one name. */
  private writeAttributes(out: WireWriter, line: LineReader): boolean {
    let nested: Set<string> | undefined;
    let cell = line.attributesCell;
    for (let left = line.attributeCount; left > 0; left--, cell += ATTRIBUTE_CELLS) {
      const plan = line.planAt(cell);
      if (plan.role === SQL) continue;
      const start = line.valueStart(cell);
      const end = line.valueEnd(cell);
      switch (line.kindAt(cell)) {
        case PLAIN_TEXT:
          if (plan.isInt64) this.writeInt64(out, plan, line.bytes, start, end);
          else if (!this.isRedacted || plan.policy === 'keep') writeTextAttribute(out, plan, line.bytes, start, end);
          else this.writeRedacted(out, plan, this.deps.plans.texts.textOf(line.bytes, line.view, start, end));
          break;
        case INTEGER:
          if (!this.isRedacted || plan.policy !== 'deny') writeIntegerAttribute(out, plan, line.bytes, start, end);
          break;
        case TRUE:
          encodeAttribute(out, SPAN.attributes, plan.name, true);
          break;
        case FALSE:
          encodeAttribute(out, SPAN.attributes, plan.name, false);
          break;
        case OTHER_TEXT:
          this.writeOtherText(out, plan, parse(line.bytes, start, end));
          break;
        case OTHER:
          nested ??= new Set();
          if (!this.writeOther(out, line, plan, parse(line.bytes, start, end), nested)) return false;
          break;
        case NULL:
          break;
      }
    }
    return true;
  }

  private writeRedacted(out: WireWriter, plan: AttributePlan, text: string): void {
    encodeAttribute(out, SPAN.attributes, plan.name, this.deps.redactor.byPolicy(plan.policy, text, true));
  }

  private writeInt64(out: WireWriter, plan: AttributePlan, bytes: Buffer, start: number, end: number): void {
    let at = start;
    while (at < end && ((bytes[at] as number) - ZERO) >>> 0 < 10) at++;
    if (at === end && end > start && end - start <= MAX_DIGITS) writeIntegerAttribute(out, plan, bytes, start, end);
    else encodeAttribute(out, SPAN.attributes, plan.name, int64Value(bytes.toString('latin1', start, end)));
  }

  private writeOtherText(out: WireWriter, plan: AttributePlan, text: JsonValue): void {
    if (typeof text !== 'string') throw new SyntaxError(`${plan.name} is no text`);
    if (plan.isInt64) encodeAttribute(out, SPAN.attributes, plan.name, int64Value(text));
    else this.writeRedacted(out, plan, text);
  }

  /** @param nested names that other nested values were given, so far. */
  private writeOther(
    out: WireWriter,
    line: LineReader,
    plan: AttributePlan,
    value: JsonValue,
    nested: Set<string>,
  ): boolean {
    const attributes: OtelAttributes = {};
    const { redactor, switches } = this.deps;
    flattenAttributes({ [plan.name]: value }, line.eventType, attributes, redactor, switches['lifted-attributes']);
    for (const name in attributes) {
      if (nested.has(name) || SPECIAL_NAME.test(name) || name === 'sql') return false;
      if (name !== plan.name && isIn(line, line.event.knownAttribute(name))) return false;
      nested.add(name);
    }
    encodeAttributes(out, SPAN.attributes, attributes);
    return true;
  }

  private writeStatement(out: WireWriter, line: LineReader, uniqueId: string | undefined): void {
    const { switches, nodes, redactor } = this.deps;
    const isQuery = line.eventType === EVENT_TYPE.queryExecuted && switches['database-attributes'];
    if (!isQuery && line.find(SQL) === 0) return;
    const relation = isQuery && uniqueId !== undefined ? nodes.relationOf(uniqueId) : undefined;
    const attributes: OtelAttributes = {};
    writeStatement(line, attributes, redactor, relation, isQuery);
    encodeAttributes(out, SPAN.attributes, attributes);
  }

  private writeNodeAttributes(out: WireWriter, line: LineReader, verdict: KnownVerdict | ''): void {
    const { nodes, switches } = this.deps;
    const attributes: OtelAttributes = {};
    writeNodeAttributes(line, { nodes, switches, verdict: verdict === '' ? undefined : verdict }, attributes);
    encodeAttributes(out, SPAN.attributes, attributes);
  }

  /** How a failed node is shown; writes what that adds to the attributes. */
  private failureOf(out: WireWriter, line: LineReader): SpanOutcome {
    const attributes: OtelAttributes = {};
    const outcome = this.deps.outcomes.ofFailedNode(line, attributes);
    encodeAttributes(out, SPAN.attributes, attributes);
    return outcome;
  }

  /** The status as the engine sent it. */
  private statusOf(line: LineReader): SpanStatus {
    const code = line.cell(CELL.statusCode);
    if (code !== SpanStatusCode.ERROR) return { code };
    const start = line.start + line.cell(CELL.messageStart);
    const end = line.start + line.cell(CELL.messageEnd);
    return start === end
      ? { code }
      : { code, message: this.deps.redactor.text(line.bytes.toString('latin1', start, end)) };
  }
}

type KnownVerdict = keyof typeof VERDICT_ATTRIBUTES;

const EMPTY_TAIL = { events: [], droppedEventsCount: 0, links: [], droppedLinksCount: 0 };
const SHORT_TAILS = [SpanStatusCode.UNSET, SpanStatusCode.OK].map((code) => {
  const out = new WireWriter(32);
  encodeSpanTail(out, { ...EMPTY_TAIL, status: { code } });
  return out.bytes.subarray(0, out.length);
});
const SQL = roleIndexOf('sql');
const NODE_OUTCOME = roleIndexOf('node_outcome');
const SKIP_DETAIL = roleIndexOf('node_skip_upstream_detail');
/** Attributes by which a check (test, unit test, freshness) tells its result. */
const CHECKS = ['test_outcome', 'node_test_detail', 'node_freshness_outcome', 'node_outcome_detail'];
const CHECK_ROLES = CHECKS.map(roleIndexOf);
const CHECK_BITS = CHECK_ROLES.reduce((bits, role) => bits | (1 << role), 0);
const TRACE_ID_DIGITS = 32;
const ZERO = 0x30;
/** Longest integer that is surely exact. */
const MAX_DIGITS = 15;

function nodeVerdict(line: LineReader): KnownVerdict | undefined {
  const cell = line.find(NODE_OUTCOME);
  const outcome = cell === 0 ? undefined : line.textAt(cell);
  if (outcome === 'NODE_OUTCOME_SKIPPED') return 'skipped';
  if (outcome === 'NODE_OUTCOME_ERROR') return 'error';
  if (outcome !== 'NODE_OUTCOME_SUCCESS') return undefined;
  if ((line.cell(CELL.roles) & CHECK_BITS) === 0) return 'success';
  const checks: Record<string, JsonValue> = {};
  for (let index = 0; index < CHECKS.length; index++) {
    const found = line.find(CHECK_ROLES[index] as number);
    if (found !== 0) checks[CHECKS[index] as string] = valueAt(line, found);
  }
  const attributes: JsonObject = { node_outcome: outcome, ...checks };
  const verdict = nodeVerdictOf({ attributes: Attributes.of(attributes), status: null }, 'none');
  return verdict === 'success' ? 'success' : undefined;
}

/** Queries and hooks: what they ended with is told by their attributes unless it is an error or a cancellation. */
function isUsualOutcome(outcome: string | undefined): '' | undefined {
  return outcome !== undefined && UNUSUAL_OUTCOME.test(outcome) ? undefined : '';
}

const UNUSUAL_OUTCOME = /_OUTCOME_(?:ERROR|CANCELED)$/;

function linksOf(line: LineReader): Link[] {
  const links: Link[] = [];
  const count = line.cell(CELL.linkCount);
  for (let cell = CELL.links; cell < CELL.links + count * LINK_CELLS; cell += LINK_CELLS) {
    const trace = line.start + line.cell(cell);
    const span = line.start + line.cell(cell + 1);
    const traceId = line.bytes.toString('latin1', trace, trace + 32);
    const spanId = line.bytes.toString('latin1', span, span + 16);
    links.push({ context: { traceId, spanId, traceFlags: TraceFlags.SAMPLED }, attributes: {} });
  }
  return links;
}

function isIn(line: LineReader, plan: AttributePlan | undefined): boolean {
  if (plan === undefined) return false;
  let cell = line.attributesCell;
  for (let left = line.attributeCount; left > 0; left--, cell += ATTRIBUTE_CELLS) {
    if (line.planAt(cell) === plan) return true;
  }
  return false;
}

function valueAt(line: LineReader, cell: number): JsonValue {
  const start = line.valueStart(cell);
  const end = line.valueEnd(cell);
  return line.kindAt(cell) === PLAIN_TEXT ? line.bytes.toString('latin1', start, end) : parse(line.bytes, start, end);
}

function parse(bytes: Buffer, start: number, end: number): JsonValue {
  return JSON.parse(bytes.toString('utf8', start, end)) as JsonValue;
}
