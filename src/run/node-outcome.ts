import { Form, type Layout, Role } from '../otlp/wire/layouts.js';
import { view } from '../record/arena.js';
import {
  Attributes,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  ownText,
  type Resource,
} from '../record/attributes.js';
import { Attribute, attributeAt, Cell, cell, isText, Value } from '../record/cells.js';
import { isOpening } from '../record/json-line.js';
import type { SpanEnd, SpanStatus, TelemetryRecord, UnixNano } from '../record/telemetry-record.js';
import { type KnownText, TextMemo, texts } from '../record/texts.js';
import { highOf, isAfter, lowOf, nanosOf } from './time-range.js';
import type { EngineWord, NodeVerdict } from './verdict.js';

/** LogMessage code of a node whose task was cancelled; carries the node's `unique_id`. */
const TASK_CANCELLED = 1404;
/** LogMessage code of `Operation cancelled`; on the invocation it has no `unique_id`. */
const OPERATION_CANCELED = 8995;
const SPAN_STATUS_ERROR = 2;

/**
 * Evidence that work was interrupted. The engine's node outcomes do not show it (interrupted nodes are reported as errors or as
 * successes); its log messages and queries do.
 */
export interface Interruption {
  /** `query` is the weaker evidence: a node may have continued after one cancelled query. */
  readonly kind: 'task' | 'operation' | 'query';
  /** The interrupted node; `null` where the whole command was. */
  readonly uniqueId: string | null;
}

const TIMED_OUT = /canceling statement due to \w+ timeout/;

/** Returns whether a query was cancelled; the engine also reports this for a query that the database aborted on a timeout, which is an error. */
export function isCanceledQuery({ attributes }: Pick<SpanEnd, 'attributes'>): boolean {
  if (enumValue(attributes.get('query_outcome'), 'QUERY_OUTCOME_') !== 'CANCELED') return false;
  return !TIMED_OUT.test(attributes.text('query_error_adapter_message') ?? '');
}

/** Returns whether a record reports that a node, or the command, was interrupted. */
export function interruptionOf(
  record: Pick<TelemetryRecord, 'recordType' | 'eventType' | 'attributes'>,
): Interruption | undefined {
  const name = eventName(record.eventType);
  if (record.recordType === 'LogRecord' && name === 'LogMessage') {
    if (!/1404|8995/.test(record.attributes.json)) return undefined;
    const code = record.attributes.integer('code');
    if (code !== TASK_CANCELLED && code !== OPERATION_CANCELED) return undefined;
    const uniqueId = record.attributes.text('unique_id') ?? null;
    return { kind: code === TASK_CANCELLED ? 'task' : 'operation', uniqueId };
  }
  if (record.recordType === 'SpanEnd' && name === 'QueryExecuted') {
    // Most queries are not cancelled and carry long statements: they are not parsed for this.
    if (!/cancell?ed/i.test(record.attributes.json)) return undefined;
    if (!isCanceledQuery(record)) return undefined;
    const uniqueId = record.attributes.text('unique_id');
    return uniqueId === undefined ? undefined : { kind: 'query', uniqueId };
  }
  return undefined;
}

/** What was seen of a node's interruption: `hard` by a log message, `query` by a cancelled query alone. */
export type InterruptionSign = 'none' | 'query' | 'hard';

/**
 * Returns the verdict of a node from the end of its NodeProcessed (or NodeEvaluated) span and the logs.
 * @param end attributes and status of the span's end; `null` if it never ended.
 */
export function nodeVerdictOf(
  end: { readonly attributes: Attributes; readonly status: SpanStatus | null } | null,
  interruption: InterruptionSign,
): NodeVerdict {
  if (interruption === 'hard') return 'canceled';
  if (end === null) return interruption === 'query' ? 'canceled' : 'unfinished';
  const { attributes, status } = end;
  if (interruption === 'query' && !ranThrough(attributes)) return 'canceled';
  return reportedVerdict(attributes, status);
}

