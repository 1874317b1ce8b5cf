import { spread } from '../core/bytes.js';
import type { LoggedRecord } from '../log/record-log.js';
import { ENDED, LOGGED, STARTED } from '../otlp/wire/item-chunk.js';
import { type Layout, Role } from '../otlp/wire/layouts.js';
import {
  ACCOUNT_ATTRIBUTE,
  IMPORT_ATTRIBUTE,
  isJsonObject,
  type JsonValue,
  ownText,
  type Resource,
  resourceKey,
  SCOPE_ATTRIBUTES,
  stepIdOf,
  UNKNOWN_RESOURCE,
  withoutImport,
} from '../record/attributes.js';
import { attributeAt, Cell, cell } from '../record/cells.js';
import type { SpanEnd, SpanId, SpanStart, SpanStatus, TelemetryRecord, UnixNano } from '../record/telemetry-record.js';
import { texts } from '../record/texts.js';
import {
  type CellItem,
  endMeanings,
  eventName,
  interruptionOf,
  isCanceledOutcome,
  isSelected,
  isSelectedNode,
  NodeEnd,
  NodeFacts,
  nodeEndOf,
  ROW_KIND,
  uniqueIdOf,
} from './node-outcome.js';
import { TimeRange } from './time-range.js';

/** Severity of errors, OTel's SeverityNumber. */
const ERROR_SEVERITY = 17;
/** Memory of a group with a set of names, a node in it and a name in it, measured with 100,000 of each. */
const GROUP_BYTES = 500;
const NODE_BYTES = 220;
const TEXT_BYTES = 80;
const UNIQUE_ID = /"unique_id":\s?"([^"\\]+)"/;

/**
 * The state of spans that certainly belong to one invocation: those joined by parents and links. Records are added in
 * any order, and two groups can merge; both give the same result. Stores no record: about 200 bytes a node.
 * Most are of spans whose parents are not known yet, and soon merged into others: they have no maps of what they have none of.
 */
export class SpanGroup {
  /** Offset of its first record in the record log. */
  firstOffset = 0;
  /** Where its last record ends in the record log. */
  endOffset = 0;
  recordCount = 0;
  /** Identifies its records, by their positions in the log and in any order; see `recordDigest`. With a sign: without one, it would be an object. */
  digest = 0;
  private readonly time = new TimeRange();
  /** When its last record arrived, on the tracker's monotonic clock. */
  lastArrivalMs = Number.NEGATIVE_INFINITY;
  resource: Resource | null = null;
  /** The step that its resource names; `null` where it names none. */
  stepId: string | null = null;
  private invocationRoots: Map<SpanId, RootSpan> | undefined;
  private processRoots: Map<SpanId, RootSpan> | undefined;
  private likely: Map<SpanId, number> | undefined;
  /** How many of them are so surely that they count as one. */
  private likelyCount = 0;
  private nodeFacts: Map<string, NodeFacts> | undefined;
  /** Most name one node. */
  private firstId: string | undefined;
  private furtherIds: Set<string> | undefined;
  /** Time of the first sign that work was cut short. */
  interruptedAtUnixNano: UnixNano | null = null;
  /** Whether a log message reported it, and not only a cancelled query. */
  hasCancelMessage = false;
  errorLogCount = 0;
  /** Whether the log records in it name no span. */
  isSpanless = false;

  add({ record, resource, offset, endOffset }: LoggedRecord, arrivalMs: number): void {
    this.note(1, recordDigest(offset), offset, endOffset, arrivalMs);
    this.noteResource(resource);
    if (record.recordType === 'LogRecord') {
      this.time.note(record.timeUnixNano, record.timeUnixNano);
      if (record.severityNumber >= ERROR_SEVERITY) this.errorLogCount += 1;
    } else {
      this.time.note(
        record.startTimeUnixNano,
        record.recordType === 'SpanEnd' ? record.endTimeUnixNano : record.startTimeUnixNano,
      );
      this.addSpan(record);
    }
    this.noteInterruption(record);
    if (!this.isInvocation) this.noteUniqueId(record);
  }

