import type { SpanId } from '../../record/ids.js';
import type { SpanEnd, SpanStart } from '../../record/telemetry-record.js';
import type { LoggedRecord } from '../../sink/record-log.js';
import { BoundedMap } from './bounded-map.js';
import { EVENT_TYPE } from './event-types.js';

/** A span's start in the record log. */
export interface LoggedStart extends LoggedRecord {
  readonly record: SpanStart;
}

/** What is remembered of a span. `open` has begun, `held` has ended and waits for events, `sent` was handed out. */
interface RememberedSpan {
  readonly parentSpanId: SpanId | null;
  readonly isInvocation: boolean;
  /** Whether what is above it is another service's. */
  readonly isRoot: boolean;
  /** The node's own NodeProcessed span, which a NodeEvaluated span links to. */
  processedSpanId: SpanId | undefined;
  state: 'open' | 'held' | 'sent';
  start: LoggedStart | undefined;
}

/** A run's spans by id: who is whose parent and what was sent. Remembers the latest ones, see `maxRememberedSpans`. */
export class SpanTree {
  private readonly spans: BoundedMap<SpanId, RememberedSpan>;

  constructor(maxRememberedSpans: number) {
    this.spans = new BoundedMap(maxRememberedSpans);
  }

  /** A start was read; ignored when the span is known already. */
  begin(logged: LoggedRecord, record: SpanStart): void {
    if (this.spans.has(record.spanId)) return;
    this.spans.set(record.spanId, { ...remembered(record), state: 'open', start: { ...logged, record } });
  }

  /** An end was read. @returns false when the span had ended before. */
  end(record: SpanEnd): boolean {
    const known = this.spans.get(record.spanId);
    if (known === undefined) {
      this.spans.set(record.spanId, { ...remembered(record), state: 'held', start: undefined });
      return true;
    }
    if (known.state !== 'open') return false;
    known.state = 'held';
    known.start = undefined;
    known.processedSpanId ??= processedSpanOf(record);
    return true;
  }

  sent(spanId: SpanId): void {
    const known = this.spans.get(spanId);
    if (known !== undefined) known.state = 'sent';
  }

  knows(spanId: SpanId): boolean {
    return this.spans.has(spanId);
  }

  isSent(spanId: SpanId): boolean {
    return this.spans.get(spanId)?.state === 'sent';
  }

  /** The nearest ancestor that was not sent yet; over OTLP that is often one that did not come yet. */
  nearestUnsentAncestor(spanId: SpanId): SpanId | undefined {
    let highest = this.spans.get(spanId);
    for (const [ancestorId, ancestor] of this.ancestors(spanId)) {
      if (ancestor.state !== 'sent') return ancestorId;
      highest = ancestor;
    }
    const above = highest?.isRoot === false ? highest.parentSpanId : null;
    return above === null || this.isSent(above) ? undefined : above;
  }

  /** The NodeProcessed span of the node that a span works for, as far as its known ancestors tell. */
  processedSpanOf(spanId: SpanId): SpanId | undefined {
    const own = this.spans.get(spanId)?.processedSpanId;
    if (own !== undefined) return own;
    for (const [, ancestor] of this.ancestors(spanId)) {
      if (ancestor.processedSpanId !== undefined) return ancestor.processedSpanId;
    }
    return undefined;
  }

  /** The invocation span above a span, as far as its known ancestors tell. */
  invocationOf(spanId: SpanId): SpanId | undefined {
    for (const [ancestorId, ancestor] of this.ancestors(spanId)) if (ancestor.isInvocation) return ancestorId;
    return undefined;
  }

  /** Starts of spans that have not ended, in the order of the log. */
  openStarts(): readonly LoggedStart[] {
    const starts: LoggedStart[] = [];
    for (const span of this.spans.values()) if (span.state === 'open' && span.start) starts.push(span.start);
    return starts;
  }

  private *ancestors(spanId: SpanId): Generator<readonly [SpanId, RememberedSpan]> {
    let parentId = this.spans.get(spanId)?.parentSpanId ?? null;
    for (let depth = 0; parentId !== null && depth < MAX_DEPTH; depth++) {
      const parent = this.spans.get(parentId);
      if (parent === undefined) return;
      yield [parentId, parent];
      parentId = parent.parentSpanId;
    }
  }
}

/** Deepest chain of ancestors that is climbed, so that a loop of parents ends. */
const MAX_DEPTH = 256;

function remembered(
  record: SpanStart | SpanEnd,
): Pick<RememberedSpan, 'parentSpanId' | 'isInvocation' | 'isRoot' | 'processedSpanId'> {
  const isInvocation = record.eventType === EVENT_TYPE.invocation;
  return {
    parentSpanId: record.parentSpanId,
    isInvocation,
    isRoot: isInvocation || record.eventType === EVENT_TYPE.process,
    processedSpanId: processedSpanOf(record),
  };
}

/** A NodeProcessed span is its own; a NodeEvaluated span links to it first (seen in every run of both engine builds). */
function processedSpanOf(record: SpanStart | SpanEnd): SpanId | undefined {
  if (record.eventType === EVENT_TYPE.nodeProcessed) return record.spanId;
  return record.eventType === EVENT_TYPE.nodeEvaluated ? record.links?.[0]?.spanId : undefined;
}