/** Returns the verdict of the span itself, before interruptions are considered. */
function reportedVerdict(attributes: Attributes, status: SpanStatus | null): NodeVerdict {
  const outcome = nodeOutcomeOf(attributes);
  if (outcome === 'success') return checkVerdict(attributes);
  if (outcome === 'error' || outcome === 'canceled' || outcome === 'skipped') return outcome;
  if (status?.code === SPAN_STATUS_ERROR) return 'error';
  return outcome ?? 'unfinished';
}

/** An outcome of a node or a hook in the words of the documentation, or of a newer engine. */
export type Outcome = 'success' | 'error' | 'skipped' | 'canceled' | EngineWord;

/** `node_outcome`; `null` where it is missing or unspecified. */
export function nodeOutcomeOf(attributes: Attributes): Outcome | null {
  return outcomeOf(enumValue(attributes.get('node_outcome'), 'NODE_OUTCOME_'));
}

/** Returns the verdict of a hook, from the end of its span. */
export function hookVerdictOf({ attributes, status }: Pick<SpanEnd, 'attributes' | 'status'>): NodeVerdict {
  const outcome = outcomeOf(enumValue(attributes.get('hook_outcome'), 'HOOK_OUTCOME_'));
  if (outcome === 'success' || outcome === 'canceled') return outcome;
  return status?.code === SPAN_STATUS_ERROR ? 'error' : (outcome ?? 'unfinished');
}

function outcomeOf(value: string | undefined): Outcome | null {
  switch (value) {
    case 'SUCCESS':
      return 'success';
    case 'ERROR':
      return 'error';
    case 'SKIPPED':
      return 'skipped';
    case 'CANCELED':
    case 'CANCELLED':
      return 'canceled';
    case undefined:
    case '':
    case 'UNSPECIFIED':
      return null;
    default:
      return engineWordOf(value);
  }
}

/** Maximum length of an unknown outcome, in characters. */
const MAX_WORD_CHARS = 40;

/** Returns an outcome that this version does not know, as a word for display and counting. */
function engineWordOf(value: string): EngineWord {
  const word = value
    .slice(0, MAX_WORD_CHARS)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_');
  return ownText(word) as EngineWord;
}

/** Returns the verdict of a test that found something, a unit test that differs or a stale source: the engine reports all of them as successes. */
function checkVerdict(attributes: Attributes): NodeVerdict {
  const outcome = testOutcomeOf(attributes) ?? freshnessOutcomeOf(attributes);
  return outcome === undefined || outcome === 'passed' ? 'success' : outcome;
}

/** Result of a data test, a unit test or a freshness check. */
export type CheckOutcome = 'passed' | 'warned' | 'failed';

/** Returns a test's result; `undefined` if the node is not a test. A test without `test_outcome` has passed (enum value 0). */
export function testOutcomeOf(attributes: Attributes): CheckOutcome | undefined {
  const detail = outcomeDetail(attributes, 'node_test_detail', 'NodeTestDetail');
  const outcome = detail?.test_outcome ?? attributes.get('test_outcome');
  if (detail === undefined && outcome === undefined) return undefined;
  return checkOutcome(enumValue(outcome, 'TEST_OUTCOME_'));
}

/** Returns a source's freshness; `undefined` if the node is not a checked source. */
export function freshnessOutcomeOf(attributes: Attributes): CheckOutcome | undefined {
  const detail = outcomeDetail(attributes, 'node_freshness_outcome', 'NodeFreshnessOutcome');
  if (detail === undefined) return undefined;
  return checkOutcome(enumValue(detail.node_freshness_outcome, 'SOURCE_FRESHNESS_OUTCOME_'));
}

function checkOutcome(value: string | undefined): CheckOutcome {
  if (value?.endsWith('FAILED')) return 'failed';
  return value?.endsWith('WARNED') ? 'warned' : 'passed';
}

/** Returns whether a node's last phase was RUN and it was reported as a success: a cancelled query did not stop it. */
function ranThrough(attributes: Attributes): boolean {
  const phase = enumValue(attributes.get('last_phase') ?? attributes.get('phase'), 'EXECUTION_PHASE_');
  return phase === 'RUN' && enumValue(attributes.get('node_outcome'), 'NODE_OUTCOME_') === 'SUCCESS';
}

