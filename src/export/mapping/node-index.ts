import { ERROR } from '../../record/severity.js';
import type { Interruption, InterruptionSign } from '../../run/node-outcome.js';
import { EVENT_TYPE } from './exported-names.js';
import {
  type IdHalves,
  type Interval,
  isBefore,
  isSameId,
  type MappedRecord,
  type PlainRecord,
} from './mapped-record.js';
import type { SpanTree } from './span-tree.js';

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

/** Numbers of a query in a list of them, one behind the other: its span, when it began, and how long it took. */
const QUERY = 5;
/** Numbers of a NodeProcessed span in such a list: its id and that of its parent. */
const PROCESSED = 4;

interface NodeFacts {
  readonly uniqueId: string;
  // Most nodes have nothing in most of these lists, and then share one empty list. Thousands of nodes have the lists of numbers: objects
  // in them are what V8 would move each time that it collects garbage.
  /** See `PROCESSED`. */
  processedSpans: readonly number[];
  errors: readonly NodeError[];
  cancellations: readonly Cancellation[];
  /** See `QUERY`. */
  queries: number[] | undefined;
  areQueriesComplete: boolean;
  database: string | undefined;
  schema: string | undefined;
}

interface QueryTime {
  count: number;
  nanos: number;
}

/** Database and schema, and both together. */
interface Namespace {
  readonly database: string | undefined;
  readonly schema: string | undefined;
  readonly text: string;
}

/** How many of a kind are remembered for one node, the latest ones; of queries none beyond, and then no sum is given. */
const MAX_FACTS = 16;
const MAX_ERRORS = 4;
const MAX_QUERIES = 1000;

/**
 * What a run's records say about its nodes, by unique_id. Two commands in one trace may run the same node at the same
 * time: facts are then distinguished by their spans' ancestors, and by time where those are not known.
 */
export class NodeIndex {
  private readonly nodes = new Map<string, NodeFacts>();
  /** Stands at the oldest node once there are too many: a new one each time would pass over the entries of all that went. */
  private oldest: Iterator<string> | undefined;
  /** The node that was seen last: the next record is often of the same. It is in `nodes`, as nothing was added since. */
  private latest: NodeFacts | undefined;
  /** Whether any node was interrupted: in most runs none is, and none need be looked up. */
  private hasCancellations = false;
  private hasMessageOfInterruption = false;
  /** What was asked for last: most nodes have the same. */
  private namespace: Namespace = { database: undefined, schema: undefined, text: '' };
  /** One object for all that `queryTimeOf` returns. */
  private readonly queryTime: QueryTime = { count: 0, nanos: 0 };

  constructor(
    private readonly maxNodes: number,
    private readonly tree: SpanTree,
  ) {}

  seeSpan(span: MappedRecord): void {
    const { eventType } = span;
    const isQuery = eventType === EVENT_TYPE.queryExecuted;
    const isProcessed = eventType === EVENT_TYPE.nodeProcessed;
    if (!isQuery && !isProcessed && eventType !== EVENT_TYPE.nodeEvaluated) return;
    const { uniqueId } = span;
    if (uniqueId === undefined) return;
    const facts = this.factsOf(uniqueId);
    if (isQuery) {
      if (span.isEnd) this.seeQuery(facts, span);
      return;
    }
    if (facts.database === undefined || facts.schema === undefined) {
      facts.database ??= span.text('database');
      facts.schema ??= span.text('schema');
    }
    if (!isProcessed) return;
    const { spanHigh, spanLow, parentHigh, parentLow } = span;
    const known = facts.processedSpans;
    for (let at = 0; at < known.length; at += PROCESSED) {
      if (known[at] === spanHigh && known[at + 1] === spanLow) return;
    }
    const seen = [spanHigh, spanLow, parentHigh, parentLow];
    facts.processedSpans = known.length === 0 ? seen : [...known, ...seen].slice(-MAX_FACTS * PROCESSED);
  }

  seeLog(record: PlainRecord): void {
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
    const nodeIndex = this.tree.nodeIndexOf(span.spanHigh, span.spanLow);
    return (
      errors.findLast((error) => isOf(error, span)) ?? errors.findLast((error) => this.isFactOf(error, span, nodeIndex))
    );
  }

  /** Returns whether a message of the engine reports that it was interrupted. */
  get wasInterrupted(): boolean {
    return this.hasMessageOfInterruption;
  }

  /** Returns whether anything says that a node was interrupted, at whatever time. */
  hasInterruption(uniqueId: string): boolean {
    return this.hasCancellations && (this.nodes.get(uniqueId)?.cancellations.length ?? 0) > 0;
  }

  /** The strongest sign that a node was interrupted during its nodeIndex span (NodeProcessed). */
  interruptionOfNode(uniqueId: string, span: Interval): InterruptionSign {
    const nodeIndex = this.tree.nodeIndexOf(span.spanHigh, span.spanLow);
    return this.strongestSign(uniqueId, (fact) => this.isFactOf(fact, span, nodeIndex));
  }

  /** The strongest sign that one phase of a node (NodeEvaluated) was interrupted: in that very span, or in a query of it. */
  interruptionOfPhase(uniqueId: string, span: Pick<Interval, 'spanHigh' | 'spanLow'>): InterruptionSign {
    return this.strongestSign(uniqueId, (fact) => isOf(fact, span));
  }

