import { SpanStatusCode } from '@opentelemetry/api';
import type { MappingSwitches } from '../../config/mapping-options.js';
import {
  ARENA,
  buffer,
  constant,
  copyBytes,
  copyText,
  Outlet,
  putText,
  putVarint,
  type Range,
  REGION,
  varintSize,
  view,
} from '../../record/arena.js';
import { Attribute, attributeAt, Cell, cell, Value } from '../../record/cells.js';
import { spanIdOf } from '../../record/span-id-table.js';
import { type KnownText, texts } from '../../record/texts.js';
import type { Redactor } from '../../redaction/redactor.js';
import {
  AttributeTag,
  copyTagged,
  EVENT,
  encodeLink,
  keyOf,
  putNumberAttribute,
  putTextAttribute,
  RECORD,
  SAMPLED_FLAGS,
  SPAN,
  type SpanEvents,
  WireWriter,
} from '../wire/wire-writer.js';
import type { CommandAttributes } from './command-attributes.js';
import { int64Value } from './exported-names.js';
import { attributeJson, attributeText, type CellRecord, isNested } from './mapped-record.js';
import type { NodeIndex } from './node-index.js';
import { type AttributePlan, type RecordPlan, Use } from './record-plans.js';
import type { SharedMapping } from './shared-mapping.js';
import type { UpstreamLinks } from './upstream-links.js';

/** Where a span or an event is written, behind room for its tag and length; and where a log record is. */
const ITEM = REGION.scratch + 16;
const LOG_ITEM = REGION.scratch + 4 * 1024 * 1024;
const ITEM_OUTLET = new Outlet(ITEM);
const LOG_OUTLET = new Outlet(LOG_ITEM);
const VALUE = REGION.scratch + 8 * 1024 * 1024;
/** What stands there: most queries have the namespace of the one before. */
const WRITTEN = { namespace: '', end: VALUE };
/** A longer item is plain code's, and one with longer attributes: what is made of it surely has room. */
const MAX_ITEM_BYTES = 256 * 1024;
const MAX_ATTRIBUTES_BYTES = 1024 * 1024;

const TYPE = keyOf('event_type');
const BODY = keyOf('body');
const SEVERITY_TEXT = keyOf('severity_text');
const SEVERITY_NUMBER = keyOf('severity_number');
const VERDICT = keyOf('run_bridge.node.verdict');
const SUCCESS = constant('success');
const SKIPPED = constant('skipped');
const QUERY_COUNT = keyOf('run_bridge.node.query_count');
const QUERY_TIME = keyOf('run_bridge.node.query_time_ms');
const RETURNED_ROWS = keyOf('db.response.returned_rows');
const NAMESPACE = keyOf('db.namespace');
const QUERY_TEXT = keyOf('db.query.text');
const SQL = keyOf('sql');
const SQL_HASH = keyOf('run_bridge.sql.sha256');
const DENIED = constant('?');

/**
 * Writes OTLP's bytes of records that have cells, as `SpanWriter` and `LogWriter` do of any: for ends that ended well, and log
 * records that report no error. Each method says whether it could; where it could not, nothing was written.
 */
export class CellWriter {
  /** Whether plain code has to write the record. */
  private isOther = false;
  /** Whether the span is that of a test. */
  private isTest = false;
  /** Names of the attributes that were made of each of the record's objects: two may make the same. */
  private readonly nestedNames: (readonly string[])[] = [];
  private nestedCount = 0;
  private readonly isRedacted: boolean;
  /** The link of a skipped node. */
  private readonly skipLink = new WireWriter(256);
  /** Where the event stands that was made last, its tag and length included. */
  eventStart = 0;
  eventEnd = 0;
  /** Where the attributes stand that it has in common with its log record; and its body. */
  private sharedStart = 0;
  private sharedEnd = 0;
  private body: Range = DENIED;