/** Returns a detail of a node: a field by itself, or (in Parquet's spelling) inside `node_outcome_detail`. */
export function outcomeDetail(attributes: Attributes, field: string, wrapped: string): JsonObject | undefined {
  const detail = attributes.object(field);
  if (detail !== undefined) return detail;
  const value: JsonValue | undefined = attributes.object('node_outcome_detail')?.[wrapped];
  return isJsonObject(value) ? value : undefined;
}

/** Returns an enum's value without its prefix, in capitals: the schema's spelling and the documented one (`success`) read alike. */
export function enumValue(value: JsonValue | undefined, prefix: string): string | undefined {
  if (typeof value !== 'string') return undefined;
  const capitals = value.toUpperCase();
  return capitals.startsWith(prefix) ? capitals.slice(prefix.length) : capitals;
}

/**
 * The state of one node of an invocation, about 120 bytes: records are added in any order, and two halves
 * merge into the same result.
 */
export class NodeFacts {
  /**
   * The end of its NodeProcessed span; where that never ended, of its NodeEvaluated span of phase RUN, or of one that failed.
   * The latest where there are several.
   */
  private end: NodeEnd | null = null;
  private isProcessed = false;
  private interruption: InterruptionSign = 'none';
  private selected: boolean | null = null;

  /** What a record of its NodeProcessed span says, the start as well as the end. */
  noteSelected(isSelected: boolean): void {
    this.selected = this.selected || isSelected;
  }

  addProcessedEnd(end: NodeEnd): void {
    this.take(end, true);
  }

  addEvaluatedEnd(end: NodeEnd): void {
    if (end.meaning.isLast) this.take(end, false);
  }

  addInterruption(kind: Interruption['kind']): void {
    this.interruption = stronger(this.interruption, kind === 'query' ? 'query' : 'hard');
  }

  merge(other: NodeFacts): void {
    if (other.end !== null) this.take(other.end, other.isProcessed);
    this.interruption = stronger(this.interruption, other.interruption);
    this.selected = this.selected || (other.selected ?? this.selected);
  }

  /** Returns whether the command was asked for it; `null` where no NodeProcessed span was seen. */
  get isSelected(): boolean | null {
    return this.selected;
  }

  get verdict(): NodeVerdict {
    if (this.end === null) return nodeVerdictOf(null, this.interruption);
    if (this.interruption === 'hard') return 'canceled';
    const { plain, afterCanceledQuery } = this.end.meaning;
    return this.interruption === 'query' ? afterCanceledQuery : plain;
  }

  /** Returns when the node was found to have failed; `null` where it did not, or was cut short. */
  get failureTimeUnixNano(): UnixNano | null {
    const { verdict } = this;
    if (verdict !== 'failed' && verdict !== 'error') return null;
    return this.end?.endTimeUnixNano ?? null;
  }

  /** Returns whether NodeProcessed ended, and not around these times: they belong to the node in another invocation. */
  excludes(startTimeUnixNano: UnixNano, endTimeUnixNano: UnixNano): boolean {
    if (this.end === null || !this.isProcessed) return false;
    return startTimeUnixNano < this.end.startTimeUnixNano || endTimeUnixNano > this.end.endTimeUnixNano;
  }

  private take(end: NodeEnd, isProcessed: boolean): void {
    if (this.isProcessed && !isProcessed) return;
    const isFirst = this.end === null || this.isProcessed !== isProcessed;
    this.isProcessed = isProcessed;
    if (isFirst || (this.end !== null && end.isAfter(this.end))) this.end = end;
  }
}

const STRENGTH: Readonly<Record<InterruptionSign, number>> = { none: 0, query: 1, hard: 2 };

function stronger(a: InterruptionSign, b: InterruptionSign): InterruptionSign {
  return STRENGTH[a] >= STRENGTH[b] ? a : b;
}

