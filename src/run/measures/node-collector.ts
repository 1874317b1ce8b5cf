import { type Attributes, ownText } from '../../record/attributes.js';
import type { LogRecord, SpanEnd, SpanStart } from '../../record/telemetry-record.js';
import type { UnixNano } from '../../record/unix-nano.js';
import { enumValue, type Interruption, isSelected, NodeFacts, nodeEndOf, withoutFrames } from '../node-outcome.js';
import { type EngineOutcome, engineOutcomeOf, UNKNOWN_OUTCOME } from './engine-outcome.js';
import type { NodeMeasure } from './node-measure.js';
import type { NodePhase } from './node-phase.js';
import { previousStatusOf } from './previous-status.js';

/** Maximum number of phases of one node; the schema has 19. */
const MAX_PHASES = 32;
/** Maximum length of an error message, in characters. */
const MAX_MESSAGE_CHARS = 4_000;

/** The NodeProcessed span's share of a node's measures. */
type Processed = Pick<NodeMeasure, 'durationMs' | 'idleTimeMs' | 'lifetimeNano' | 'rows'> &
  EngineOutcome & { readonly startTimeUnixNano: UnixNano; readonly endTimeUnixNano: UnixNano };

/** Where a node is defined. */
type NodeSource = Pick<NodeMeasure, 'name' | 'relativePath' | 'definedAtLine' | 'group'>;

const UNKNOWN_SOURCE: NodeSource = { name: null, relativePath: null, definedAtLine: null, group: null };

/** Collects the records of one node, in any order; about 1 kB. */
export class NodeCollector {
  private readonly facts = new NodeFacts();
  private readonly phases = new Map<string, NodePhase>();
  private readonly queryNano = new Map<string, bigint>();
  private processed: Processed | null = null;
  private processedStart: UnixNano | null = null;
  private nodeType: string | null = null;
  private readonly source: { -readonly [K in keyof NodeSource]: NodeSource[K] } = { ...UNKNOWN_SOURCE };
  private message: string | null = null;
  private queryCount = 0;
  private wasInterrupted = false;

  constructor(readonly uniqueId: string) {}

  addProcessed(record: SpanStart | SpanEnd): void {
    const { attributes, startTimeUnixNano } = record;
    this.noteSource(record);
    this.processedStart ??= startTimeUnixNano;
    if (record.recordType === 'SpanStart') {
      this.facts.addProcessedStart(isSelected(record));
      return;
    }
    const { endTimeUnixNano } = record;
    this.facts.addProcessedEnd(nodeEndOf(record));
    if (this.processed !== null && this.processed.endTimeUnixNano >= endTimeUnixNano) return;
    this.processed = {
      ...engineOutcomeOf(attributes),
      startTimeUnixNano,
      endTimeUnixNano,
      durationMs: attributes.integer('duration_ms') ?? null,
      idleTimeMs: attributes.integer('idle_time_ms') ?? null,
      lifetimeNano: endTimeUnixNano - startTimeUnixNano,
      rows: attributes.integer('rows_affected') ?? null,
    };
  }

  addEvaluated(record: SpanStart | SpanEnd): void {
    this.noteSource(record);
    if (record.recordType === 'SpanEnd') this.facts.addEvaluatedEnd(nodeEndOf(record));
    const name = phaseName(record);
    const known = this.phases.get(name);
    if (known === undefined && this.phases.size >= MAX_PHASES) return;
    const found = measuredPhase(record, ownText(name));
    const isNews = known === undefined || (found.endTimeUnixNano ?? 0n) > (known.endTimeUnixNano ?? 0n);
    if (isNews) this.phases.set(found.phase, found);
  }

  addQuery(record: SpanEnd): void {
    const name = phaseName(record);
    this.queryCount += 1;
    const key = this.queryNano.has(name) || this.queryNano.size < MAX_PHASES ? name : '';
    const nano = record.endTimeUnixNano - record.startTimeUnixNano;
    this.queryNano.set(ownText(key), (this.queryNano.get(key) ?? 0n) + nano);
  }

  addInterruption(kind: Interruption['kind']): void {
    this.wasInterrupted = true;
    this.facts.addInterruption(kind);
  }

  addError({ body }: LogRecord): void {
    this.message ??= ownText(withoutFrames(body).slice(0, MAX_MESSAGE_CHARS));
  }

