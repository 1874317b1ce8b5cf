import type { SpanId } from '../../record/ids.js';
import { ownText } from '../../record/own-text.js';
import { ERROR } from '../../record/severity.js';
import type { LogRecord } from '../../record/telemetry-record.js';
import type { UnixNano } from '../../record/unix-nano.js';
import { type Interruption, type InterruptionSign, interruptionOf } from '../../run/node-outcome.js';
import { BoundedMap } from './bounded-map.js';
import { EVENT_TYPE } from './event-types.js';
import type { SpanSight } from './span-sight.js';
import type { SpanTree } from './span-tree.js';

/** An error that was logged for a node, or that its query ended with. */
export interface NodeError {
  readonly spanId: SpanId | null;
  readonly timeUnixNano: UnixNano;
  readonly message: string;
  /** The engine's name of the error, for example `DbDriverFailed`. */
  readonly codeName: string | undefined;
}

interface Cancellation {
  readonly kind: Interruption['kind'];
  readonly spanId: SpanId | null;
  readonly timeUnixNano: UnixNano;
}

interface QueryTime {
  readonly spanId: SpanId;
  readonly startTimeUnixNano: UnixNano;
  readonly durationNanos: bigint;
}

interface NodeFacts {
  readonly uniqueId: string;
  // Most nodes have nothing in most of these lists, and then share one empty list.
  processedSpans: readonly { readonly spanId: SpanId; readonly parentSpanId: SpanId | null }[];
  errors: readonly NodeError[];
  cancellations: readonly Cancellation[];
  queries: QueryTime[] | undefined;
  areQueriesComplete: boolean;
  database: string | undefined;
  schema: string | undefined;
}

/** How many of a kind are remembered for one node, the latest ones; of queries none beyond, and then no sum is told. */
const MAX_FACTS = 16;
const MAX_ERRORS = 4;
const MAX_QUERIES = 1000;

/** Time interval of a span. */
export interface Interval {
  readonly spanId: SpanId;
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
}

/**
 * What a run's records say about its nodes, by unique_id. Two commands in one trace may run the same node at the same
 * time: facts are then told apart by their spans' ancestors, and by time where those are not known.
 */
export class NodeIndex {
  private readonly nodes: BoundedMap<string, NodeFacts>;
  /** The node that was seen last: the next record is often of the same. It is in `nodes`, as nothing was added since. */
  private latest: NodeFacts | undefined;
  /** Whether any node was interrupted: in most runs none is, and none need be looked up. */
  private hasCancellations = false;
  private hasMessageOfInterruption = false;

  constructor(
    maxNodes: number,
    private readonly tree: SpanTree,
  ) {
    this.nodes = new BoundedMap(maxNodes);
  }

  seeSpan(span: SpanSight): void {
    if (!NODE_EVENTS.has(span.eventType)) return;
    const uniqueId = span.text('unique_id');
    if (uniqueId === undefined) return;
    const facts = this.factsOf(uniqueId, span.hasOwnTexts);
    if (span.eventType === EVENT_TYPE.queryExecuted) {
      if (span.isEnd) this.seeQuery(facts, span);
      return;
    }
    facts.database ??= span.text('database');
    facts.schema ??= span.text('schema');
    if (span.eventType !== EVENT_TYPE.nodeProcessed) return;
    const { spanId, parentSpanId } = span;
    if (facts.processedSpans.some((known) => known.spanId === spanId)) return;
    facts.processedSpans = remember(facts.processedSpans, { spanId, parentSpanId });
  }

  seeLog(record: LogRecord): void {
    if (record.severityNumber < ERROR.number) return;
    const interruption = interruptionOf(record);
    this.hasMessageOfInterruption ||= interruption !== undefined;
    const uniqueId = record.attributes.text('unique_id');
    if (uniqueId === undefined) return;
    const facts = this.factsOf(uniqueId);
    const { spanId, timeUnixNano } = record;
    if (interruption !== undefined) {
      this.cancel(facts, { kind: interruption.kind, spanId, timeUnixNano });
    }
    const error = { spanId, timeUnixNano, message: record.body, codeName: record.attributes.text('code_name') };
    facts.errors = remember(facts.errors, error, MAX_ERRORS);
  }

  /** The last error of a node inside a span of it: one logged in that very span, else one of the node. */
  errorOf(uniqueId: string, span: Interval): NodeError | undefined {
    const errors = this.nodes.get(uniqueId)?.errors ?? [];
    return (
      errors.findLast((error) => error.spanId === span.spanId) ?? errors.findLast((error) => this.belongs(error, span))
    );
  }

  /** Whether the engine has said in a message that it was interrupted. */
  get wasInterrupted(): boolean {
    return this.hasMessageOfInterruption;
  }

  /** Whether anything says that a node was interrupted, at whatever time. */
  hasInterruption(uniqueId: string): boolean {
    return this.hasCancellations && (this.nodes.get(uniqueId)?.cancellations.length ?? 0) > 0;
  }