/** What the end of a span says about its node, without the times. Ends that say the same share it. */
export interface EndMeaning {
  /** Verdicts without an interruption, and with the weak sign of one. */
  readonly plain: NodeVerdict;
  readonly afterCanceledQuery: NodeVerdict;
  /** Whether nothing came after it: it was the phase that executes the node, or it failed. */
  readonly isLast: boolean;
}

/** The end of one span about a node. Its times are in halves, since of most it is only asked which is the later. */
export class NodeEnd {
  constructor(
    readonly meaning: EndMeaning,
    private readonly startHigh: number,
    private readonly startLow: number,
    private readonly endHigh: number,
    private readonly endLow: number,
  ) {}

  /** That of the span which is looked at. */
  static ofCells(meaning: EndMeaning): NodeEnd {
    return new NodeEnd(meaning, cell(Cell.startHigh), cell(Cell.startLow), cell(Cell.endHigh), cell(Cell.endLow));
  }

  get startTimeUnixNano(): UnixNano {
    return nanosOf(this.startHigh, this.startLow);
  }

  get endTimeUnixNano(): UnixNano {
    return nanosOf(this.endHigh, this.endLow);
  }

  /** Returns whether it came later than the other one; of two at once, one by what they say. */
  isAfter(other: NodeEnd): boolean {
    if (this.endHigh !== other.endHigh || this.endLow !== other.endLow)
      return isAfter(this.endHigh, this.endLow, other.endHigh, other.endLow);
    return this.meaning.plain > other.meaning.plain;
  }
}

/** What is read of the end of a node's span. */
export type NodeSpanEnd = Pick<SpanEnd, 'attributes' | 'status' | 'startTimeUnixNano' | 'endTimeUnixNano'>;

/** Reads the end of a NodeProcessed or NodeEvaluated span. */
export function nodeEndOf(end: NodeSpanEnd): NodeEnd {
  const { startTimeUnixNano: start, endTimeUnixNano } = end;
  return new NodeEnd(meaningOf(end), highOf(start), lowOf(start), highOf(endTimeUnixNano), lowOf(endTimeUnixNano));
}

function meaningOf(end: Pick<SpanEnd, 'attributes' | 'status'>): EndMeaning {
  const phase = end.attributes.text('phase')?.toUpperCase() ?? '';
  const plain = nodeVerdictOf(end, 'none');
  return {
    plain,
    afterCanceledQuery: nodeVerdictOf(end, 'query'),
    isLast: phase === 'RUN' || phase === 'EXECUTION_PHASE_RUN' || plain === 'error',
  };
}

/** Returns whether a NodeProcessed record marks its node as selected. */
export function isSelected({ attributes }: Pick<SpanEnd, 'attributes'>): boolean {
  return attributes.get('in_selection') === true;
}

/** Different values, and different combinations of them, that are remembered; a schema has some dozens. */
const MAX_REMEMBERED = 256;
/** The longest of them, in bytes; nodes with longer ones are read from their records. */
const MAX_VALUE_BYTES = 256;

/** No value. */
const NONE = 0;

/** What came as an attribute that shows how nodes end. */
interface KnownValue {
  /** Of a detail: an outcome or a phase means the same under any name. */
  readonly name: string;
  readonly text: string;
  /** As `"name":value`; of an outcome or a phase the value alone. */
  readonly json: string;
}

const NO_VALUE: KnownValue = { name: '', text: '', json: '' };
/** Values of a span. */
const MAX_VALUES = 3;

/**
 * Reads how nodes ended from the cells of their spans. Thousands of nodes share a handful of outcomes, phases and details, so each
 * is made once, and what they mean together is found out once. When there are too many, all are forgotten.
 */
class EndMeanings {
  private values: KnownValue[] = [NO_VALUE];
  /** By the text that came. */
  private numbers = new TextMemo<number>();
  /** By status code and the numbers of outcome, phase and detail. */
  private readonly meanings = new Map<number, EndMeaning>();

