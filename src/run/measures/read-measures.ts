import type { RecordLogReader } from '../../log/record-log.js';
import { ownText } from '../../record/attributes.js';
import type { TraceId } from '../../record/ids.js';
import type { SpanEnd, SpanStart, TelemetryRecord } from '../../record/telemetry-record.js';
import type { UnixNano } from '../../record/unix-nano.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import { InvocationAssigner } from '../invocation-assigner.js';
import { enumValue, eventName, hookVerdictOf, interruptionOf, withoutFrames } from '../node-outcome.js';
import type { InvocationSummary, NodeVerdict, RunSummary } from '../run-summary.js';
import type { RunTracker } from '../run-tracker.js';
import { selectedNodes } from '../verdict.js';
import { criticalPath } from './critical-path.js';
import { NodeCollector } from './node-collector.js';
import type { NodeMeasure } from './node-measure.js';
import type { OtherSpan } from './other-span.js';
import type { PathStep } from './path-step.js';
import type { PhaseMeasure } from './phase-measure.js';
import { type CommandMeasures, runTotals } from './run-totals.js';
import { lengthSplit, NO_SHARE, type QuerySpan, shareOf, timeSplit } from './time-split.js';

/**
 * Reads a run's record log into the measures of its commands, in their order. The log is read in chunks, once; twice where
 * several commands share the trace. What is held is bounded: see MeasureCollector and InvocationAssigner.
 * @param run its summary, which speaks of the log up to its `logBytes`
 * @param witness sees each record of the log once, those of commands that are not measured too
 * @throws what the reader throws when the log cannot be read
 */
export async function readMeasures(
  reader: Pick<RecordLogReader, 'read'>,
  run: RunSummary,
  witness?: (record: TelemetryRecord) => void,
): Promise<readonly CommandMeasures[]> {
  const { traceId, invocations, logBytes } = run;
  const range = { fromOffset: 0, toOffset: logBytes };
  const collectors = new Map(invocations.map(({ index }) => [index, new MeasureCollector()]));
  const assigner = invocations.length > 1 ? new InvocationAssigner() : null;
  if (assigner !== null) {
    for await (const chunk of reader.read(traceId, range)) for (const logged of chunk) assigner.add(logged, 0);
  }
  for await (const chunk of reader.read(traceId, range)) {
    for (const logged of chunk) {
      collectors.get(assigner?.invocationIndexOf(logged) ?? 1)?.add(logged.record);
      witness?.(logged.record);
    }
  }
  return invocations.flatMap((invocation) => collectors.get(invocation.index)?.measures(invocation) ?? []);
}

/** Maximum number of measured nodes of a command, about 1 kB each; further ones are only counted. */
const MAX_NODES = 100_000;
/** Maximum number of hooks and phases of a command; further ones are skipped. */
const MAX_OTHER_SPANS = 10_000;
/** Maximum number of distinguished queries of a command, about 150 bytes each; the time of further ones counts as work of their nodes. */
const MAX_QUERIES = 250_000;
/** Messages that name no node, and the longest of them in characters. */
const MAX_MESSAGES = 20;
const MAX_MESSAGE_CHARS = 4_000;
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
  private readonly messages: string[] = [];
  /** Nodes without a place; a node is counted by the one end of its NodeProcessed span. */
  private omittedNodeCount = 0;
  private readonly otherQueries = { count: 0, timeNano: 0n };

  add(record: TelemetryRecord): void {
    const interruption = interruptionOf(record);
    if (interruption !== undefined && interruption.uniqueId !== null) {
      this.node(interruption.uniqueId)?.addInterruption(interruption.kind);
    }
    if (record.recordType === 'LogRecord') {
      if (record.severityNumber >= SEVERITY_ERROR) this.addError(record);
      return;
    }
    switch (eventName(record.eventType)) {
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
    }
  }

  /** Measures of the records. @param invocation the command of the records */
  measures(invocation: InvocationSummary): CommandMeasures {
    const { startTimeUnixNano, endTimeUnixNano } = invocation;
    const collected = [...this.nodes.values()];
    const measured = collected
      .filter(({ isNode }) => isNode)
      .map((node) => node.measure())
      .sort((a, b) => ((a.startTimeUnixNano ?? 0n) < (b.startTimeUnixNano ?? 0n) ? -1 : 1));
    const other = { ...this.otherQueries };
    for (const node of collected) {
      if (node.isNode) continue;
      const { queryCount, warehouseTimeNano } = node.measure();
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
    const all = measured.map((node) => ({ ...node, share: takeShare(node.uniqueId) }));
    const hooks = spans.flatMap(({ uniqueId, verdict, startTimeUnixNano: start, endTimeUnixNano: end }) =>
      uniqueId === null || verdict === null
        ? []
        : [{ uniqueId, verdict, startTimeUnixNano: start, endTimeUnixNano: end, share: takeShare(uniqueId) }],
    );
    const nodes = selectedNodes(all);
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
      totals: runTotals(nodes, hooks, other, endTimeUnixNano - startTimeUnixNano),
      split: lengthSplit(parts, { otherQueriesNano, restNano: time.restNano }),
      criticalPath: criticalPath(steps, startTimeUnixNano, endTimeUnixNano),
      ...parts,
      omittedNodeCount: this.omittedNodeCount,
      messages: this.messages,
    };
  }

  private addProcessed(record: SpanStart | SpanEnd): void {
    const node = this.nodeOf(record);
    if (node !== undefined) node.addProcessed(record);
    else if (record.recordType === 'SpanEnd') this.omittedNodeCount += 1;
  }

  private addQuery(record: SpanStart | SpanEnd): void {
    const node = this.nodeOf(record);
    this.noteQuery(record, node?.uniqueId ?? null);
    if (record.recordType === 'SpanStart') return;
    if (node !== undefined) {
      node.addQuery(record);
      return;
    }
    this.otherQueries.count += 1;
    this.otherQueries.timeNano += record.endTimeUnixNano - record.startTimeUnixNano;
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
    else if (this.messages.length < MAX_MESSAGES)
      this.messages.push(ownText(withoutFrames(record.body).slice(0, MAX_MESSAGE_CHARS)));
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
    });
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

