import { startOf } from '../../core/text.js';
import type { RecordLogReader } from '../../log/record-log.js';
import { type Attributes, ownText } from '../../record/attributes.js';
import { withCauseFirst } from '../../record/error-statement.js';
import type {
  LogRecord,
  SpanEnd,
  SpanStart,
  TelemetryRecord,
  TraceId,
  UnixNano,
} from '../../record/telemetry-record.js';
import { InvocationAssigner } from '../invocation-assigner.js';
import {
  enumValue,
  eventName,
  hookVerdictOf,
  type Interruption,
  interruptionOf,
  isSelected,
  NodeFacts,
  nodeEndOf,
  withoutFrames,
} from '../node-outcome.js';
import { type InvocationSummary, type NodeVerdict, type RunSummary, selectedNodes } from '../verdict.js';
import { type CommandLog, LogCollector, LogRoom } from './command-log.js';
import { criticalPath, pathSteps } from './critical-path.js';
import { isBad, isExecuted } from './execution.js';
import { failedSql } from './failed-sql.js';
import {
  type EngineOutcome,
  engineOutcomeOf,
  type NodeMeasure,
  type NodePhase,
  type PhaseMeasure,
  previousStatusOf,
  UNKNOWN_OUTCOME,
} from './node-measure.js';
import { type CommandMeasures, type QueryTimes, runTotals } from './run-totals.js';
import {
  grow,
  type Interval,
  lengthOf,
  lengthSplit,
  NO_SHARE,
  type OtherSpan,
  type QuerySpan,
  shareOf,
  timeSplit,
} from './time-split.js';
import { later, sooner } from './timeline.js';

/** Maximum number of phases of one node; the schema has 19. */
const MAX_PHASES = 32;

/** The NodeProcessed span's share of a node's measures. */
type Processed = Pick<NodeMeasure, 'durationMs' | 'idleTimeMs' | 'lifetimeNano' | 'rows' | 'lastPhase'> &
  EngineOutcome & { readonly startTimeUnixNano: UnixNano; readonly endTimeUnixNano: UnixNano };

/** Where a node is defined. */
type NodeSource = Pick<NodeMeasure, 'name' | 'relativePath' | 'definedAtLine' | 'group'>;

const UNKNOWN_SOURCE: NodeSource = { name: null, relativePath: null, definedAtLine: null, group: null };

/** Collects the records of one node, in any order; about 1 kB. */
export class NodeCollector {
  private readonly facts = new NodeFacts();
  private readonly phases = new Map<string, NodePhase & { readonly spanId: string }>();
  private readonly queryNano = new Map<string, bigint>();
  private processed: Processed | null = null;
  private processedStart: UnixNano | null = null;
  private nodeType: string | null = null;
  private readonly source: { -readonly [K in keyof NodeSource]: NodeSource[K] } = { ...UNKNOWN_SOURCE };
  private message: string | null = null;
  private compiled: string | null = null;
  private failedStatement: string | null = null;
  private queryCount = 0;
  private wasInterrupted = false;

  constructor(readonly uniqueId: string) {}