  /** The strongest sign that a node was interrupted during its own span (NodeProcessed). */
  interruptionOfNode(uniqueId: string, span: Interval): InterruptionSign {
    return this.strongestSign(uniqueId, (fact) => this.belongs(fact, span));
  }

  /** The strongest sign that one phase of a node (NodeEvaluated) was interrupted: told in that very span, or by a query of it. */
  interruptionOfPhase(uniqueId: string, spanId: SpanId): InterruptionSign {
    return this.strongestSign(uniqueId, (fact) => fact.spanId === spanId);
  }

  /** The NodeProcessed span of another node, of the same invocation where it is known. */
  processedSpanOf(uniqueId: string, ofSpan: { spanId: SpanId; parentSpanId: SpanId | null }): SpanId | undefined {
    const candidates = this.nodes.get(uniqueId)?.processedSpans ?? [];
    if (candidates.length <= 1) return candidates[0]?.spanId;
    const own = this.tree.processedSpanOf(ofSpan.spanId);
    const invocation = (own === undefined ? undefined : this.tree.invocationOf(own)) ?? ofSpan.parentSpanId;
    return (candidates.find((span) => span.parentSpanId === invocation) ?? candidates.at(-1))?.spanId;
  }

  /** Number and time of a node's queries during its span; `undefined` where none, or too many, were seen. */
  queryTimeOf(uniqueId: string, span: Interval): { readonly count: number; readonly nanos: bigint } | undefined {
    const facts = this.nodes.get(uniqueId);
    if (facts?.queries === undefined || !facts.areQueriesComplete) return undefined;
    // Read once: a line's are made anew each time.
    const { spanId, startTimeUnixNano, endTimeUnixNano } = span;
    const interval = { spanId, startTimeUnixNano, endTimeUnixNano };
    let nanos = 0n;
    let count = 0;
    for (const query of facts.queries) {
      if (!this.belongs({ spanId: query.spanId, timeUnixNano: query.startTimeUnixNano }, interval)) continue;
      nanos += query.durationNanos;
      count++;
    }
    return count === 0 ? undefined : { count, nanos };
  }

  /** Database and schema of a node's relation. */
  relationOf(
    uniqueId: string,
  ): { readonly database: string | undefined; readonly schema: string | undefined } | undefined {
    return this.nodes.get(uniqueId);
  }

  private strongestSign(uniqueId: string, matches: (fact: Cancellation) => boolean): InterruptionSign {
    let sign: InterruptionSign = 'none';
    for (const fact of this.nodes.get(uniqueId)?.cancellations ?? []) {
      if (!matches(fact)) continue;
      if (fact.kind !== 'query') return 'hard';
      sign = 'query';
    }
    return sign;
  }

  private belongs(fact: { spanId: SpanId | null; timeUnixNano: UnixNano }, span: Interval): boolean {
    const own = this.tree.processedSpanOf(span.spanId);
    const owner = fact.spanId === null ? undefined : this.tree.processedSpanOf(fact.spanId);
    if (own !== undefined && owner !== undefined && own !== owner) return false;
    return fact.timeUnixNano >= span.startTimeUnixNano && fact.timeUnixNano <= span.endTimeUnixNano;
  }

  private factsOf(uniqueId: string, isOwn = false): NodeFacts {
    if (this.latest?.uniqueId === uniqueId) return this.latest;
    this.latest = this.nodes.get(uniqueId) ?? this.add(isOwn ? uniqueId : ownText(uniqueId));
    return this.latest;
  }

  private add(uniqueId: string): NodeFacts {
    const facts: NodeFacts = {
      uniqueId,
      processedSpans: NONE,
      errors: NONE,
      cancellations: NONE,
      queries: undefined,
      areQueriesComplete: true,
      database: undefined,
      schema: undefined,
    };
    this.nodes.set(uniqueId, facts);
    return facts;
  }

  private seeQuery(facts: NodeFacts, query: SpanSight): void {
    const { startTimeUnixNano, endTimeUnixNano } = query;
    facts.queries ??= [];
    if (facts.queries.length >= MAX_QUERIES) facts.areQueriesComplete = false;
    else {
      const durationNanos = endTimeUnixNano - startTimeUnixNano;
      facts.queries.push({ spanId: query.spanId, startTimeUnixNano, durationNanos });
    }
    const interruption = query.interruption();
    if (interruption === undefined) return;
    const { parentSpanId: spanId } = query;
    this.cancel(facts, { kind: interruption.kind, spanId, timeUnixNano: endTimeUnixNano });
  }

  private cancel(facts: NodeFacts, cancellation: Cancellation): void {
    facts.cancellations = remember(facts.cancellations, cancellation);
    this.hasCancellations = true;
  }
}

const NODE_EVENTS: ReadonlySet<string> = new Set([
  EVENT_TYPE.nodeProcessed,
  EVENT_TYPE.nodeEvaluated,
  EVENT_TYPE.queryExecuted,
]);

function remember<T>(list: readonly T[], item: T, maxCount = MAX_FACTS): readonly T[] {
  return [...list, item].slice(-maxCount);
}

const NONE: readonly never[] = [];