  constructor(
    private readonly switches: MappingSwitches,
    private readonly redactor: Redactor,
    private readonly nodes: NodeIndex,
    private readonly commands: CommandAttributes,
    private readonly upstream: UpstreamLinks,
    private readonly shared: SharedMapping,
  ) {
    this.isRedacted = redactor.level !== 'off';
  }

  /** Writes a span, its tag and length included. */
  span(out: WireWriter, record: CellRecord, events: SpanEvents): boolean {
    const { plan } = record;
    const hasMessage = cell(Cell.messageEnd) > cell(Cell.messageStart);
    if (plan.isOther || plan.isSpecial || hasMessage || cell(Cell.code) === SpanStatusCode.ERROR) return false;
    if (cell(Cell.itemEnd) - cell(Cell.itemStart) > MAX_ITEM_BYTES) return false;
    const uniqueId = attributeText(plan, plan.uniqueId);
    const verdict = plan.isNode ? this.verdictOf(plan, uniqueId) : undefined;
    if (plan.isNode && verdict === undefined) return false;
    if (plan.isQuery && attributeText(plan, plan.queryOutcome)?.text !== 'QUERY_OUTCOME_SUCCESS') return false;
    this.isOther = false;
    this.isTest = false;
    let to = putSpanHead(ITEM);
    const name = this.nameOf(plan);
    if (name === undefined) return false;
    view.setUint8(to, SPAN.name);
    to = copyText(putVarint(to + 1, name.shown.length), name.shown.at, name.shown.length);
    to = putKindAndTimes(to, plan);
    to = this.attributes(plan, AttributeTag.span, to);
    to = this.statement(plan, uniqueId, plan.isQuery && this.switches.attributes, AttributeTag.span, to);
    if (verdict !== undefined) to = putTextAttribute(to, AttributeTag.span, VERDICT, verdict.at, verdict.length);
    if (plan.isProcessed && uniqueId !== undefined && verdict !== undefined)
      to = this.nodeAttributes(record, uniqueId, verdict, to);
    to = copyBytes(to, name.original.at, name.original.length);
    view.setUint8(to, SPAN.droppedAttributesCount);
    view.setUint8(to + 1, 0);
    to += 2;
    const end = this.putTail(record, events.droppedCount, to);
    if (this.isOther) return false;
    if (this.isTest && uniqueId !== undefined)
      this.commands.noteTest(record.spanHigh, record.spanLow, uniqueId.text, wordOf(verdict));
    out.tag(RECORD);
    out.varint(end - ITEM + events.byteCount);
    if (events.byteCount === 0) {
      ITEM_OUTLET.appendTo(out, end - ITEM);
      return true;
    }
    ITEM_OUTLET.appendTo(out, to - ITEM);
    events.writeTo(out);
    out.append(ARENA, to, end);
    return true;
  }

  /** Makes the event of a log record between `eventStart` and `eventEnd` of the arena; `log` may then write the same as a log record. @returns whether it could */
  event(record: CellRecord): boolean {
    const { plan } = record;
    if (plan.isSpecial || cell(Cell.itemEnd) - cell(Cell.itemStart) > MAX_ITEM_BYTES) return false;
    this.isOther = false;
    view.setUint8(ITEM, EVENT.time);
    view.setInt32(ITEM + 1, cell(Cell.startLow), true);
    view.setInt32(ITEM + 5, cell(Cell.startHigh), true);
    view.setUint8(ITEM + 9, EVENT.name);
    let to = putVarint(ITEM + 10, plan.shortName.length);
    to = copyText(to, plan.shortName.at, plan.shortName.length);
    this.body = this.bodyOf();
    const { at, length } = this.body;
    if (length > 0) to = putTextAttribute(to, AttributeTag.event, BODY, at, length);
    const severityStart = cell(Cell.messageStart);
    to = putTextAttribute(to, AttributeTag.event, SEVERITY_TEXT, severityStart, cell(Cell.messageEnd) - severityStart);
    to = putNumberAttribute(to, AttributeTag.event, SEVERITY_NUMBER, cell(Cell.code));
    this.sharedStart = to;
    to = this.attributes(plan, AttributeTag.event, to);
    to = this.statement(plan, undefined, false, AttributeTag.event, to);
    this.sharedEnd = to;
    view.setUint8(to, EVENT.droppedAttributesCount);
    view.setUint8(to + 1, 0);
    to += 2;
    if (this.isOther) return false;
    this.eventStart = ITEM - 1 - varintSize(to - ITEM);
    this.eventEnd = to;
    view.setUint8(this.eventStart, EVENT.message);
    putVarint(this.eventStart + 1, to - ITEM);
    return true;
  }