  /** As `add` for all records of an item that has cells. False, and nothing done, where its records have to be asked. */
  addItem(item: CellItem): boolean {
    const { layout, kind } = item;
    if (kind === ROW_KIND.nodeProcessed || kind === ROW_KIND.nodeEvaluated) return this.addNode(item);
    if (kind === ROW_KIND.query && mayBeCanceled(layout)) return false;
    this.noteItem(item);
    if (item.parts === LOGGED && cell(Cell.code) >= ERROR_SEVERITY) this.errorLogCount += 1;
    if (this.isInvocation) return true;
    const uniqueId = uniqueIdOf(layout) ?? '';
    if (uniqueId !== '') this.addId(uniqueId);
    return true;
  }

  private addNode(item: CellItem): boolean {
    const { layout, kind, parts } = item;
    const hasEnded = (parts & ENDED) !== 0;
    const uniqueId = uniqueIdOf(layout);
    const meaning = uniqueId === undefined || !hasEnded ? undefined : endMeanings.read(layout);
    if (uniqueId === undefined || (hasEnded && meaning === undefined)) return false;
    this.noteItem(item);
    if (kind === ROW_KIND.nodeProcessed || meaning !== undefined) {
      const node = this.nodeFacts?.get(uniqueId) ?? this.newNode(uniqueId);
      if (kind === ROW_KIND.nodeProcessed) {
        node.noteSelected(isSelectedNode(layout));
        if (meaning !== undefined) node.addProcessedEnd(NodeEnd.ofCells(meaning));
      } else if (meaning?.isLast === true) node.addEvaluatedEnd(NodeEnd.ofCells(meaning));
    }
    if (!this.isInvocation) this.addId(uniqueId);
    return true;
  }

  private noteItem({ parts, resource, startLine, endLine, lineEnd, arrivalMs }: CellItem): void {
    const digest = recordDigest(startLine);
    if (parts !== (STARTED | ENDED)) this.note(1, digest, startLine, lineEnd, arrivalMs);
    else this.note(2, digest + recordDigest(endLine), startLine, lineEnd, arrivalMs);
    this.noteResource(resource);
    this.time.noteCells();
  }

  private note(count: number, digest: number, firstOffset: number, endOffset: number, arrivalMs: number): void {
    if (this.recordCount === 0 || firstOffset < this.firstOffset) this.firstOffset = firstOffset;
    this.recordCount += count;
    this.digest = (this.digest + digest) | 0;
    this.endOffset = Math.max(this.endOffset, endOffset);
    this.lastArrivalMs = Math.max(this.lastArrivalMs, arrivalMs);
  }

  /** Invocation spans, by id; one, unless the telemetry contradicts itself. */
  get invocations(): ReadonlyMap<SpanId, RootSpan> {
    return this.invocationRoots ?? NO_ROOTS;
  }

  /** Process spans, by id. */
  get processes(): ReadonlyMap<SpanId, RootSpan> {
    return this.processRoots ?? NO_ROOTS;
  }

  /** Nodes by unique id. */
  get nodes(): ReadonlyMap<string, NodeFacts> {
    return this.nodeFacts ?? NO_NODES;
  }

  /** Unique ids in its queries and log records; kept until the group belongs to an invocation. */
  get uniqueIds(): readonly string[] {
    return this.firstId === undefined ? [] : [this.firstId, ...(this.furtherIds ?? [])];
  }

  /** Time of its first record; `null` where it has none. */
  get startTimeUnixNano(): UnixNano | null {
    return this.time.start;
  }

  /** Time of its last record, as `startTimeUnixNano`. */
  get endTimeUnixNano(): UnixNano | null {
    return this.time.end;
  }

  /** Memory that it takes, in bytes, about. */
  get memoryBytes(): number {
    return GROUP_BYTES + this.nodes.size * NODE_BYTES + (this.furtherIds?.size ?? 0) * TEXT_BYTES;
  }

  /** Returns whether it holds an invocation span, or a span that its children show to be one. */
  get isInvocation(): boolean {
    return this.likelyCount > 0 || (this.invocationRoots !== undefined && this.invocationRoots.size > 0);
  }