  /** Returns how the node ended whose span is looked at; `undefined` where its records have to be asked. */
  read(layout: Layout): EndMeaning | undefined {
    this.tidy();
    const outcome = this.value(layout, Role.outcome);
    const phase = this.value(layout, Role.phase);
    const detail = this.value(layout, Role.detail);
    if (outcome === undefined || outcome === NONE || phase === undefined || detail === undefined) return undefined;
    return this.meaning(cell(Cell.code), outcome, phase, detail);
  }

  private tidy(): void {
    if (this.values.length <= MAX_REMEMBERED - MAX_VALUES && this.meanings.size < MAX_REMEMBERED) return;
    this.values = [NO_VALUE];
    this.numbers = new TextMemo();
    this.meanings.clear();
  }

  private meaning(code: number, outcome: number, phase: number, detail: number): EndMeaning {
    const key = ((code * MAX_REMEMBERED + outcome) * MAX_REMEMBERED + phase) * MAX_REMEMBERED + detail;
    return this.meanings.get(key) ?? this.newMeaning(key, code, outcome, phase, detail);
  }

  private newMeaning(key: number, code: number, outcome: number, phase: number, detail: number): EndMeaning {
    const json = (value: number) => this.values[value]?.json ?? '';
    const members = [`"node_outcome":${json(outcome)}`, `"phase":${json(phase) || '""'}`];
    if (detail !== NONE) members.push(json(detail));
    const attributes = Attributes.of(JSON.parse(`{${members.join(',')}}`) as JsonObject);
    const meaning = meaningOf({ attributes, status: { message: null, code } });
    this.meanings.set(key, meaning);
    return meaning;
  }

  /** Returns the number of what an attribute of the span that is looked at says; `undefined` where it is no text, long, or one too many. */
  private value(layout: Layout, role: number): number | undefined {
    const index = layout.roles[role] ?? -1;
    if (index < 0) return NONE;
    const at = attributeAt(index);
    if (!isText(index) || cell(at + Attribute.valueEnd) - cell(at + Attribute.valueStart) > MAX_VALUE_BYTES)
      return undefined;
    const known = texts.ofAttribute(at);
    const name = role === Role.detail ? (layout.attributes[index]?.name ?? '') : '';
    const before = this.numbers.get(known);
    if (before !== undefined && this.values[before]?.name === name) return before;
    const number = this.find(name, known.text) ?? this.add(layout, index, name, known.text, role);
    if (number !== undefined) this.numbers.set(known, number);
    return number;
  }

  private find(name: string, text: string): number | undefined {
    // From the end: the first one stands for no value, and is as an empty one.
    const number = this.values.findLastIndex((value) => value.name === name && value.text === text);
    return number > NONE ? number : undefined;
  }

  private add(layout: Layout, index: number, name: string, text: string, role: number): number | undefined {
    const json = jsonOf(layout, index, text, role === Role.detail);
    return json === undefined ? undefined : this.values.push({ name, text: ownText(text), json }) - 1;
  }
}

/** Those of this thread. */
export const endMeanings = new EndMeanings();

/** Returns a value as its line has it; `undefined` where plain code has to say. */
function jsonOf(layout: Layout, index: number, text: string, isDetail: boolean): string | undefined {
  const attribute = layout.attributes[index];
  const isNested = attribute?.form === Form.nested && text !== '' && isOpening(text.charCodeAt(0));
  if (!isDetail) return isNested ? undefined : JSON.stringify(text);
  return `${JSON.stringify(attribute?.name ?? '')}:${isNested ? text : JSON.stringify(text)}`;
}

/** Returns whether a query's outcome reports its cancellation. */
export function isCanceledOutcome(outcome: KnownText): boolean {
  let isCanceled = CANCELED_OUTCOMES.get(outcome);
  if (isCanceled === undefined) {
    isCanceled = /cancell?ed/i.test(outcome.text);
    CANCELED_OUTCOMES.set(outcome, isCanceled);
  }
  return isCanceled;
}

const CANCELED_OUTCOMES = new TextMemo<boolean>();