  /** The event that was made last, as `EventBuffer.addText` takes it. */
  eventText(): string {
    return buffer.toString('latin1', this.eventStart, this.eventEnd);
  }

  /** Writes the log record whose event was made last, its tag and length included. */
  log(out: WireWriter, { plan }: CellRecord): void {
    let to = LOG_ITEM;
    view.setUint8(to, 0x09);
    view.setInt32(to + 1, cell(Cell.startLow), true);
    view.setInt32(to + 5, cell(Cell.startHigh), true);
    view.setUint8(to + 9, 0x10);
    view.setUint8(to + 10, cell(Cell.code));
    view.setUint8(to + 11, 0x1a);
    const severityStart = cell(Cell.messageStart);
    const severityLength = cell(Cell.messageEnd) - severityStart;
    to = copyText(putVarint(to + 12, severityLength), severityStart, severityLength);
    const { at, length } = this.body;
    view.setUint8(to, 0x2a);
    to = putVarint(to + 1, 1 + varintSize(length) + length);
    view.setUint8(to, 0x0a);
    to = copyText(putVarint(to + 1, length), at, length);
    to = retagged(to, AttributeTag.log, this.sharedStart, this.sharedEnd);
    // No dropped attributes; flags.
    view.setUint16(to, 0x3800);
    view.setUint8(to + 2, 0x45);
    view.setInt32(to + 3, 1, true);
    view.setUint16(to + 7, 0x4a10);
    to = copyBytes(to + 9, cell(Cell.traceId), 16);
    view.setUint16(to, 0x5208);
    view.setInt32(to + 2, cell(Cell.idHigh));
    view.setInt32(to + 6, cell(Cell.idLow));
    view.setUint8(to + 10, 0x59);
    view.setInt32(to + 11, cell(Cell.startLow), true);
    view.setInt32(to + 15, cell(Cell.startHigh), true);
    view.setUint8(to + 19, 0x62);
    to = copyText(putVarint(to + 20, plan.typeName.length), plan.typeName.at, plan.typeName.length);
    out.tag(RECORD);
    out.varint(to - LOG_ITEM);
    LOG_OUTLET.appendTo(out, to - LOG_ITEM);
  }

  /** The verdict on a node that ended well, or was skipped; `undefined` for others. */
  private verdictOf(plan: RecordPlan, uniqueId: KnownText | undefined): Range | undefined {
    const mayBeCanceled = this.switches.verdicts && uniqueId !== undefined;
    if (mayBeCanceled && this.nodes.hasInterruption(uniqueId.text)) return undefined;
    const outcome = attributeText(plan, plan.nodeOutcome)?.text;
    if (outcome === 'NODE_OUTCOME_SKIPPED') return SKIPPED;
    if (outcome !== 'NODE_OUTCOME_SUCCESS') return undefined;
    for (const index of plan.checks) {
      const detail = attributeJson(plan, index);
      const name = plan.attributes[index]?.name;
      if (detail === undefined || name === undefined || !this.shared.hasPassed(name, detail)) return undefined;
    }
    return SUCCESS;
  }

  /** The name that is exported, and an attribute with the original where that is another; `undefined` for one that plain code has to show. */
  private nameOf(plan: RecordPlan): { readonly shown: Range; readonly original: Range } | undefined {
    const at = cell(Cell.textStart);
    const length = cell(Cell.textEnd) - at;
    const isKept = plan.isNameKept || (plan.isNameStructural && !this.switches.names);
    if (isKept) {
      OWN_NAME.shown.at = at;
      OWN_NAME.shown.length = length;
      return OWN_NAME;
    }
    if (!plan.isNameStructural) return undefined;
    return this.shared.stableName(plan.eventType, texts.find(at, at + length));
  }