  /** Returns whether it holds a process span and nothing else: its two records at most. */
  get isBareProcess(): boolean {
    return this.processes.size === 1 && this.recordCount <= 2 && !this.isInvocation;
  }

  /**
   * Equal for groups of one step and, without a step, of equal resources, whatever the import. The JSONL of a command has
   * fewer resource attributes than its OTLP.
   */
  get originKey(): string {
    return this.stepId ?? originKeyOf(this.resource ?? UNKNOWN_RESOURCE);
  }

  /** Merges the other group into this one; the other is not used any more. */
  merge(other: SpanGroup): void {
    if (other.recordCount > 0) {
      this.note(other.recordCount, other.digest, other.firstOffset, other.endOffset, other.lastArrivalMs);
    }
    this.stepId ??= other.stepId;
    if (other.resource !== null) this.noteResource(other.resource);
    this.time.merge(other.time);
    this.invocationRoots = merged(this.invocationRoots, other.invocationRoots);
    this.processRoots = merged(this.processRoots, other.processRoots);
    if (other.likely !== undefined) for (const [id, evidence] of other.likely) this.noteLikelyInvocation(id, evidence);
    this.nodeFacts = merged(this.nodeFacts, other.nodeFacts);
    if (this.isInvocation) {
      this.firstId = undefined;
      this.furtherIds = undefined;
    } else if (other.firstId !== undefined) {
      this.addId(other.firstId);
      if (other.furtherIds !== undefined) for (const uniqueId of other.furtherIds) this.addId(uniqueId);
    }
    if (other.interruptedAtUnixNano !== null) this.noteInterruptionTime(other.interruptedAtUnixNano);
    this.hasCancelMessage ||= other.hasCancelMessage;
    this.errorLogCount += other.errorLogCount;
  }

  noteLikelyInvocation(id: SpanId, evidence: number): void {
    this.likely ??= new Map();
    const before = this.likely.get(id) ?? 0;
    if (evidence <= before) return;
    if (before < LIKELY && evidence >= LIKELY) this.likelyCount += 1;
    this.likely.set(id, evidence);
  }

  /** The record of the span has come. */
  forgetLikelyInvocation(id: SpanId): void {
    if ((this.likely?.get(id) ?? 0) >= LIKELY) this.likelyCount -= 1;
    this.likely?.delete(id);
  }

  /** Spans without a record that are an invocation span by their children, and how surely (see `parentEvidence`). */
  get likelyInvocations(): ReadonlyMap<SpanId, number> {
    return this.likely ?? NO_EVIDENCE;
  }

  private addSpan(record: Exclude<TelemetryRecord, { recordType: 'LogRecord' }>): void {
    switch (eventName(record.eventType)) {
      case 'Invocation':
        this.invocationRoots = withRoot(this.invocationRoots, record);
        break;
      case 'Process':
        this.processRoots = withRoot(this.processRoots, record);
        break;
      case 'NodeProcessed': {
        const uniqueId = record.attributes.text('unique_id');
        if (uniqueId === undefined) break;
        const node = this.node(uniqueId);
        node.noteSelected(isSelected(record));
        if (record.recordType === 'SpanEnd') node.addProcessedEnd(nodeEndOf(record));
        break;
      }
      case 'NodeEvaluated': {
        if (record.recordType === 'SpanStart') break;
        const uniqueId = record.attributes.text('unique_id');
        if (uniqueId !== undefined) this.node(uniqueId).addEvaluatedEnd(nodeEndOf(record));
        break;
      }
    }
  }

  /** Found in the text: queries carry long statements, which need not be parsed for this. */
  private noteUniqueId(record: TelemetryRecord): void {
    const uniqueId = UNIQUE_ID.exec(record.attributes.json)?.[1];
    if (uniqueId !== undefined) this.addId(ownText(uniqueId));
  }

  private noteInterruption(record: TelemetryRecord): void {
    const interruption = interruptionOf(record);
    if (interruption === undefined) return;
    this.noteInterruptionTime(record.recordType === 'LogRecord' ? record.timeUnixNano : endOf(record));
    if (interruption.kind !== 'query') this.hasCancelMessage = true;
    if (interruption.uniqueId !== null) this.node(interruption.uniqueId).addInterruption(interruption.kind);
  }

