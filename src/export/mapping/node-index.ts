import { ERROR } from '../../record/severity.js';
import type { Interruption, InterruptionSign } from '../../run/node-outcome.js';
import { EVENT_TYPE } from './event-types.js';
import { type IdHalves, type Interval, isBefore, type SpanTree } from './span-tree.js';

/** An error that was logged for a node, or that its query ended with. */
export interface NodeError extends Fact {
  readonly message: string;
  /** The engine's name of the error, for example `DbDriverFailed`. */
  readonly codeName: string | undefined;
}

/** Something that happened in a span at a time; both halves of the id are 0 where the span is not known. */
interface Fact {
  readonly spanHigh: number;
  readonly spanLow: number;
  readonly seconds: number;
  readonly nanos: number;
}

interface Cancellation extends Fact {
  readonly kind: Interruption['kind'];
}

/** A query, at the time of its start. */
interface Query extends Fact {
  readonly durationNanos: number;
}

interface NodeFacts {
  readonly uniqueId: string;
  // Most nodes have nothing in most of these lists, and then share one empty list.
  processedSpans: readonly { readonly id: IdHalves; readonly parentId: IdHalves }[];
  errors: readonly NodeError[];
  cancellations: readonly Cancellation[];
  queries: Query[] | undefined;
  areQueriesComplete: boolean;
  database: string | undefined;
  schema: string | undefined;
  /** Both together, once they were asked for. */
  namespace: string | undefined;
}

/** How many of a kind are remembered for one node, the latest ones; of queries none beyond, and then no sum is given. */
const MAX_FACTS = 16;
const MAX_ERRORS = 4;
const MAX_QUERIES = 1000;

/** What the index takes of a span. */
interface SeenNodeSpan extends Interval {
  readonly eventType: string;
  readonly isEnd: boolean;
  readonly parentHigh: number;
  readonly parentLow: number;
  readonly uniqueId: string | undefined;
  text(name: string): string | undefined;
  /** Whether it says that a node, or the command, was interrupted. */
  interruption(): Interruption | undefined;
}

/** What it takes of a log record, whose time is its start. */
interface SeenLog extends SeenNodeSpan {
  readonly severityNumber: number;
  readonly body: string;
}

/**
 * What a run's records say about its nodes, by unique_id. Two commands in one trace may run the same node at the same
 * time: facts are then distinguished by their spans' ancestors, and by time where those are not known.
 */
export class NodeIndex {
  private readonly nodes = new Map<string, NodeFacts>();
  /** Stands at the oldest node once there are too many: a new one each time would pass over the places of all that went. */
  private oldest: Iterator<string> | undefined;
  /** The node that was seen last: the next record is often of the same. It is in `nodes`, as nothing was added since. */
  private latest: NodeFacts | undefined;
  /** Whether any node was interrupted: in most runs none is, and none need be looked up. */
  private hasCancellations = false;
  private hasMessageOfInterruption = false;

  constructor(
    private readonly maxNodes: number,
    private readonly tree: SpanTree,
  ) {}

  seeSpan(span: SeenNodeSpan): void {
    if (!NODE_EVENTS.has(span.eventType)) return;
    const { uniqueId } = span;
    if (uniqueId === undefined) return;
    const facts = this.factsOf(uniqueId);
    if (span.eventType === EVENT_TYPE.queryExecuted) {
      if (span.isEnd) this.seeQuery(facts, span);
      return;
    }
    if (facts.database === undefined || facts.schema === undefined) {
      facts.database ??= span.text('database');
      facts.schema ??= span.text('schema');
      facts.namespace = undefined;
    }
    if (span.eventType !== EVENT_TYPE.nodeProcessed) return;
    const { spanHigh, spanLow, parentHigh, parentLow } = span;
    for (const { id } of facts.processedSpans) if (id[0] === spanHigh && id[1] === spanLow) return;
    const seen = { id: [spanHigh, spanLow], parentId: [parentHigh, parentLow] } as const;
    facts.processedSpans = facts.processedSpans.length === 0 ? [seen] : remember(facts.processedSpans, seen);
  }

  seeLog(record: SeenLog): void {
    if (record.severityNumber < ERROR.number) return;
    const interruption = record.interruption();
    this.hasMessageOfInterruption ||= interruption !== undefined;
    const { uniqueId } = record;
    if (uniqueId === undefined) return;
    const facts = this.factsOf(uniqueId);
    const { spanHigh, spanLow, startSeconds: seconds, startNanos: nanos } = record;
    const fact = { spanHigh, spanLow, seconds, nanos };
    if (interruption !== undefined) this.cancel(facts, { ...fact, kind: interruption.kind });
    const error = { ...fact, message: record.body, codeName: record.text('code_name') };
    facts.errors = remember(facts.errors, error, MAX_ERRORS);
  }

  /** The last error of a node inside a span of it: one logged in that very span, else one of the node. */
  errorOf(uniqueId: string, span: Interval): NodeError | undefined {
    const errors = this.nodes.get(uniqueId)?.errors ?? NONE;
    if (errors.length === 0) return undefined;
    const own = this.tree.processedSpanOf(span.spanHigh, span.spanLow);
    return errors.findLast((error) => isOf(error, span)) ?? errors.findLast((error) => this.belongs(error, span, own));
  }

  /** Whether a message of the engine reports that it was interrupted. */
  get wasInterrupted(): boolean {
    return this.hasMessageOfInterruption;
  }

