import type { SpanId } from '../../record/ids.js';
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
   * Spans in the place of those that never came, and those that never ended. What is remembered stays as it was: the run
   * may go on.
   * @param latestTimeUnixNano latest time of any record of the run.
   */
  spans(run: RunSummary, latestTimeUnixNano: UnixNano): readonly MappedSpan[] {
    const { switches, tree, redactor, resources } = this.memory;
    const buffer = this.memory.buffer.copy();
    const unended = unendedOf(run);
    const { missing, open, synthetic } = this.find(run);
    const spans = missing.map((one) => this.missingSpan(one, run, buffer));
    adoptOrphanEvents(tree, buffer, unended);
    const invocations = new Map(unended.map((one) => [one.spanId, one] as const));
    for (const { record, resource } of open) {
      const invocation = invocations.get(record.spanId);
      const end = invocation?.endTimeUnixNano ?? latestTimeUnixNano;
      spans.push(this.unfinishedSpan(record, { resource, end, invocation, buffer }));
    }
    if (!switches['synthetic-invocations']) return spans;
    for (const [spanId, invocation] of synthetic) {
      const resource = resources.map(invocation.resource);
      const source = { redactor, resource, events: buffer.take(spanId) };
      spans.push(syntheticInvocationSpan(run.traceId, spanId, invocation, source));
    }
    return spans;
  }

  /** Ids of those spans. */
  spanIds(run: RunSummary): readonly SpanId[] {
    const { missing, open, synthetic } = this.find(run);
    return [
      ...missing.map(({ spanId }) => spanId),
      ...open.map(({ record }) => record.spanId),
      ...(this.memory.switches['synthetic-invocations'] ? synthetic.map(([spanId]) => spanId) : []),
    ];
  }

  private find(run: RunSummary) {
    const { switches, tree, missingParents } = this.memory;
    const invocationIds = new Set(run.invocations.map((one) => one.spanId));
    const missing = switches['synthetic-parents']
      ? missingParents.list().filter((one) => !invocationIds.has(one.spanId))
      : [];
    const started: { readonly record: SpanStart; readonly resource: Resource }[] = [];
    for (const start of tree.openStarts()) {
      const record = start.readRecord();
      if (record !== undefined) started.push({ record, resource: start.resource });
    }
    const startedIds = new Set(started.map(({ record }) => record.spanId));
    const synthetic = unendedOf(run).flatMap((one) => {
      const { spanId } = one;
      return spanId === null || startedIds.has(spanId) || tree.isSent(spanId) ? [] : [[spanId, one] as const];
    });
    return { missing, open: switches['unfinished-spans'] ? started : [], synthetic };
  }

  private missingSpan(one: MissingParent, run: RunSummary, buffer: EventBuffer): MappedSpan {
    const { switches, nodes, resources } = this.memory;
    const uniqueId = switches['true-cancellations'] ? one.uniqueId : undefined;
    return missingSpan(run.traceId, one, {
      invocationSpanId: invocationAround(one, run.invocations)?.spanId ?? null,
      isCanceled: uniqueId !== undefined && nodes.interruptionOfPhase(uniqueId, one.spanId) !== 'none',
      resource: resources.map(one.resource),
      events: buffer.take(one.spanId),
    });
  }

  private unfinishedSpan(
    record: SpanStart,
    {
      resource,
      end,
      invocation,
      buffer,
    }: {
      readonly resource: Resource;
      readonly end: UnixNano;
      readonly invocation: InvocationSummary | undefined;
      readonly buffer: EventBuffer;
    },
  ): MappedSpan {
    const { redactor, spanMapper } = this.memory;
    const told = invocation === undefined ? undefined : toldInvocation(invocation, redactor);
    return spanMapper.unfinished(record, end, resource, buffer.take(record.spanId), told);
  }
}

/**
 * Events of spans that never came go to the invocation at whose time they happened, as it closes. (An interrupted node's
 * phase never ends, so over OTLP it never comes, but the message that says why does.)
 */
export function adoptOrphanEvents(
  tree: SpanTree,
  buffer: EventBuffer,
  invocations: readonly Pick<InvocationSummary | SpanEnd, 'spanId' | 'startTimeUnixNano' | 'endTimeUnixNano'>[],
): void {
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

/** Invocations whose end never came. */
function unendedOf(run: RunSummary): readonly InvocationSummary[] {
  return run.invocations.filter((one) => one.spanId !== null && !one.hasInvocationEnd);
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