  private noteInterruptionTime(time: UnixNano): void {
    if (this.interruptedAtUnixNano === null || time < this.interruptedAtUnixNano) this.interruptedAtUnixNano = time;
  }

  /** The most detailed resource; among equals, one that does not depend on the order of arrival. */
  private noteResource(resource: Resource): void {
    if (resource === this.resource) return;
    this.stepId ??= stepIdOf(resource);
    if (this.resource !== null && preference(resource) <= preference(this.resource)) return;
    this.resource = resource;
  }

  private node(uniqueId: string): NodeFacts {
    return this.nodeFacts?.get(uniqueId) ?? this.newNode(ownText(uniqueId));
  }

  private newNode(uniqueId: string): NodeFacts {
    const created = new NodeFacts();
    this.nodeFacts ??= new Map();
    this.nodeFacts.set(uniqueId, created);
    return created;
  }

  private addId(uniqueId: string): void {
    this.firstId ??= uniqueId;
    if (uniqueId === this.firstId) return;
    this.furtherIds ??= new Set();
    this.furtherIds.add(uniqueId);
  }
}

/**
 * Of the record at an offset of the log. Those of several are added up modulo 2^32: equal sums are, but for one chance in
 * four thousand million, those of the same records.
 */
export function recordDigest(offset: number): number {
  return spread((offset >>> 0) + 1) >>> 0;
}

/** Returns whether a query's end, whose cells are looked at, may report its cancellation. */
function mayBeCanceled({ roles }: Layout): boolean {
  const index = roles[Role.outcome] ?? -1;
  return index >= 0 && isCanceledOutcome(texts.ofAttribute(attributeAt(index)));
}

function endOf(record: Exclude<TelemetryRecord, { recordType: 'LogRecord' }>): UnixNano {
  return record.recordType === 'SpanEnd' ? record.endTimeUnixNano : record.startTimeUnixNano;
}

function originKeyOf(resource: Resource): string {
  let known = ORIGIN_KEYS.get(resource);
  if (known === undefined) {
    known = resourceKey(withoutImport(resource));
    ORIGIN_KEYS.set(resource, known);
  }
  return known;
}

/** Assigning compares them often. */
const ORIGIN_KEYS = new WeakMap<Resource, string>();

function preference(resource: Resource): string {
  let known = PREFERENCES.get(resource);
  if (known === undefined) {
    const names = Object.keys(resource.attributes).filter(
      (name) => name !== ACCOUNT_ATTRIBUTE && name !== IMPORT_ATTRIBUTE,
    );
    const isKnown = names.length > 0 || resource.scope.name !== '';
    // An endpoint may say what its records belong to for one signal alone.
    const scopeCount = Object.values(SCOPE_ATTRIBUTES).filter((name) => names.includes(name)).length;
    // Equal ones may still list their attributes in another order.
    known = `${isKnown ? '1' : '0'}${scopeCount}${resourceKey(resource)}${JSON.stringify(resource)}`;
    PREFERENCES.set(resource, known);
  }
  return known;
}

/** Asked of every record, and records share a few resources. */
const PREFERENCES = new WeakMap<Resource, string>();

const NO_ROOTS: ReadonlyMap<SpanId, RootSpan> = new Map();
const NO_NODES: ReadonlyMap<string, NodeFacts> = new Map();
const NO_EVIDENCE: ReadonlyMap<SpanId, number> = new Map();

type Roots = Map<SpanId, RootSpan> | undefined;

function withRoot(roots: Roots, record: Exclude<TelemetryRecord, { recordType: 'LogRecord' }>): Roots {
  const into = roots ?? new Map<SpanId, RootSpan>();
  const root = into.get(record.spanId) ?? new RootSpan(record.spanId);
  into.set(record.spanId, root);
  root.add(record);
  return into;
}

/** @param from not used any more */
function merged<Key, Value extends { merge(other: Value): void }>(
  into: Map<Key, Value> | undefined,
  from: Map<Key, Value> | undefined,
): Map<Key, Value> | undefined {
  if (into === undefined || from === undefined) return into ?? from;
  for (const [key, value] of from) {
    const known = into.get(key);
    if (known === undefined) into.set(key, value);
    else known.merge(value);
  }
  return into;
}