  private attributes(plan: RecordPlan, tag: number, start: number): number {
    let to = putTextAttribute(start, tag, TYPE, plan.typeName.at, plan.typeName.length);
    this.nestedCount = 0;
    const { attributes } = plan;
    const { isRedacted } = this;
    for (let index = 0; index < attributes.length; index++) {
      const attribute = attributes[index];
      if (attribute === undefined || to > ITEM + MAX_ATTRIBUTES_BYTES) {
        this.isOther = true;
        break;
      }
      const use = isRedacted ? attribute.redacted : attribute.whole;
      if (use === Use.sql) continue;
      const at = attributeAt(index);
      const kind = cell(at + Attribute.kind);
      if (kind === Value.text) to = this.text(plan, index, attribute, use, tag, to);
      else if (kind === Value.bool || use !== Use.denied)
        to = copyTagged(to, tag, cell(at + Attribute.start), cell(at + Attribute.valueEnd));
    }
    return to;
  }

  private text(
    plan: RecordPlan,
    index: number,
    attribute: AttributePlan,
    use: number,
    tag: number,
    to: number,
  ): number {
    const at = attributeAt(index);
    const start = cell(at + Attribute.valueStart);
    const end = cell(at + Attribute.valueEnd);
    if (use === Use.int64) return this.int64(attribute, start, end, tag, to);
    if (isNested(plan, index)) return this.nested(plan, attribute, texts.ofAttribute(at), tag, to);
    if (use === Use.copied) return copyTagged(to, tag, cell(at + Attribute.start), end);
    if (use === Use.denied) return putTextAttribute(to, tag, attribute.key, DENIED.at, DENIED.length);
    const known = texts.ofAttribute(at);
    const shown = this.made(this.shared.shown(known, this.redactor.byPolicy(attribute.policy, known.text, true)));
    return putTextAttribute(to, tag, attribute.key, shown.at, shown.length);
  }

  /** Attributes of what is in an attribute's JSON. */
  private nested(plan: RecordPlan, attribute: AttributePlan, known: KnownText, tag: number, to: number): number {
    const nested = this.shared.nested(plan, attribute, known, this.redactor, this.switches);
    if (nested === undefined || !this.addNames(nested.names)) {
      this.isOther = true;
      return to;
    }
    return retagged(to, tag, nested.range.at, nested.range.at + nested.range.length);
  }

  /** @returns whether none of the names was there before */
  private addNames(names: readonly string[]): boolean {
    const { nestedNames } = this;
    for (let index = 0; index < this.nestedCount; index++) {
      for (const name of nestedNames[index] as readonly string[]) if (names.includes(name)) return false;
    }
    nestedNames[this.nestedCount++] = names;
    return true;
  }

  private int64({ key }: AttributePlan, start: number, end: number, tag: number, to: number): number {
    let value = 0;
    let at = start;
    for (; at < end && (view.getUint8(at) - ZERO) >>> 0 < 10; at++) value = value * 10 + view.getUint8(at) - ZERO;
    if (at === end && end > start && end - start <= MAX_DIGITS) return putNumberAttribute(to, tag, key, value);
    this.isOther = true;
    return to;
  }

  private bodyOf(): Range {
    const at = cell(Cell.textStart);
    const length = cell(Cell.textEnd) - at;
    if (length === 0) return NOTHING;
    if (!this.isRedacted) return { at, length };
    const known = texts.find(at, at + length);
    return this.made(this.shared.shown(known, this.redactor.text(known.text, true)));
  }

  /** What is made by plain code where it is not made here. */
  private made(range: Range | undefined): Range {
    if (range === undefined) this.isOther = true;
    return range ?? DENIED;
  }