  /** Whether anything says that a node was interrupted, at whatever time. */
  hasInterruption(uniqueId: string): boolean {
    return this.hasCancellations && (this.nodes.get(uniqueId)?.cancellations.length ?? 0) > 0;
  }

  /** The strongest sign that a node was interrupted during its own span (NodeProcessed). */
  interruptionOfNode(uniqueId: string, span: Interval): InterruptionSign {
    const own = this.tree.processedSpanOf(span.spanHigh, span.spanLow);
    return this.strongestSign(uniqueId, (fact) => this.belongs(fact, span, own));
  }

  /** The strongest sign that one phase of a node (NodeEvaluated) was interrupted: in that very span, or in a query of it. */
  interruptionOfPhase(uniqueId: string, span: Pick<Interval, 'spanHigh' | 'spanLow'>): InterruptionSign {
    return this.strongestSign(uniqueId, (fact) => isOf(fact, span));
  }

  /** The NodeProcessed span of another node, of the same invocation where it is known. */
  processedSpanOf(uniqueId: string, ofSpan: SeenNodeSpan): IdHalves | undefined {
    const candidates = this.nodes.get(uniqueId)?.processedSpans ?? NONE;
    if (candidates.length <= 1) return candidates[0]?.id;
    const own = this.tree.processedSpanOf(ofSpan.spanHigh, ofSpan.spanLow);
    const known = own === undefined ? undefined : this.tree.invocationOf(own[0], own[1]);
    const invocation = known ?? [ofSpan.parentHigh, ofSpan.parentLow];
    return (candidates.find(({ parentId }) => isSame(parentId, invocation)) ?? candidates.at(-1))?.id;
  }

  /** Number and time of a node's queries during its span; `undefined` where none, or too many, were seen. */
  queryTimeOf(uniqueId: string, span: Interval): { readonly count: number; readonly nanos: number } | undefined {
    const facts = this.nodes.get(uniqueId);
    if (facts?.queries === undefined || !facts.areQueriesComplete) return undefined;
    const { spanHigh, spanLow, startSeconds, startNanos, endSeconds, endNanos } = span;
    // Read once: a line's are made anew each time.
    const interval = { spanHigh, spanLow, startSeconds, startNanos, endSeconds, endNanos };
    const own = this.tree.processedSpanOf(spanHigh, spanLow);
    let nanos = 0;
    let count = 0;
    for (const query of facts.queries) {
      if (!this.belongs(query, interval, own)) continue;
      nanos += query.durationNanos;
      count++;
    }
    return count === 0 ? undefined : { count, nanos };
  }

  /** Database and schema of a node's relation, as `db.namespace` has them; `undefined` where neither is known. */
  namespaceOf(uniqueId: string): string | undefined {
    const facts = this.nodes.get(uniqueId);
    if (facts === undefined) return undefined;
    facts.namespace ??= [facts.database, facts.schema].filter((part) => part !== undefined && part !== '').join('|');
    return facts.namespace === '' ? undefined : facts.namespace;
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

  /** @param own the node's span above the interval's, where it is known */
  private belongs(fact: Fact, span: Interval, own: IdHalves | undefined): boolean {
    const { seconds, nanos } = fact;
    if (isBefore(seconds, nanos, span.startSeconds, span.startNanos)) return false;
    if (isBefore(span.endSeconds, span.endNanos, seconds, nanos)) return false;
    if (own === undefined || (fact.spanHigh === 0 && fact.spanLow === 0)) return true;
    const owner = this.tree.processedSpanOf(fact.spanHigh, fact.spanLow);
    return owner === undefined || isSame(own, owner);
  }

  private factsOf(uniqueId: string): NodeFacts {
    if (this.latest?.uniqueId === uniqueId) return this.latest;
    this.latest = this.nodes.get(uniqueId) ?? this.add(uniqueId);
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
      namespace: undefined,
    };
    this.nodes.set(uniqueId, facts);
    if (this.nodes.size > this.maxNodes) {
      this.oldest ??= this.nodes.keys();
      this.nodes.delete(this.oldest.next().value);
    }
    return facts;
  }

  private seeQuery(facts: NodeFacts, query: SeenNodeSpan): void {
    const { spanHigh, spanLow, startSeconds, startNanos, endSeconds, endNanos } = query;
    facts.queries ??= [];
    if (facts.queries.length >= MAX_QUERIES) facts.areQueriesComplete = false;
    else {
      const durationNanos = (endSeconds - startSeconds) * NANOS_PER_SECOND + endNanos - startNanos;
      facts.queries.push({ spanHigh, spanLow, seconds: startSeconds, nanos: startNanos, durationNanos });
    }
    const interruption = query.interruption();
    if (interruption === undefined) return;
    const { parentHigh, parentLow } = query;
    this.cancel(facts, {
      spanHigh: parentHigh,
      spanLow: parentLow,
      seconds: endSeconds,
      nanos: endNanos,
      kind: interruption.kind,
    });
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
const NANOS_PER_SECOND = 1_000_000_000;

/** Whether a fact is of that very span. */
function isOf(fact: Fact, { spanHigh, spanLow }: Pick<Interval, 'spanHigh' | 'spanLow'>): boolean {
  return fact.spanHigh === spanHigh && fact.spanLow === spanLow;
}

function isSame(id: IdHalves, other: IdHalves): boolean {
  return id[0] === other[0] && id[1] === other[1];
}