/** The state of an invocation span or a process span, from its start, its end or both. */
export class RootSpan {
  /** The outer span that it names as parent, when the command joined an orchestrator's trace. */
  outerParentSpanId: SpanId | null = null;
  startTimeUnixNano: UnixNano = 0n;
  /** `null` until its end was seen. */
  endTimeUnixNano: UnixNano | null = null;
  status: SpanStatus | null = null;
  command: string | null = null;
  rawCommand: string | null = null;
  totalErrors: number | null = null;
  totalWarnings: number | null = null;

  constructor(readonly spanId: SpanId) {}

  add(record: SpanStart | SpanEnd): void {
    const { attributes } = record;
    this.outerParentSpanId = record.parentSpanId;
    this.startTimeUnixNano = record.startTimeUnixNano;
    this.command = textOf(attributes.object('eval_args')?.command) ?? this.command;
    this.rawCommand = attributes.text('raw_command') ?? this.rawCommand;
    if (record.recordType === 'SpanStart') return;
    this.endTimeUnixNano = record.endTimeUnixNano;
    this.status = record.status;
    const metrics = attributes.get('metrics');
    if (!isJsonObject(metrics)) return;
    this.totalErrors = countOf(metrics.total_errors);
    this.totalWarnings = countOf(metrics.total_warnings);
  }

  /** Merges the other half of the same span. */
  merge(other: RootSpan): void {
    this.outerParentSpanId ??= other.outerParentSpanId;
    this.command ??= other.command;
    this.rawCommand ??= other.rawCommand;
    this.endTimeUnixNano ??= other.endTimeUnixNano;
    this.status ??= other.status;
    this.totalErrors ??= other.totalErrors;
    this.totalWarnings ??= other.totalWarnings;
  }
}

function textOf(value: JsonValue | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Returns a 64-bit count, spelt as a string of digits by the engine, as a number elsewhere. */
function countOf(value: JsonValue | undefined): number | null {
  const count = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) ? count : null;
}

/** How surely the parent of a NodeProcessed span is the invocation span. */
export const CERTAIN = 3;
/** How surely a span whose record is missing is an invocation span; from this value on it counts as one. */
export const LIKELY = 2;
const POSSIBLE = 1;

/**
 * Returns what a record says about the span it refers to (its parent, or a log record's span): a missing invocation span is identified
 * by its children. In all of the engine's runs NodeProcessed, ArtifactWritten and the phases are
 * its direct children, except the hook phases, which at trace level are children of a CallTrace.
 */
export function parentEvidence(record: TelemetryRecord): number {
  const name = eventName(record.eventType);
  if (record.recordType === 'LogRecord') {
    if (record.spanName !== null && isInvocationName(record.spanName)) return CERTAIN;
    if (name === 'Groups') return POSSIBLE;
    // The first message of a command names the engine, whatever it is called, and its version, on the invocation span.
    return name === 'ProgressMessage' && namesEngine(record) ? LIKELY : 0;
  }
  switch (name) {
    case 'NodeProcessed':
      return CERTAIN;
    case 'ArtifactWritten':
      return LIKELY;
    case 'PhaseExecuted':
      return /ON_?RUN_?(START|END)/i.test(record.attributes.text('phase') ?? '') ? POSSIBLE : LIKELY;
    case 'HookProcessed':
      return POSSIBLE;
    default:
      return 0;
  }
}

/** Returns whether a span's name is that of an invocation: `dbt invocation (…)`. */
export function isInvocationName(spanName: string): boolean {
  return INVOCATION_NAME.test(spanName);
}

const INVOCATION_NAME = /^\S+ invocation \(/;

function namesEngine({ attributes }: TelemetryRecord): boolean {
  return ENGINE_NAME.test(attributes.text('action') ?? '') && VERSION.test(attributes.text('target') ?? '');
}

/** Other messages begin with a capital letter. */
const ENGINE_NAME = /^[a-z][a-z0-9_-]*$/;
const VERSION = /^\d+\.\d+\.\d+[\w.+-]*$/;
