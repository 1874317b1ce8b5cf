import type { LoggedRecord } from '../../log/record-log.js';
import { type Attributes, ownText } from '../../record/attributes.js';
import { type SpanEnd, type SpanId, type SpanStart, toUnixMs } from '../../record/telemetry-record.js';
import { enumValue, eventName, isSelected, nodeVerdictOf } from '../node-outcome.js';
import { countVerdicts, type NodeCounts, type NodeVerdict } from '../verdict.js';
import { isBad } from './execution.js';
import { labelOf } from './troubles.js';

/** How far a command that is under way has come. */
export interface ProgressView {
  /** Its phase, such as `PARSE`; `null` where nothing tells of one yet. */
  readonly phase: string | null;
  /** How long it has been in that phase, in milliseconds; `null` over OTLP, which tells of phases when they are over. */
  readonly phaseForMs: number | null;
  /** Files that were parsed. */
  readonly parsedCount: number;
  /** Nodes that it was asked for and that are done. */
  readonly doneCount: number;
  /** The same by verdict. */
  readonly counts: NodeCounts;
  /** All that it was asked for; `null` where the engine has not said it, as over OTLP. */
  readonly totalCount: number | null;
  /** Nodes with an error, and tests that failed. */
  readonly failedCount: number;
  /** The first of them. */
  readonly failed: readonly NamedNode[];
  /** What is worked on, the longest first; empty over OTLP, too. */
  readonly running: readonly RunningNode[];
  /** Nodes that have begun and wait for a connection or a thread. */
  readonly waitingCount: number;
  /** The node that ended last, and how long ago, in milliseconds. */
  readonly lastEnded: (NamedNode & { readonly agoMs: number }) | null;
  /** Whether spans are told of when they begin: not over OTLP. */
  readonly hasStarts: boolean;
  /** How long ago the first node began, in milliseconds; `null` before. */
  readonly nodesForMs: number | null;
  /** About how long it goes on, in milliseconds, at the pace so far; `null` where that says nothing yet. */
  readonly leftMs: number | null;
}

/** A node as it is called. */
export interface NamedNode {
  readonly uniqueId: string;
  /** `orders` */
  readonly name: string;
  /** `model orders` */
  readonly label: string;
}

/** A node that is worked on. */
export interface RunningNode extends NamedNode {
  readonly forMs: number;
}

/** Nodes that are done before their pace says anything. */
const MIN_DONE = 5;
/** Nodes that are remembered as done, and as running, of which a run has as many as threads; further ones are not counted. */
const MAX_DONE = 100_000;
const MAX_RUNNING = 10_000;
/** Failed nodes that are named, and phases that are open at a time. */
const MAX_FAILED = 20;
const MAX_PHASES = 32;

/** What comes of the next command of a trace, and no more of one that has ended. */
const BEGINS: ReadonlySet<string | undefined> = new Set([
  'PhaseExecuted',
  'AssetParsed',
  'NodeEvaluated',
  'NodeProcessed',
]);

/** Counts what the records of a trace say of the progress of its command, the last one where it has several, as they come. */
export class RunProgress {
  private command = new CommandProgress();

  add(records: readonly LoggedRecord[]): void {
    for (const { record } of records) {
      if (record.recordType === 'LogRecord') continue;
      if (this.command.isOver && BEGINS.has(eventName(record.eventType))) this.command = new CommandProgress();
      this.command.add(record);
    }
  }

  /** Whether the command was asked for a node, and it is done. */
  isDone(uniqueId: string): boolean {
    return this.command.done.has(uniqueId);
  }

  /** @param nowUnixMs wall-clock time, by which the engine's times are read */
  view(nowUnixMs: number): ProgressView {
    return this.command.view(nowUnixMs);
  }
}

/** What is known of one command. */
class CommandProgress {
  isOver = false;
  /** Verdicts of nodes that are done, by their unique ids. */
  readonly done = new Map<string, NodeVerdict>();
  private readonly failed = new Map<string, NamedNode>();
  private readonly running = new Map<SpanId, NamedNode & { sinceUnixMs: number; isWaiting: boolean }>();
  private readonly phases = new Map<SpanId, { readonly phase: string; readonly sinceUnixMs: number }>();
  /** That of the record that came last. */
  private phase: string | null = null;
  private parsedCount = 0;
  private totalCount: number | null = null;
  private firstStartUnixMs: number | null = null;
  private lastEnded: (NamedNode & { readonly endUnixMs: number }) | null = null;
  private hasStarts = false;
  /** The span of which the start was the last record. */
  private begun: SpanId | null = null;

  add(record: SpanStart | SpanEnd): void {
    const isEnd = record.recordType === 'SpanEnd';
    // Of a span that came over OTLP, the start is written with the end.
    this.hasStarts ||= this.begun !== null && !(isEnd && record.spanId === this.begun);
    this.begun = isEnd ? null : record.spanId;
    switch (eventName(record.eventType)) {
      case 'Invocation':
        this.isOver ||= isEnd;
        break;
      case 'PhaseExecuted':
        this.addPhase(record);
        break;
      case 'AssetParsed':
        this.phase = phaseOf(record) ?? this.phase;
        if (isEnd) this.parsedCount += 1;
        break;
      case 'NodeEvaluated':
        this.addEvaluated(record);
        break;
      case 'ConnectionLimitWait':
      case 'ThreadPoolWait':
        this.addWait(record);
        break;
      case 'NodeProcessed':
        if (isEnd) this.addProcessed(record);
        break;
      default:
    }
  }

