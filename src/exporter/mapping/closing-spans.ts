import type { Resource } from '../../record/resource.js';
import type { SpanEnd, SpanStart } from '../../record/telemetry-record.js';
import type { UnixNano } from '../../record/unix-nano.js';
import type { InvocationSummary, RunSummary } from '../../run/run-summary.js';
import type { Redactor } from '../redaction/redactor.js';
import type { EventBuffer, SpanEvents } from './event-buffer.js';
import { highOf, lowOf } from './id-halves.js';
import { syntheticInvocationSpan, toldInvocation } from './invocation-span.js';
import type { SpanMapper } from './map-span.js';
import type { MappedSpan } from './mapped-span.js';
import type { MappingSwitches } from './mapping-switches.js';
import type { MissingParent, MissingParents } from './missing-parents.js';
import { missingSpan } from './missing-span.js';
import { movedEvent } from './moved-event.js';
import type { NodeIndex } from './node-index.js';
import type { ResourceMap } from './resource-map.js';
import type { SpanTree } from './span-tree.js';

/** What a run remembers, as far as its end needs it. */
export interface ClosingMemory {
  readonly switches: MappingSwitches;
  readonly tree: SpanTree;
  readonly nodes: NodeIndex;
  readonly missingParents: MissingParents;
  readonly buffer: EventBuffer;
  readonly redactor: Redactor;
  readonly resources: ResourceMap;
  readonly spanMapper: SpanMapper;
}

/** Makes what closes a run's trace. */
export class ClosingSpans {
  constructor(private readonly memory: ClosingMemory) {}

  /**
   * Spans in the place of those that never came, and those that never ended.
   * @param latestTimeUnixNano latest time of any record of the run.
   */
  spans(run: RunSummary, latestTimeUnixNano: UnixNano): readonly MappedSpan[] {
    const { switches, tree, buffer, redactor, resources } = this.memory;
    const unended = run.invocations.filter((one) => one.spanId !== null && !one.hasInvocationEnd);
    const invocations = new Map(unended.map((one) => [one.spanId, one] as const));
    const spans: MappedSpan[] = [];
    if (switches['synthetic-parents']) spans.push(...this.missingSpans(run));
    this.adoptOrphanEvents(unended);
    for (const start of tree.openStarts()) {
      const record = start.readRecord();
      if (record === undefined) continue;
      const { spanId } = record;
      const invocation = invocations.get(spanId);
      invocations.delete(spanId);
      if (switches['unfinished-spans']) {
        const end = invocation?.endTimeUnixNano ?? latestTimeUnixNano;
        spans.push(this.unfinishedSpan(record, start.resource, end, invocation));
      }
    }
    for (const [spanId, invocation] of invocations) {
      if (spanId === null || tree.isSent(spanId) || !switches['synthetic-invocations']) continue;
      const resource = resources.map(invocation.resource);
      const source = { redactor, resource, events: buffer.take(spanId) };
      spans.push(syntheticInvocationSpan(run.traceId, spanId, invocation, source));
    }
    return spans;
  }

  private missingSpans(run: RunSummary): readonly MappedSpan[] {
    const { switches, missingParents, nodes, resources, buffer } = this.memory;
    const invocationIds = new Set(run.invocations.map((one) => one.spanId));
    const missing = missingParents.list().filter((one) => !invocationIds.has(one.spanId));
    return missing.map((one) => {
      const uniqueId = switches['true-cancellations'] ? one.uniqueId : undefined;
      return missingSpan(run.traceId, one, {
        invocationSpanId: invocationAround(one, run.invocations)?.spanId ?? null,
        isCanceled: uniqueId !== undefined && nodes.interruptionOfPhase(uniqueId, one.spanId) !== 'none',
        resource: resources.map(one.resource),
        events: buffer.take(one.spanId),
      });
    });
  }

  private unfinishedSpan(
    record: SpanStart,
    resource: Resource,
    endTimeUnixNano: UnixNano,
    invocation: InvocationSummary | undefined,
  ): MappedSpan {
    const { tree, buffer, redactor, spanMapper } = this.memory;
    tree.sent(highOf(record.spanId), lowOf(record.spanId));
    const told = invocation === undefined ? undefined : toldInvocation(invocation, redactor);
    return spanMapper.unfinished(record, endTimeUnixNano, resource, buffer.take(record.spanId), told);
  }

  /**
   * Events of spans that never came go to the invocation at whose time they happened, as it closes. (An interrupted node's
   * phase never ends, so over OTLP it never comes, but the message that says why does.)
   */
  adoptOrphanEvents(
    invocations: readonly Pick<InvocationSummary | SpanEnd, 'spanId' | 'startTimeUnixNano' | 'endTimeUnixNano'>[],
  ): void {
    const { tree, buffer } = this.memory;
    for (const spanId of buffer.waitingSpans()) {
      if (tree.knows(highOf(spanId), lowOf(spanId)) || invocations.some((one) => one.spanId === spanId)) continue;
      const waiting: SpanEvents = buffer.take(spanId);
      for (const one of waiting.events) {
        const adopter = invocations.find(
          (by) => one.timeUnixNano >= by.startTimeUnixNano && one.timeUnixNano <= by.endTimeUnixNano,
        );
        if (adopter?.spanId == null) buffer.add(spanId, one);
        else buffer.add(adopter.spanId, { ...one, event: movedEvent(one.event, spanId) });
      }
    }
  }
}

/** The invocation in whose time a span lies; the first one where none encloses it. */
function invocationAround(
  span: MissingParent,
  invocations: readonly InvocationSummary[],
): InvocationSummary | undefined {
  const around = invocations.find(
    (one) => one.startTimeUnixNano <= span.startTimeUnixNano && span.endTimeUnixNano <= one.endTimeUnixNano,
  );
  return around ?? invocations[0];
}