  /** Whether it is a node, and not something else (a hook) that queries or messages name by a `unique_id`. */
  get isNode(): boolean {
    return this.processedStart !== null || this.phases.size > 0 || this.wasInterrupted;
  }

  /** All but what of the command's length fell to it. */
  measure(): Omit<NodeMeasure, 'share'> {
    const phases = [...this.phases.values()]
      .sort((a, b) => (a.startTimeUnixNano < b.startTimeUnixNano ? -1 : 1))
      .map((phase) => ({ ...phase, warehouseTimeNano: this.queryNano.get(phase.phase) ?? 0n }));
    const { verdict } = this.facts;
    const told = this.processed ?? phases.findLast(({ outcome }) => outcome !== null);
    const outcome = told ?? UNKNOWN_OUTCOME;
    const startTimeUnixNano = earlier(this.processed?.startTimeUnixNano ?? this.processedStart, phases[0]);
    return {
      ...outcomeOf(outcome),
      uniqueId: this.uniqueId,
      nodeType: this.nodeType,
      ...this.source,
      verdict,
      isSelected: this.facts.isSelected,
      previousStatus: verdict === 'canceled' || verdict === 'unfinished' ? null : previousStatusOf(outcome),
      startTimeUnixNano,
      endTimeUnixNano: this.processed?.endTimeUnixNano ?? null,
      durationMs: this.processed?.durationMs ?? null,
      idleTimeMs: this.processed?.idleTimeMs ?? null,
      lifetimeNano: this.processed?.lifetimeNano ?? null,
      warehouseTimeNano: [...this.queryNano.values()].reduce((sum, nano) => sum + nano, 0n),
      queryCount: this.queryCount,
      rows: this.processed?.rows ?? null,
      message: this.message,
      phases,
    };
  }

  private noteSource({ attributes }: SpanStart | SpanEnd): void {
    if (this.nodeType === null) {
      const type = enumValue(attributes.get('node_type'), 'NODE_TYPE_');
      if (type !== undefined) this.nodeType = ownText(type.toLowerCase());
    }
    const { source } = this;
    source.name ??= textOf(attributes, 'name');
    source.relativePath ??= textOf(attributes, 'relative_path');
    source.definedAtLine ??= attributes.integer('defined_at_line') ?? null;
    source.group ??= textOf(attributes, 'group');
  }
}

function textOf(attributes: Attributes, name: string): string | null {
  const text = attributes.text(name);
  return text === undefined || text === '' ? null : ownText(text);
}

/** The phase of a record, without its prefix; empty for a query that names none. */
function phaseName({ attributes }: SpanStart | SpanEnd): string {
  return enumValue(attributes.get('phase'), 'EXECUTION_PHASE_') ?? '';
}

function outcomeOf({
  outcome,
  skipReason,
  skipUpstream,
  testOutcome,
  failingRows,
  diffTable,
  freshness,
}: EngineOutcome) {
  return { outcome, skipReason, skipUpstream, testOutcome, failingRows, diffTable, freshness };
}

function earlier(processed: UnixNano | null, first: NodePhase | undefined): UnixNano | null {
  const evaluated = first?.startTimeUnixNano ?? null;
  if (processed === null || evaluated === null) return processed ?? evaluated;
  return processed < evaluated ? processed : evaluated;
}

/** Reads a NodeEvaluated span's start or end; without the queries, which are counted elsewhere. */
export function measuredPhase(record: SpanStart | SpanEnd, phase: string): NodePhase {
  const { attributes, startTimeUnixNano } = record;
  const start = { phase, startTimeUnixNano, warehouseTimeNano: 0n };
  if (record.recordType === 'SpanStart') {
    return { ...start, ...UNKNOWN_OUTCOME, endTimeUnixNano: null, lifetimeNano: null, idleTimeMs: null, rows: null };
  }
  return {
    ...start,
    ...engineOutcomeOf(attributes),
    endTimeUnixNano: record.endTimeUnixNano,
    lifetimeNano: record.endTimeUnixNano - startTimeUnixNano,
    idleTimeMs: attributes.integer('idle_time_ms') ?? null,
    rows: attributes.integer('rows_affected') ?? null,
  };
}