function hookVerdict(record: SpanStart | SpanEnd): NodeVerdict {
  return record.recordType === 'SpanEnd' ? hookVerdictOf(record) : 'unfinished';
}

/** What steps are made of. */
type StepNode = Pick<NodeMeasure, 'uniqueId' | 'skipUpstream' | 'startTimeUnixNano' | 'endTimeUnixNano' | 'phases'>;

/**
 * What of a command takes time: each node in each phase, hooks, and the phases in which there is neither. A span that never
 * ended lasts as long as its node, or as the command.
 * @param endTimeUnixNano the command's end
 */
export function pathSteps(
  nodes: readonly StepNode[],
  others: readonly OtherSpan[],
  endTimeUnixNano: UnixNano,
): readonly PathStep[] {
  const steps = [
    ...nodes.flatMap((node) => nodeSteps(node, endTimeUnixNano)),
    ...others.filter(({ kind }) => kind === 'hook').map((hook) => otherStep(hook, endTimeUnixNano)),
  ];
  const inner = new Set(steps.map(({ phase }) => phase));
  const phases = others.filter(({ kind, phase }) => kind === 'phase' && !inner.has(phase));
  return [...steps, ...phases.map((phase) => otherStep(phase, endTimeUnixNano))];
}

function nodeSteps(node: StepNode, commandEnd: UnixNano): PathStep[] {
  const { uniqueId, skipUpstream, startTimeUnixNano, phases } = node;
  const end = node.endTimeUnixNano ?? commandEnd;
  // A log that holds no more than the nodes themselves, or a node that never got to a phase.
  if (phases.length === 0 && startTimeUnixNano !== null) {
    const hasEnd = node.endTimeUnixNano !== null;
    return [{ kind: 'node', uniqueId, phase: '', startTimeUnixNano, endTimeUnixNano: end, hasEnd, skipUpstream }];
  }
  return phases.map((phase) => ({
    kind: 'node',
    uniqueId,
    phase: phase.phase,
    startTimeUnixNano: phase.startTimeUnixNano,
    endTimeUnixNano: phase.endTimeUnixNano ?? end,
    hasEnd: phase.endTimeUnixNano !== null,
    skipUpstream: phase.skipUpstream,
  }));
}

function otherStep({ endTimeUnixNano, verdict: _verdict, ...span }: OtherSpan, commandEnd: UnixNano): PathStep {
  return {
    ...span,
    endTimeUnixNano: endTimeUnixNano ?? commandEnd,
    hasEnd: endTimeUnixNano !== null,
    skipUpstream: null,
  };
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

/** The measures of a command, and the trace that it is in. */
export interface StepMeasures {
  readonly traceId: TraceId;
  readonly command: CommandMeasures;
}

/**
 * Measures the commands of a run's steps, in their order. Of a trace shared with other runs, only the commands of
 * these steps are returned; a step without any data left returns none.
 * @param witness receives each record of the steps' traces once
 * @throws errors of the reader if a log cannot be read
 */
export async function readStepMeasures(
  steps: readonly Pick<CatalogStep, 'invocations'>[],
  { tracker, reader }: { readonly tracker: Pick<RunTracker, 'find'>; readonly reader: Pick<RecordLogReader, 'read'> },
  witness?: (record: TelemetryRecord) => void,
): Promise<readonly StepMeasures[]> {
  const invocations = steps.flatMap((step) => step.invocations);
  const own = new Set(invocations.map(({ traceId, index }) => `${traceId} ${index}`));
  const measures: StepMeasures[] = [];
  for (const traceId of new Set(invocations.map((one) => one.traceId))) {
    const run = await tracker.find(traceId);
    if (run === undefined) continue;
    for (const command of await readMeasures(reader, run, witness)) {
      if (own.has(`${traceId} ${command.invocation.index}`)) measures.push({ traceId, command });
    }
  }
  return measures;
}
