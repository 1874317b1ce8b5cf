import { ownText } from '../../record/own-text.js';
import type { SpanEnd, SpanStart, TelemetryRecord } from '../../record/telemetry-record.js';
import { selectedNodes } from '../count-verdicts.js';
import { eventName } from '../event-name.js';
import { enumValue, hookVerdictOf, interruptionOf } from '../node-outcome.js';
import type { InvocationSummary, NodeVerdict } from '../run-summary.js';
import { withoutFrames } from '../without-frames.js';
import type { CommandMeasures } from './command-measures.js';
import { criticalPath } from './critical-path.js';
import { NodeCollector } from './node-collector.js';
import type { OtherSpan } from './other-span.js';
import { pathSteps } from './path-steps.js';
import { phaseMeasures } from './phase-measures.js';
import { runTotals } from './run-totals.js';
import { lengthSplit, NO_SHARE, type QuerySpan, shareOf, timeSplit } from './time-split.js';

/** Nodes of a command that are measured, about 1 kB each; of further ones only the number is told. */
const MAX_NODES = 100_000;
/** Hooks and phases of a command, together; further ones are passed over. */
const MAX_OTHER_SPANS = 10_000;
/** Queries of a command that are told apart, about 150 bytes each; the time of further ones falls to their nodes' work. */
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

  /** What the records came to. @param invocation the command that they are of */
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