/** Returns whether the span that is looked at marks its node as selected. */
export function isSelectedNode({ inSelection }: Layout): boolean {
  if (inSelection < 0) return false;
  const at = attributeAt(inSelection);
  return cell(at + Attribute.kind) === Value.bool && view.getUint8(cell(at + Attribute.valueStart)) !== 0;
}

/** The properties of a span or log record that the run model uses, by its event type. */
export const ROW_KIND = {
  /** Its records contain more than its cells show at once: a root, a phase, a hook, a message that may report an interruption … */
  special: 0,
  nodeProcessed: 1,
  nodeEvaluated: 2,
  /** Only where it hangs and when it was matters (and how severe it is). */
  plain: 3,
  /** Whether it was cancelled, too. */
  query: 4,
} as const;

export type RowKind = (typeof ROW_KIND)[keyof typeof ROW_KIND];

const KINDS: ReadonlyMap<string, RowKind> = new Map<string, RowKind>([
  ['Invocation', ROW_KIND.special],
  ['Process', ROW_KIND.special],
  ['PhaseExecuted', ROW_KIND.special],
  ['HookProcessed', ROW_KIND.special],
  ['ArtifactWritten', ROW_KIND.special],
  ['Groups', ROW_KIND.special],
  ['ProgressMessage', ROW_KIND.special],
  ['LogMessage', ROW_KIND.special],
  ['QueryExecuted', ROW_KIND.query],
  ['NodeProcessed', ROW_KIND.nodeProcessed],
  ['NodeEvaluated', ROW_KIND.nodeEvaluated],
]);

/** @param eventType full name */
export function rowKind(eventType: string): RowKind {
  return KINDS.get(eventName(eventType)) ?? ROW_KIND.plain;
}

/** A span or log record that has cells, which are looked at, and where its lines stand in the record log. One object for all. */
export interface CellItem {
  layout: Layout;
  kind: RowKind;
  /** See `FIELD`. */
  parts: number;
  resource: Resource;
  /** As `FIELD` has them, in the record log. */
  startLine: number;
  endLine: number;
  lineEnd: number;
  /** When it arrived, in monotonic milliseconds. */
  arrivalMs: number;
}

/** Returns the id of the node that the item which is looked at is about; `undefined` where it names none. */
export function uniqueIdOf(layout: Layout): string | undefined {
  const index = layout.roles[Role.uniqueId] ?? -1;
  return index < 0 ? undefined : texts.ofAttribute(attributeAt(index)).text;
}

/** Returns whether the cells contain all that a summary needs of an item's roles: each has one attribute, which is a text as it came. */
export function areRolesPlain({ roles, attributes, hasOddRoles }: Layout): boolean {
  if (hasOddRoles) return false;
  for (let role = 0; role < Role.detail; role++) {
    const index = roles[role] as number;
    if (index < 0) continue;
    if (!isText(index)) return false;
    const at = attributeAt(index);
    const start = cell(at + Attribute.valueStart);
    const isEmpty = start === cell(at + Attribute.valueEnd);
    if (attributes[index]?.form === Form.nested && !isEmpty && isOpening(view.getUint8(start))) return false;
  }
  return true;
}

/**
 * Returns the last part of an event type, for example `NodeProcessed` of `v1.public.events.fusion.node.NodeProcessed`. The middle
 * of the name changes with the engine (`v1.public.events.<engine>.…`), the last part does not.
 */
export function eventName(eventType: string): string {
  return eventType.slice(eventType.lastIndexOf('.') + 1);
}

/** Frames of a Rust backtrace, from the first on: `   0: <unknown>`, `  18: start_thread`, `             at ./nptl/…`. */
const FRAMES = /(?:^|\n) *0: (?:<unknown>[^\n]*|[^\n]*(?=\n +(?:1: |at )))(?:\n +(?:\d+: |at )[^\n]*)*/g;

/** Returns an error message without the stack frames of the engine's code, which help nobody. */
export function withoutFrames(message: string): string {
  return message.includes('0: ') ? message.replaceAll(FRAMES, '') : message;
}