  private statement(
    plan: RecordPlan,
    uniqueId: KnownText | undefined,
    isDatabaseSpan: boolean,
    tag: number,
    start: number,
  ): number {
    const sql = attributeText(plan, plan.sql);
    const adapter = attributeText(plan, plan.adapterType);
    if (sql === undefined && !isDatabaseSpan) return start;
    let to = start;
    const dialect = this.redactor.dialectOf(adapter?.text);
    const statement = sql === undefined ? undefined : this.shared.statements.of(sql, dialect);
    if (statement !== undefined) {
      const { text, isHash, identifiers } = statement;
      // It was learned from by the rules of the database that was known then, perhaps another one.
      if (adapter === undefined) this.redactor.learnIdentifiers(identifiers);
      if (!isHash) to = putTextAttribute(to, tag, isDatabaseSpan ? QUERY_TEXT : SQL, text.at, text.length);
      else if (attributeText(plan, plan.sqlHash) === undefined)
        to = putTextAttribute(to, tag, SQL_HASH, text.at, text.length);
    }
    if (!isDatabaseSpan) return to;
    if (adapter !== undefined) {
      const system = this.made(this.shared.system(adapter));
      to = copyBytes(to, system.at, system.length);
    }
    if (statement !== undefined) to = copyBytes(to, statement.about.at, statement.about.length);
    const namespace = uniqueId === undefined ? undefined : this.nodes.namespaceOf(uniqueId.text);
    if (namespace === undefined) return to;
    if (namespace !== WRITTEN.namespace) {
      WRITTEN.namespace = namespace;
      WRITTEN.end = putText(VALUE, namespace);
    }
    return putTextAttribute(to, tag, NAMESPACE, VALUE, WRITTEN.end - VALUE);
  }

  private nodeAttributes(record: CellRecord, uniqueId: KnownText, verdict: Range, start: number): number {
    let to = start;
    const time = this.switches.attributes ? this.nodes.queryTimeOf(uniqueId.text, record) : undefined;
    if (time !== undefined) {
      to = putNumberAttribute(to, AttributeTag.span, QUERY_COUNT, time.count);
      to = putNumberAttribute(to, AttributeTag.span, QUERY_TIME, Math.trunc(time.nanos / 1_000) / 1_000);
    }
    const rows = this.switches.attributes ? attributeText(record.plan, record.plan.rowsAffected) : undefined;
    if (rows !== undefined) {
      const value = int64Value(rows.text);
      if (typeof value === 'number') to = putNumberAttribute(to, AttributeTag.span, RETURNED_ROWS, value);
      else this.isOther = true;
    }
    const test = this.made(this.shared.test(uniqueId, wordOf(verdict)));
    this.isTest = test.length > 0;
    return copyBytes(to, test.at, test.length);
  }

  /** Writes what stands behind the events. @returns the offset behind it */
  private putTail(record: CellRecord, droppedEventsCount: number, start: number): number {
    view.setUint8(start, SPAN.droppedEventsCount);
    let to = putVarint(start + 1, droppedEventsCount);
    if ((cell(Cell.linkHigh) | cell(Cell.linkLow)) !== 0) to = putLink(to);
    if (this.switches.verdicts && record.plan.skipDetail >= 0) to = this.putSkipLink(record, to);
    const { upstream } = this;
    let droppedLinksCount = 0;
    if (record.plan.isProcessed && upstream.make(record, record.uniqueId, traceIdText)) {
      to += upstream.out.bytes.copy(buffer, to, 0, upstream.out.length);
      droppedLinksCount = upstream.droppedCount;
    }
    view.setUint8(to, SPAN.droppedLinksCount);
    return putSpanEnd(putVarint(to + 1, droppedLinksCount));
  }