  /** Returns whether a NodeProcessed span of a node was seen. */
  hasProcessedSpan(uniqueId: string): boolean {
    return (this.nodes.get(uniqueId)?.processedSpans.length ?? 0) > 0;
  }

  /** The NodeProcessed span of another node, of the same invocation where it is known. */
  processedSpanOf(uniqueId: string, ofSpan: MappedRecord): IdHalves | undefined {
    const all = this.nodes.get(uniqueId)?.processedSpans ?? NONE;
    if (all.length === 0) return undefined;
    const last = all.length - PROCESSED;
    if (last === 0) return idAt(all, 0);
    const nodeIndex = this.tree.processedSpanOf(ofSpan.spanHigh, ofSpan.spanLow);
    const known = nodeIndex === undefined ? undefined : this.tree.invocationOf(nodeIndex[0], nodeIndex[1]);
    const invocation = known ?? [ofSpan.parentHigh, ofSpan.parentLow];
    for (let at = 0; at < last; at += PROCESSED) if (isSameId(idAt(all, at + 2), invocation)) return idAt(all, at);
    return idAt(all, last);
  }

  /** Number and time of a node's queries during its span, good until it is asked again; `undefined` where none, or too many, were seen. */
  queryTimeOf(uniqueId: string, span: Interval): Readonly<QueryTime> | undefined {
    const facts = this.nodes.get(uniqueId);
    if (facts?.queries === undefined || !facts.areQueriesComplete) return undefined;
    const nodeIndex = this.tree.nodeIndexOf(span.spanHigh, span.spanLow);
    let nanos = 0;
    let count = 0;
    const { queries } = facts;
    for (let at = 0; at < queries.length; at += QUERY) {
      const high = queries[at] as number;
      const low = queries[at + 1] as number;
      if (!this.belongs(high, low, queries[at + 2] as number, queries[at + 3] as number, span, nodeIndex)) continue;
      nanos += queries[at + 4] as number;
      count++;
    }
    if (count === 0) return undefined;
    const { queryTime } = this;
    queryTime.count = count;
    queryTime.nanos = nanos;
    return queryTime;
  }

  /** Database and schema of a node's relation, as `db.namespace` has them; `undefined` where neither is known. */
  namespaceOf(uniqueId: string): string | undefined {
    const facts = this.nodes.get(uniqueId);
    if (facts === undefined) return undefined;
    const { database, schema } = facts;
    if (database !== this.namespace.database || schema !== this.namespace.schema) {
      const text = database && schema ? `${database}|${schema}` : (database ?? '') + (schema ?? '');
      this.namespace = { database, schema, text };
    }
    const { text } = this.namespace;
    return text === '' ? undefined : text;
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

  /** @param nodeIndex the index of the interval's node, where it is known */
  private isFactOf(
    { spanHigh, spanLow, seconds, nanos }: Fact,
    span: Interval,
    nodeIndex: number | undefined,
  ): boolean {
    return this.belongs(spanHigh, spanLow, seconds, nanos, span, nodeIndex);
  }

  private belongs(
    high: number,
    low: number,
    seconds: number,
    nanos: number,
    span: Interval,
    nodeIndex: number | undefined,
  ): boolean {
    if (isBefore(seconds, nanos, span.startSeconds, span.startNanos)) return false;
    if (isBefore(span.endSeconds, span.endNanos, seconds, nanos)) return false;
    if (nodeIndex === undefined || (high === 0 && low === 0)) return true;
    const owner = this.tree.nodeIndexOf(high, low);
    return owner === undefined || this.tree.isSameNode(nodeIndex, owner);
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
    };
    this.nodes.set(uniqueId, facts);
    if (this.nodes.size > this.maxNodes) {
      this.oldest ??= this.nodes.keys();
      this.nodes.delete(this.oldest.next().value);
    }
    return facts;
  }

  private seeQuery(facts: NodeFacts, query: MappedRecord): void {
    const { spanHigh, spanLow, startSeconds, startNanos, endSeconds, endNanos } = query;
    const durationNanos = (endSeconds - startSeconds) * NANOS_PER_SECOND + endNanos - startNanos;
    if (facts.queries === undefined) facts.queries = [spanHigh, spanLow, startSeconds, startNanos, durationNanos];
    else if (facts.queries.length >= MAX_QUERIES * QUERY) facts.areQueriesComplete = false;
    else facts.queries.push(spanHigh, spanLow, startSeconds, startNanos, durationNanos);
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

function remember<T>(list: readonly T[], item: T, maxCount = MAX_FACTS): readonly T[] {
  return [...list, item].slice(-maxCount);
}

const NONE: readonly never[] = [];
const NANOS_PER_SECOND = 1_000_000_000;

/** Returns whether a fact is of that very span. */
function isOf(fact: Fact, { spanHigh, spanLow }: Pick<Interval, 'spanHigh' | 'spanLow'>): boolean {
  return fact.spanHigh === spanHigh && fact.spanLow === spanLow;
}

function idAt(numbers: readonly number[], at: number): IdHalves {
  return [numbers[at] as number, numbers[at + 1] as number];
}