  addProcessed(record: SpanStart | SpanEnd): void {
    const { attributes, startTimeUnixNano } = record;
    this.noteSource(record);
    this.processedStart ??= startTimeUnixNano;
    this.facts.noteSelected(isSelected(record));
    if (record.recordType === 'SpanStart') return;
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
      lastPhase: lastPhaseOf(attributes),
    };
    if (this.isFine) {
      this.compiled = null;
      this.failedStatement = null;
    }
  }

  addEvaluated(record: SpanStart | SpanEnd): void {
    this.noteSource(record);
    if (record.recordType === 'SpanEnd') this.facts.addEvaluatedEnd(nodeEndOf(record));
    const name = phaseName(record);
    const known = this.phases.get(name);
    if (known === undefined && this.phases.size >= MAX_PHASES) return;
    const found = { ...measuredPhase(record, ownText(name)), spanId: ownText(record.spanId) };
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

  /** The code that a model, a test or a snapshot was compiled to; only of nodes that fail is it kept to the end. */
  addCompiled(code: string): void {
    if (!this.isFine) this.compiled = ownText(startOf(code, MAX_SQL_CHARS));
  }

  /** A statement that the database refused; the last one is what the error is about. */
  addFailedStatement(statement: string): void {
    if (!this.isFine) this.failedStatement = ownText(startOf(statement, MAX_SQL_CHARS));
  }

  /** What of SQL it has in memory, in characters. */
  get sqlChars(): number {
    return (this.compiled?.length ?? 0) + (this.failedStatement?.length ?? 0);
  }

  private get isFine(): boolean {
    return this.processed !== null && !isBad(this.facts.verdict);
  }

  addInterruption(kind: Interruption['kind']): void {
    this.wasInterrupted = true;
    this.facts.addInterruption(kind);
  }

  addError({ body }: LogRecord): void {
    this.message ??= messageOf(body);
  }

  /** Whether it is a node, and not something else (a hook) that queries or messages name by a `unique_id`. */
  get isNode(): boolean {
    return this.processedStart !== null || this.phases.size > 0 || this.wasInterrupted;
  }

  /**
   * All but what of the command's length fell to it.
   * @param waits those of the command
   */
  measure(waits: NodeWaits, command: Parameters<typeof isExecuted>[0]): Omit<NodeMeasure, 'share'> {
    const found: Interval[] = [];
    const phases = [...this.phases.values()]
      .sort((a, b) => (a.startTimeUnixNano < b.startTimeUnixNano ? -1 : 1))
      .map(({ spanId, ...phase }) => {
        const ofPhase = waits.within(this.uniqueId, spanId, phase);
        found.push(...ofPhase);
        const warehouseTimeNano = this.queryNano.get(phase.phase) ?? 0n;
        return { ...phase, warehouseTimeNano, waits: ofPhase, idleTimeMs: idleMs(phase.idleTimeMs, ofPhase) };
      });
    const { verdict } = this.facts;
    const decisive = this.processed ?? phases.findLast(({ outcome }) => outcome !== null);
    const outcome = decisive ?? UNKNOWN_OUTCOME;
    const lastPhase = this.processed?.lastPhase ?? phases.findLast(({ outcome: own }) => own !== null)?.phase ?? null;
    const startTimeUnixNano = earlier(this.processed?.startTimeUnixNano ?? this.processedStart, phases[0]);
    return {
      ...outcomeOf(outcome),
      uniqueId: this.uniqueId,
      nodeType: this.nodeType,
      ...this.source,
      verdict,
      isSelected: this.facts.isSelected,
      lastPhase,
      isExecuted: isExecuted(command, { verdict, lastPhase }),
      previousStatus: verdict === 'canceled' || verdict === 'unfinished' ? null : previousStatusOf(outcome),
      startTimeUnixNano,
      endTimeUnixNano: this.processed?.endTimeUnixNano ?? null,
      durationMs: this.processed?.durationMs ?? null,
      idleTimeMs: idleMs(this.processed?.idleTimeMs ?? null, found),
      lifetimeNano: this.processed?.lifetimeNano ?? null,
      warehouseTimeNano: [...this.queryNano.values()].reduce((sum, nano) => sum + nano, 0n),
      queryCount: this.queryCount,
      rows: this.processed?.rows ?? null,
      message: this.message,
      failedSql: isBad(verdict) ? failedSql(this.compiled, this.failedStatement, this.message) : null,
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

/** What the engine says of waiting, which has its waits in it, or their length where it says less. */
function idleMs(saidMs: number | null, waits: readonly Interval[]): number | null {
  const waitedMs = Number(lengthOf(waits) / 1_000_000n);
  return waitedMs === 0 ? saidMs : Math.max(saidMs ?? 0, waitedMs);
}

function textOf(attributes: Attributes, name: string): string | null {
  const text = attributes.text(name);
  return text === undefined || text === '' ? null : ownText(text);
}

function targetOf(attributes: Attributes): string | null {
  const target = attributes.object('eval_args')?.target;
  return typeof target === 'string' && target !== '' ? ownText(target) : null;
}

function lastPhaseOf(attributes: Attributes): string | null {
  const phase = enumValue(attributes.get('last_phase') ?? attributes.get('phase'), 'EXECUTION_PHASE_');
  return phase === undefined || phase === '' || phase === 'UNSPECIFIED' ? null : ownText(phase);
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
  const start = { phase, startTimeUnixNano, warehouseTimeNano: 0n, waits: [] };
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

/** Reads a run's record log into measures of its commands, as `MeasureReading.upTo`. */
export function readMeasures(
  reader: Pick<RecordLogReader, 'read'>,
  run: RunSummary,
  witness?: (record: TelemetryRecord) => void,
): Promise<readonly CommandMeasures[]> {
  return new MeasureReading(reader, witness).upTo(run);
}

/**
 * A reading of one trace's record log into measures. Of a run under way, only what has come since the last time is read,
 * unless several commands share the trace: which command a record belongs to may change with later ones.
 * What is held is bounded: see MeasureCollector and InvocationAssigner.
 */
export class MeasureReading {
  private collector: MeasureCollector;
  private readToBytes = 0;
  private found: ReadonlyMap<number, CommandLog> = new Map();

  /**
   * @param witness sees each record of the log, those of commands that are not measured too; some of them again
   * @param hasLogs whether log records are kept as well
   */
  constructor(
    private readonly reader: Pick<RecordLogReader, 'read'>,
    private readonly witness?: (record: TelemetryRecord) => void,
    private readonly hasLogs = false,
  ) {
    this.collector = this.newCollector();
  }

  /** The log records of the commands that `upTo` measured last, by the positions of these in the trace. */
  get logs(): ReadonlyMap<number, CommandLog> {
    return this.found;
  }

  private newCollector(room = new LogRoom()): MeasureCollector {
    return new MeasureCollector(this.hasLogs ? new LogCollector(room) : null);
  }

  /** The measures of a command, of which the log records are noted. */
  private measured(invocation: InvocationSummary, collector: MeasureCollector): CommandMeasures {
    const command = collector.measures(invocation);
    const log = collector.log?.of(command);
    if (log !== undefined) this.found = new Map([...this.found, [invocation.index, log]]);
    return command;
  }

  /**
   * Reads on to the end of what a summary speaks of, in chunks; from the beginning, and twice, where several commands share the trace.
   * One call at a time.
   * @param run its summary, which speaks of the log up to its `logBytes`
   * @returns measures of its commands, in their order
   * @throws what the reader throws when the log cannot be read
   */
  async upTo({ traceId, invocations, logBytes }: RunSummary): Promise<readonly CommandMeasures[]> {
    const [first] = invocations;
    if (first === undefined) return [];
    if (invocations.length > 1) return await this.ofSeveral(traceId, invocations, logBytes);
    if (logBytes < this.readToBytes) {
      this.collector = this.newCollector();
      this.readToBytes = 0;
    }
    for await (const chunk of this.reader.read(traceId, { fromOffset: this.readToBytes, toOffset: logBytes })) {
      for (const { record } of chunk) {
        this.collector.add(record);
        this.witness?.(record);
      }
      this.readToBytes = chunk.at(-1)?.endOffset ?? this.readToBytes;
    }
    this.readToBytes = logBytes;
    return [this.measured(first, this.collector)];
  }

  private async ofSeveral(
    traceId: TraceId,
    invocations: readonly InvocationSummary[],
    logBytes: number,
  ): Promise<readonly CommandMeasures[]> {
    const range = { fromOffset: 0, toOffset: logBytes };
    const room = new LogRoom();
    const collectors = new Map(invocations.map(({ index }) => [index, this.newCollector(room)]));
    const assigner = new InvocationAssigner();
    for await (const chunk of this.reader.read(traceId, range)) for (const logged of chunk) assigner.add(logged, 0);
    for await (const chunk of this.reader.read(traceId, range)) {
      for (const logged of chunk) {
        collectors.get(assigner.invocationIndexOf(logged) ?? 1)?.add(logged.record);
        this.witness?.(logged.record);
      }
    }
    return invocations.flatMap((invocation) => {
      const collector = collectors.get(invocation.index);
      return collector === undefined ? [] : [this.measured(invocation, collector)];
    });
  }
}

/** Maximum number of measured nodes of a command, about 1 kB each; further ones are only counted. */
const MAX_NODES = 100_000;
/** Maximum number of hooks and phases of a command; further ones are skipped. */
const MAX_OTHER_SPANS = 10_000;
/** Maximum number of distinguished queries of a command, about 150 bytes each; the time of further ones counts as work of their nodes. */
const MAX_QUERIES = 250_000;
/** Maximum number of distinguished waits of a command, about 200 bytes each; the time of further ones counts as work of their nodes. */
const MAX_WAITS = 100_000;
/** A log record about a stale source, whose node has its freshness as well; it names it in its text alone. */
const STALE_SOURCE = /^Stale source (\S+)/;
/** Messages that name no node, and the longest of them in characters. */
const MAX_MESSAGES = 20;
const MAX_MESSAGE_CHARS = 4_000;
/** The longest SQL of a node in memory, and all of it together, in characters; what is beyond is left out. */
const MAX_SQL_CHARS = 200_000;
const MAX_ALL_SQL_CHARS = 16_000_000;
/** What is kept of the SQL of failed nodes together, in characters; of those that come first. */
const MAX_KEPT_SQL_CHARS = 2_000_000;
const SEVERITY_ERROR = 17;

/**
 * Collects one command's measures from its records, in any order. Its memory is bounded by the numbers of nodes and queries: at
 * most about 140 MB, for 100,000 nodes and 250,000 queries.
 */
export class MeasureCollector {
  private readonly nodes = new Map<string, NodeCollector>();
  private readonly others = new Map<string, OtherSpan>();
  /** By their span ids. */
  private readonly queries = new Map<string, QuerySpan>();
  private readonly waits: Wait[] = [];
  private readonly messages: string[] = [];
  /** Nodes without a place; a node is counted by the one end of its NodeProcessed span. */
  private omittedNodeCount = 0;
  private sqlChars = 0;
  private target: string | null = null;
  private readonly otherQueries = { count: 0, timeNano: 0n };

  /** @param log collects its log records, where they are kept */
  constructor(readonly log: LogCollector | null = null) {}

  add(record: TelemetryRecord): void {
    const interruption = interruptionOf(record);
    if (interruption !== undefined && interruption.uniqueId !== null) {
      this.node(interruption.uniqueId)?.addInterruption(interruption.kind);
    }
    if (record.recordType === 'LogRecord') {
      this.log?.add(record);
      if (eventName(record.eventType) === 'CompiledCode') this.addCompiled(record);
      if (record.severityNumber >= SEVERITY_ERROR) this.addError(record);
      return;
    }
    switch (eventName(record.eventType)) {
      case 'Invocation':
        this.target ??= targetOf(record.attributes);
        return;
      case 'NodeProcessed':
        this.addProcessed(record);
        return;
      case 'NodeEvaluated':
        this.nodeOf(record)?.addEvaluated(record);
        return;
      case 'QueryExecuted':
        this.addQuery(record);
        return;
      case 'HookProcessed':
        this.addOther(record, 'hook');
        return;
      case 'PhaseExecuted':
        this.addOther(record, 'phase');
        return;
      // What waits in a node's span is counted into its idle_time_ms by the engine; the first of them is what builds before 2.0 send.
      case 'ConnectionLimitWait':
      case 'ThreadPoolWait':
        if (record.recordType === 'SpanEnd') this.addWait(record);
    }
  }

  /** Measures of the records. @param invocation the command of the records */
  measures(invocation: InvocationSummary): CommandMeasures {
    const { startTimeUnixNano, endTimeUnixNano } = invocation;
    const collected = [...this.nodes.values()];
    const waits = new NodeWaits(this.waits, endTimeUnixNano);
    const measured = collected
      .filter(({ isNode }) => isNode)
      .map((node) => node.measure(waits, invocation))
      .sort((a, b) => ((a.startTimeUnixNano ?? 0n) < (b.startTimeUnixNano ?? 0n) ? -1 : 1));
    const other = { ...this.otherQueries };
    for (const node of collected) {
      if (node.isNode) continue;
      const { queryCount, warehouseTimeNano } = node.measure(waits, invocation);
      other.count += queryCount;
      other.timeNano += warehouseTimeNano;
    }
    const spans = [...this.others.values()];
    const steps = pathSteps(measured, spans, endTimeUnixNano);
    const time = timeSplit(invocation, [...this.queries.values()], steps, spans);
    const shares = new Map(time.shares);
    const takeShare = (uniqueId: string) => {
      const share = shares.get(uniqueId) ?? NO_SHARE;
      shares.delete(uniqueId);
      return share;
    };
    let sqlChars = 0;
    const all = measured.map((node) => {
      sqlChars += node.failedSql?.text.length ?? 0;
      const kept = sqlChars > MAX_KEPT_SQL_CHARS ? { ...node, failedSql: null } : node;
      return { ...kept, share: takeShare(node.uniqueId) };
    });
    const hooks = spans.flatMap(({ kind: _kind, uniqueId, verdict, ...span }) =>
      uniqueId === null || verdict === null ? [] : [{ ...span, uniqueId, verdict, share: takeShare(uniqueId) }],
    );
    const nodes = selectedNodes(all);
    const stale = new Set(nodes.flatMap(({ uniqueId, freshness }) => (freshness === null ? [] : [uniqueId])));
    const selected = new Set(nodes);
    const parts = {
      phases: phaseMeasures(measured, spans, time.phaseNano),
      nodes,
      unselectedNodes: all.filter((node) => !selected.has(node)),
      hooks,
    };
    // What is left was of queries that name neither a node nor a hook.
    const otherQueriesNano = [...shares.values()].reduce((sum, share) => sum + shareOf(share), time.otherQueryNano);
    return {
      invocation,
      target: this.target,
      totals: runTotals(nodes, hooks, other, endTimeUnixNano - startTimeUnixNano),
      split: lengthSplit(parts, { otherQueriesNano, waitsNano: time.waitsNano, restNano: time.restNano }),
      timeParts: time.parts,
      criticalPath: criticalPath(steps, invocation, null),
      ...parts,
      queryTimes: queryTimes([...this.queries.values()], invocation),
      omittedNodeCount: this.omittedNodeCount,
      messages: this.messages.filter((message) => !stale.has(STALE_SOURCE.exec(message)?.[1] ?? '')),
    };
  }

  private addProcessed(record: SpanStart | SpanEnd): void {
    const node = this.nodeOf(record);
    if (node !== undefined) {
      const before = node.sqlChars;
      node.addProcessed(record);
      this.sqlChars += node.sqlChars - before;
    } else if (record.recordType === 'SpanEnd') this.omittedNodeCount += 1;
  }

  private addQuery(record: SpanStart | SpanEnd): void {
    const node = this.nodeOf(record);
    this.noteQuery(record, node?.uniqueId ?? null);
    if (record.recordType === 'SpanStart') return;
    if (node !== undefined) {
      node.addQuery(record);
      const statement = record.attributes.text('sql');
      const isFailed = enumValue(record.attributes.get('query_outcome'), 'QUERY_OUTCOME_') === 'ERROR';
      if (isFailed && statement !== undefined) this.keepSql(node, () => node.addFailedStatement(statement));
      return;
    }
    this.otherQueries.count += 1;
    this.otherQueries.timeNano += record.endTimeUnixNano - record.startTimeUnixNano;
  }

  private addCompiled(record: LogRecord): void {
    const node = this.nodeOf(record);
    const code = record.attributes.text('sql');
    if (node !== undefined && code !== undefined) this.keepSql(node, () => node.addCompiled(code));
  }

  /** Changes what a node has of SQL, as far as there is room. */
  private keepSql(node: NodeCollector, change: () => void): void {
    if (this.sqlChars > MAX_ALL_SQL_CHARS && node.sqlChars === 0) return;
    const before = node.sqlChars;
    change();
    this.sqlChars += node.sqlChars - before;
  }

  private noteQuery(record: SpanStart | SpanEnd, uniqueId: string | null): void {
    const known = this.queries.get(record.spanId);
    if (known === undefined ? this.queries.size >= MAX_QUERIES : known.endTimeUnixNano !== null) return;
    const endTimeUnixNano = record.recordType === 'SpanEnd' ? record.endTimeUnixNano : null;
    this.queries.set(ownText(record.spanId), {
      uniqueId,
      startTimeUnixNano: record.startTimeUnixNano,
      endTimeUnixNano,
    });
  }

  private addError(record: Extract<TelemetryRecord, { recordType: 'LogRecord' }>): void {
    const node = this.nodeOf(record);
    if (node !== undefined) node.addError(record);
    // `Operation cancelled` is no error: the verdict says that the command was cut short.
    else if (interruptionOf(record)?.kind === 'operation') return;
    else if (this.messages.length < MAX_MESSAGES) this.messages.push(messageOf(record.body));
  }

  private addOther(record: SpanStart | SpanEnd, kind: OtherSpan['kind']): void {
    const { spanId, attributes, startTimeUnixNano } = record;
    const known = this.others.get(spanId);
    if (known === undefined ? this.others.size >= MAX_OTHER_SPANS : known.endTimeUnixNano !== null) return;
    const uniqueId = kind === 'hook' ? (attributes.text('unique_id') ?? attributes.text('name') ?? 'hook') : null;
    const phase = enumValue(attributes.get('phase'), 'EXECUTION_PHASE_') ?? '';
    const endTimeUnixNano = record.recordType === 'SpanEnd' ? record.endTimeUnixNano : null;
    this.others.set(ownText(spanId), {
      kind,
      uniqueId: uniqueId && ownText(uniqueId),
      phase: ownText(phase),
      startTimeUnixNano,
      endTimeUnixNano,
      verdict: kind === 'hook' ? hookVerdict(record) : null,
      message: kind === 'hook' ? hookMessage(record) : null,
    });
  }

  private addWait({ parentSpanId, attributes, startTimeUnixNano, endTimeUnixNano }: SpanEnd): void {
    if (this.waits.length >= MAX_WAITS) return;
    const uniqueId = textOf(attributes, 'unique_id');
    const spanId = parentSpanId === null ? null : ownText(parentSpanId);
    this.waits.push({ uniqueId, parentSpanId: spanId, startTimeUnixNano, endTimeUnixNano });
  }

  private nodeOf({ attributes }: TelemetryRecord): NodeCollector | undefined {
    const uniqueId = attributes.text('unique_id');
    return uniqueId === undefined || uniqueId === '' ? undefined : this.node(uniqueId);
  }

  private node(uniqueId: string): NodeCollector | undefined {
    const known = this.nodes.get(uniqueId);
    if (known !== undefined || this.nodes.size >= MAX_NODES) return known;
    const created = new NodeCollector(ownText(uniqueId));
    this.nodes.set(created.uniqueId, created);
    return created;
  }
}

/** Time for which work stood in a queue for a thread (ThreadPoolWait) or for a connection (ConnectionLimitWait). */
interface Wait extends Interval {
  /** The node that it names; `null` where it names none, and only the span that it is in tells. */
  readonly uniqueId: string | null;
  readonly parentSpanId: string | null;
}

/** The waits of a command, by the nodes that they name or else by the spans that they are in. */
class NodeWaits {
  private readonly byName = new Map<string, Wait[]>();
  private readonly byParent = new Map<string, Wait[]>();

  constructor(
    waits: readonly Wait[],
    private readonly commandEnd: UnixNano,
  ) {
    for (const wait of waits) {
      if (wait.uniqueId !== null) grow(this.byName, wait.uniqueId, wait);
      else if (wait.parentSpanId !== null) grow(this.byParent, wait.parentSpanId, wait);
    }
  }

  /** Those in a node's phase, cut to it: in order, none over another. @param spanId of the phase */
  within(
    uniqueId: string,
    spanId: string,
    { startTimeUnixNano, endTimeUnixNano }: Pick<NodePhase, 'startTimeUnixNano' | 'endTimeUnixNano'>,
  ): readonly Interval[] {
    const found: Interval[] = [];
    const end = endTimeUnixNano ?? this.commandEnd;
    const waits = [...(this.byName.get(uniqueId) ?? []), ...(this.byParent.get(spanId) ?? [])];
    let free = startTimeUnixNano;
    for (const wait of waits.sort((a, b) => (a.startTimeUnixNano < b.startTimeUnixNano ? -1 : 1))) {
      const from = later(wait.startTimeUnixNano, free);
      const to = sooner(wait.endTimeUnixNano, end);
      if (to <= from) continue;
      found.push({ startTimeUnixNano: from, endTimeUnixNano: to });
      free = to;
    }
    return found;
  }
}

function queryTimes(
  queries: readonly QuerySpan[],
  { startTimeUnixNano, endTimeUnixNano }: InvocationSummary,
): QueryTimes {
  const ofNodes = queries.filter(({ uniqueId }) => uniqueId !== null);
  const ms = (time: UnixNano) => Number(time - startTimeUnixNano) / 1e6;
  const indexes = new Map<string, number>();
  const nodes = Int32Array.from(ofNodes, ({ uniqueId }) => {
    const id = uniqueId ?? '';
    const index = indexes.get(id) ?? indexes.size;
    indexes.set(id, index);
    return index;
  });
  return {
    uniqueIds: [...indexes.keys()],
    nodes,
    startsMs: Float64Array.from(ofNodes, (query) => ms(query.startTimeUnixNano)),
    endsMs: Float64Array.from(ofNodes, (query) => ms(query.endTimeUnixNano ?? endTimeUnixNano)),
  };
}

function hookVerdict(record: SpanStart | SpanEnd): NodeVerdict {
  return record.recordType === 'SpanEnd' ? hookVerdictOf(record) : 'unfinished';
}

function hookMessage(record: SpanStart | SpanEnd): string | null {
  const message = record.recordType === 'SpanEnd' ? record.status?.message : null;
  return message === null || message === undefined || message === '' ? null : messageOf(message);
}

/** An error as it is kept: without a statement in front of the cause, which may be longer than what is kept. */
function messageOf(text: string): string {
  return ownText(startOf(withCauseFirst(withoutFrames(text)), MAX_MESSAGE_CHARS));
}

/** A command's time by phase, from its PhaseExecuted spans and the nodes in them, in the order in which they began. */
export function phaseMeasures(
  nodes: readonly Pick<NodeMeasure, 'phases'>[],
  others: readonly OtherSpan[],
  shares: ReadonlyMap<string, bigint>,
): readonly PhaseMeasure[] {
  const phases = new Map<string, PhaseMeasure>();
  for (const span of others) {
    if (span.kind === 'phase') phases.set(span.phase, withSpan(phases.get(span.phase), span));
  }
  for (const { phases: ofNode } of nodes) {
    for (const { phase, startTimeUnixNano, lifetimeNano, idleTimeMs, warehouseTimeNano } of ofNode) {
      const known = phases.get(phase) ?? emptyPhase(phase, startTimeUnixNano);
      phases.set(phase, {
        ...known,
        nodeCount: known.nodeCount + 1,
        nodeTimeNano: known.nodeTimeNano + (lifetimeNano ?? 0n),
        idleTimeMs: known.idleTimeMs + (idleTimeMs ?? 0),
        warehouseTimeNano: known.warehouseTimeNano + warehouseTimeNano,
      });
    }
  }
  return [...phases.values()]
    .map((phase) => ({ ...phase, shareNano: shares.get(phase.phase) ?? 0n }))
    .sort((a, b) => (a.startTimeUnixNano < b.startTimeUnixNano ? -1 : 1));
}

function withSpan(known: PhaseMeasure | undefined, span: OtherSpan): PhaseMeasure {
  const { phase, startTimeUnixNano, endTimeUnixNano } = span;
  const lengthNano = endTimeUnixNano === null ? 0n : endTimeUnixNano - startTimeUnixNano;
  if (known === undefined) {
    return { ...emptyPhase(phase, startTimeUnixNano), endTimeUnixNano, spanTimeNano: lengthNano };
  }
  const isEarlier = startTimeUnixNano < known.startTimeUnixNano;
  const isLater = endTimeUnixNano !== null && endTimeUnixNano > (known.endTimeUnixNano ?? 0n);
  return {
    ...known,
    startTimeUnixNano: isEarlier ? startTimeUnixNano : known.startTimeUnixNano,
    endTimeUnixNano: isLater ? endTimeUnixNano : known.endTimeUnixNano,
    spanTimeNano: known.spanTimeNano + lengthNano,
  };
}

function emptyPhase(phase: string, startTimeUnixNano: bigint): PhaseMeasure {
  return {
    phase,
    startTimeUnixNano,
    endTimeUnixNano: null,
    spanTimeNano: 0n,
    nodeCount: 0,
    nodeTimeNano: 0n,
    idleTimeMs: 0,
    warehouseTimeNano: 0n,
    shareNano: 0n,
  };
}