  view(nowUnixMs: number): ProgressView {
    const since = (unixMs: number) => Math.max(0, nowUnixMs - unixMs);
    const phases = [...this.phases.values()];
    // Nodes are rendered while others run.
    const open = phases.find(({ phase }) => phase === 'RUN') ?? phases.at(-1);
    const begun = [...this.running.values()];
    const running = begun
      .filter(({ isWaiting }) => !isWaiting)
      .map((node) => ({ ...named(node), forMs: since(node.sinceUnixMs) }));
    const { lastEnded, firstStartUnixMs } = this;
    const nodesForMs = firstStartUnixMs === null ? null : since(firstStartUnixMs);
    const totalCount = this.totalCount === null ? null : Math.max(this.totalCount, this.done.size);
    return {
      phase: open?.phase ?? this.phase,
      phaseForMs: open === undefined ? null : since(open.sinceUnixMs),
      parsedCount: this.parsedCount,
      doneCount: this.done.size,
      counts: countVerdicts([...this.done.values()].map((verdict) => ({ verdict }))),
      totalCount,
      failedCount: [...this.done.values()].filter(isBad).length,
      failed: [...this.failed.values()],
      running: running.sort((a, b) => b.forMs - a.forMs),
      waitingCount: begun.length - running.length,
      lastEnded: lastEnded && { ...named(lastEnded), agoMs: since(lastEnded.endUnixMs) },
      hasStarts: this.hasStarts,
      nodesForMs,
      leftMs: this.leftMs(totalCount, nodesForMs ?? 0),
    };
  }

  private leftMs(totalCount: number | null, elapsedMs: number): number | null {
    const doneCount = this.done.size;
    if (totalCount === null || doneCount < MIN_DONE || elapsedMs === 0) return null;
    return ((totalCount - doneCount) * elapsedMs) / doneCount;
  }

  private addPhase(record: SpanStart | SpanEnd): void {
    const phase = phaseOf(record);
    if (phase === null) return;
    if (phase === 'RUN') this.totalCount = record.attributes.integer('node_count_total') ?? this.totalCount;
    if (record.recordType === 'SpanEnd') this.phases.delete(record.spanId);
    else if (this.phases.size < MAX_PHASES) {
      this.phases.set(record.spanId, { phase, sinceUnixMs: toUnixMs(record.startTimeUnixNano) });
    }
    this.phase = phase;
  }

  private addEvaluated(record: SpanStart | SpanEnd): void {
    const phase = phaseOf(record);
    if (phase !== 'RUN') return;
    this.phase = phase;
    const startUnixMs = toUnixMs(record.startTimeUnixNano);
    this.firstStartUnixMs = Math.min(startUnixMs, this.firstStartUnixMs ?? startUnixMs);
    if (record.recordType === 'SpanEnd') this.running.delete(record.spanId);
    else if (this.running.size < MAX_RUNNING) {
      this.running.set(record.spanId, {
        ...nodeOf(record.attributes, record.spanName),
        sinceUnixMs: startUnixMs,
        isWaiting: false,
      });
    }
  }

  private addWait(record: SpanStart | SpanEnd): void {
    const node = record.parentSpanId === null ? undefined : this.running.get(record.parentSpanId);
    if (node === undefined) return;
    node.isWaiting = record.recordType === 'SpanStart';
    if (record.recordType === 'SpanEnd') node.sinceUnixMs = toUnixMs(record.endTimeUnixNano);
  }

  private addProcessed(record: SpanEnd): void {
    const { attributes, spanName, endTimeUnixNano } = record;
    const node = nodeOf(attributes, spanName);
    const verdict = nodeVerdictOf(record, 'none');
    // One that was not asked for is counted where it failed.
    if (node.uniqueId === '' || !(isSelected(record) || isBad(verdict)) || this.done.size >= MAX_DONE) return;
    this.done.set(node.uniqueId, verdict);
    if (isBad(verdict) && this.failed.size < MAX_FAILED) this.failed.set(node.uniqueId, node);
    const endUnixMs = toUnixMs(endTimeUnixNano);
    if (endUnixMs >= (this.lastEnded?.endUnixMs ?? 0)) this.lastEnded = { ...node, endUnixMs };
  }
}

function nodeOf(attributes: Attributes, spanName: string): NamedNode {
  const uniqueId = ownText(attributes.text('unique_id') ?? '');
  const name = ownText(attributes.text('name') ?? (uniqueId || spanName));
  const nodeType = enumValue(attributes.text('node_type'), 'NODE_TYPE_')?.toLowerCase() ?? null;
  return { uniqueId, name, label: uniqueId === '' ? name : labelOf({ uniqueId, name, nodeType }) };
}

function named({ uniqueId, name, label }: NamedNode): NamedNode {
  return { uniqueId, name, label };
}

function phaseOf({ attributes }: SpanStart | SpanEnd): string | null {
  return enumValue(attributes.text('phase'), 'EXECUTION_PHASE_') ?? null;
}