  /** The link of a skipped node to the one that caused it. */
  private putSkipLink(record: CellRecord, to: number): number {
    const detail = attributeJson(record.plan, record.plan.skipDetail);
    const upstreamId = detail === undefined ? undefined : this.shared.upstreamOf(detail);
    if (upstreamId === undefined) return to;
    const cause = this.nodes.processedSpanOf(upstreamId, record);
    if (cause === undefined) return to;
    const attributes = { 'run_bridge.link.type': 'skip_cause', unique_id: upstreamId };
    const { skipLink } = this;
    skipLink.length = 0;
    encodeLink(skipLink, traceIdText(), spanIdOf(cause[0], cause[1]), attributes);
    return to + skipLink.bytes.copy(buffer, to, 0, skipLink.length);
  }
}

const NOTHING: Range = { at: 0, length: 0 };

/** The word for a verdict that is given here. */
function wordOf(verdict: Range | undefined): 'success' | 'skipped' {
  return verdict === SUCCESS ? 'success' : 'skipped';
}

/** One object for all names that are exported as they stand. */
const OWN_NAME = { shown: { at: 0, length: 0 }, original: NOTHING };
const ZERO = 0x30;
/** Longest integer that is surely exact. */
const MAX_DIGITS = 15;

function traceIdText(): string {
  return buffer.toString('hex', cell(Cell.traceId), cell(Cell.traceId) + 16);
}

/** Writes the link of the span that is looked at, as `encodeLink` does one without attributes. @returns the offset behind it */
function putLink(start: number): number {
  // The ids have 35 bytes with what stands round them.
  view.setInt32(start, 0x6a230a10);
  const to = copyBytes(start + 4, cell(Cell.traceId), 16);
  view.setUint16(to, 0x1208);
  view.setInt32(to + 2, cell(Cell.linkHigh));
  view.setInt32(to + 6, cell(Cell.linkLow));
  view.setUint16(to + 10, 0x2800);
  view.setUint8(to + 12, 0x35);
  view.setInt32(to + 13, SAMPLED_FLAGS, true);
  return to + 17;
}

/** Writes the status without a message and the flags, as `encodeSpanEnd` does. @returns the offset behind them */
function putSpanEnd(to: number): number {
  view.setInt32(to, 0x7a021800 | cell(Cell.code));
  view.setUint16(to + 4, 0x8501);
  view.setInt32(to + 6, SAMPLED_FLAGS, true);
  return to + 10;
}

/** Writes the ids. @returns the offset behind them */
function putSpanHead(start: number): number {
  view.setUint16(start, 0x0a10);
  let to = copyBytes(start + 2, cell(Cell.traceId), 16);
  view.setUint16(to, 0x1208);
  view.setInt32(to + 2, cell(Cell.idHigh));
  view.setInt32(to + 6, cell(Cell.idLow));
  to += 10;
  if ((cell(Cell.parentHigh) | cell(Cell.parentLow)) === 0) return to;
  view.setUint16(to, 0x2208);
  view.setInt32(to + 2, cell(Cell.parentHigh));
  view.setInt32(to + 6, cell(Cell.parentLow));
  return to + 10;
}

function putKindAndTimes(to: number, { isQuery }: RecordPlan): number {
  // Client or internal.
  view.setUint16(to, isQuery ? 0x3003 : 0x3001);
  view.setUint8(to + 2, 0x39);
  view.setInt32(to + 3, cell(Cell.startLow), true);
  view.setInt32(to + 7, cell(Cell.startHigh), true);
  view.setUint8(to + 11, 0x41);
  view.setInt32(to + 12, cell(Cell.endLow), true);
  view.setInt32(to + 16, cell(Cell.endHigh), true);
  return to + 20;
}

/** Copies attributes that stand one behind the other, under another tag. @returns the offset behind them */
function retagged(to: number, tag: number, start: number, end: number): number {
  const behind = copyBytes(to, start, end - start);
  for (let at = to; at < behind; ) {
    view.setUint8(at++, tag);
    let byte = view.getUint8(at++);
    let length = byte & 0x7f;
    for (let shift = 7; byte > 0x7f; shift += 7) {
      byte = view.getUint8(at++);
      length |= (byte & 0x7f) << shift;
    }
    at += length;
  }
  return behind;
}
