import type { SpanId } from '../../record/ids.js';
import type { LogRecord, SpanEnd } from '../../record/telemetry-record.js';
import type { UnixNano } from '../../record/unix-nano.js';
import type { InvocationSummary, RunSummary } from '../../run/run-summary.js';
import type { LoggedRecord } from '../../sink/record-log.js';
import type { MappedItem } from '../mapped-item.js';
import { KnownNames } from '../redaction/known-names.js';
import { Redactor } from '../redaction/redactor.js';
import type { RunMapper } from '../run-mapper.js';
import { EventBuffer, type SpanEvents } from './event-buffer.js';
import { EVENT_TYPE } from './event-types.js';
import { syntheticInvocationSpan, toldInvocation } from './invocation-span.js';
import { learnNames } from './learn-names.js';
import { LogMapper } from './map-log.js';
import { SpanMapper } from './map-span.js';
import type { MappedSpan } from './mapped-span.js';
import { DEFAULT_MAPPING_OPTIONS, type MappingOptions } from './mapping-options.js';
import { type MissingParent, MissingParents } from './missing-parents.js';
import { missingSpan } from './missing-span.js';
import { NodeIndex } from './node-index.js';
import { ResourceMap } from './resource-map.js';
import { type LoggedStart, SpanTree } from './span-tree.js';

/** A span's end that waits for late events. */
interface HeldSpan {
  readonly logged: LoggedRecord;
  readonly record: SpanEnd;
}

/**
 * Maps a run onto OTel, see `docs/mapping.md`. What is released when depends on the records alone, not on how they are
 * cut into pushes, so that a replay gives the same items.
 */
export class OtelRunMapper implements RunMapper {
  private readonly tree: SpanTree;
  private readonly nodes: NodeIndex;
  private readonly missingParents: MissingParents;
  private readonly buffer: EventBuffer;
  private readonly redactor: Redactor;
  private readonly resources: ResourceMap;
  private readonly spanMapper: SpanMapper;
  private readonly logMapper: LogMapper;
  private readonly holdNanos: bigint;
  /** Ended spans in the order of the log; those before `heldFrom` are gone. */
  private held: HeldSpan[] = [];
  private heldFrom = 0;
  private ready: MappedItem[] = [];
  private latestTimeUnixNano: UnixNano = 0n;

  constructor(private readonly options: MappingOptions = DEFAULT_MAPPING_OPTIONS) {
    this.tree = new SpanTree(options.maxRememberedSpans);
    this.nodes = new NodeIndex(options.maxRememberedSpans, this.tree);
    this.missingParents = new MissingParents(options.maxRememberedSpans, this.tree);
    this.buffer = new EventBuffer(options.maxEventsPerSpan, options.maxWaitingEvents);
    this.redactor = new Redactor(options.redaction, new KnownNames());
    this.resources = new ResourceMap(options.resourceOverrides);
    this.spanMapper = new SpanMapper(options.switches, this.redactor, this.nodes, this.resources);
    this.logMapper = new LogMapper(options.switches, this.redactor, this.resources);
    this.holdNanos = BigInt(options.eventHoldMs) * 1_000_000n;
  }

  get heldCount(): number {
    return this.held.length - this.heldFrom;
  }

  push(records: readonly LoggedRecord[]): void {
    for (const logged of records) {
      const { record } = logged;
      learnNames(record, this.redactor);
      switch (record.recordType) {
        case 'SpanStart':
          this.advance(record.startTimeUnixNano);
          this.tree.begin(logged, record);
          this.missingParents.arrived(record.spanId);
          this.nodes.seeSpan(record);
          break;
        case 'SpanEnd':
          this.advance(record.endTimeUnixNano);
          this.pushEnd(logged, record);
          break;
        case 'LogRecord':
          this.advance(record.timeUnixNano);
          this.pushLog(logged, record);
          break;
      }
    }
  }

  take(isQuiet: boolean): readonly MappedItem[] {
    if (isQuiet) while (this.heldCount > 0) this.releaseOldest();
    const items = this.ready;
    this.ready = [];
    return items;
  }

  finish(run: RunSummary): readonly MappedItem[] {
    const items = [...this.take(true)];
    const spans = this.closingSpans(run);
    return [...items, ...spans.map((span) => ({ signal: 'traces', anchorOffset: run.logBytes, span }) as const)];
  }

  /** What closes a run's trace: spans in the place of those that never came, and those that never ended. */
  private closingSpans(run: RunSummary): readonly MappedSpan[] {
    const { switches } = this.options;
    const unended = run.invocations.filter((one) => one.spanId !== null && !one.hasInvocationEnd);
    const invocations = new Map(unended.map((one) => [one.spanId, one] as const));
    const spans: MappedSpan[] = [];
    if (switches['synthetic-parents']) spans.push(...this.missingSpans(run));
    this.adoptOrphanEvents(unended);
    for (const start of this.tree.openStarts()) {
      const { spanId } = start.record;
      const invocation = invocations.get(spanId);
      invocations.delete(spanId);
      if (switches['unfinished-spans']) spans.push(this.unfinishedSpan(start, invocation));
    }
    for (const [spanId, invocation] of invocations) {
      if (spanId === null || this.tree.isSent(spanId) || !switches['synthetic-invocations']) continue;
      const resource = this.resources.map(invocation.resource);
      const source = { redactor: this.redactor, resource, events: this.buffer.take(spanId) };
      spans.push(syntheticInvocationSpan(run.traceId, spanId, invocation, source));
    }
    return spans;
  }

  private missingSpans(run: RunSummary): readonly MappedSpan[] {
    const invocationIds = new Set(run.invocations.map((one) => one.spanId));
    const missing = this.missingParents.list().filter((one) => !invocationIds.has(one.spanId));
    return missing.map((one) => {
      const uniqueId = this.options.switches['true-cancellations'] ? one.uniqueId : undefined;
      return missingSpan(run.traceId, one, {
        invocationSpanId: invocationAround(one, run.invocations)?.spanId ?? null,
        isCanceled: uniqueId !== undefined && this.nodes.interruptionOfPhase(uniqueId, one.spanId) !== 'none',
        resource: this.resources.map(one.resource),
        events: this.buffer.take(one.spanId),
      });
    });
  }

  private unfinishedSpan(start: LoggedStart, invocation: InvocationSummary | undefined): MappedSpan {
    const { spanId } = start.record;
    this.tree.sent(spanId);
    return this.spanMapper.unfinished(
      start.record,
      invocation?.endTimeUnixNano ?? this.latestTimeUnixNano,
      start.resource,
      this.buffer.take(spanId),
      invocation === undefined ? undefined : toldInvocation(invocation, this.redactor),
    );
  }

  private pushEnd(logged: LoggedRecord, record: SpanEnd): void {
    if (!this.tree.end(record)) return;
    this.nodes.seeSpan(record);
    this.missingParents.arrived(record.spanId);
    this.missingParents.seeChild(record, logged.resource);
    this.held.push({ logged, record });
    if (this.heldCount > this.options.maxHeldSpans) this.releaseOldest();
  }

  private pushLog(logged: LoggedRecord, record: LogRecord): void {
    this.nodes.seeLog(record);
    const areEvents = this.options.switches['span-events'] && record.spanId !== null;
    const areLogs = this.options.switches['log-records'];
    if (!areEvents && !areLogs) return;
    const mapped = this.logMapper.map(record, logged.resource);
    if (areLogs) this.ready.push({ signal: 'logs', anchorOffset: logged.offset, log: mapped.log });
    if (!areEvents || record.spanId === null) return;
    const target = this.tree.isSent(record.spanId) ? this.tree.nearestUnsentAncestor(record.spanId) : record.spanId;
    if (target === undefined) return;
    const event = target === record.spanId ? mapped.event : movedEvent(mapped.event, record.spanId);
    this.buffer.add(target, { event, timeUnixNano: record.timeUnixNano });
  }

  /** Time has passed in the run: what was held long enough is ready. */
  private advance(timeUnixNano: UnixNano): void {
    if (timeUnixNano <= this.latestTimeUnixNano) return;
    this.latestTimeUnixNano = timeUnixNano;
    const heldSince = timeUnixNano - this.holdNanos;
    for (let oldest = this.held[this.heldFrom]; oldest !== undefined; oldest = this.held[this.heldFrom]) {
      if (oldest.record.endTimeUnixNano >= heldSince) break;
      this.releaseOldest();
    }
  }

  private releaseOldest(): void {
    const oldest = this.held[this.heldFrom];
    if (oldest === undefined) return;
    this.heldFrom++;
    if (this.heldFrom > COMPACT_AFTER && this.heldFrom * 2 > this.held.length) {
      this.held = this.held.slice(this.heldFrom);
      this.heldFrom = 0;
    }
    const { record, logged } = oldest;
    if (record.eventType === EVENT_TYPE.invocation) this.adoptOrphanEvents([record]);
    const span = this.spanMapper.ended(record, logged.resource, this.buffer.take(record.spanId));
    this.tree.sent(record.spanId);
    this.ready.push({ signal: 'traces', anchorOffset: logged.offset, span });
  }

  /**
   * Events of spans that never came go to the invocation at whose time they happened, as it closes. (An interrupted node's
   * phase never ends, so over OTLP it never comes, but the message that says why does.)
   */
  private adoptOrphanEvents(
    invocations: readonly Pick<InvocationSummary | SpanEnd, 'spanId' | 'startTimeUnixNano' | 'endTimeUnixNano'>[],
  ): void {
    for (const spanId of this.buffer.waitingSpans()) {
      if (this.tree.knows(spanId) || invocations.some((one) => one.spanId === spanId)) continue;
      const waiting: SpanEvents = this.buffer.take(spanId);
      for (const one of waiting.events) {
        const adopter = invocations.find(
          (by) => one.timeUnixNano >= by.startTimeUnixNano && one.timeUnixNano <= by.endTimeUnixNano,
        );
        if (adopter?.spanId == null) this.buffer.add(spanId, one);
        else this.buffer.add(adopter.spanId, { ...one, event: movedEvent(one.event, spanId) });
      }
    }
  }
}

/** Handed-out spans that may stay in the list of held ones before it is shortened. */
const COMPACT_AFTER = 1024;

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

/** An event that stands on another span than it happened in. */
function movedEvent(event: SpanEvents['events'][number]['event'], spanId: SpanId): typeof event {
  return { ...event, attributes: { ...event.attributes, 'run_bridge.event.span_id': spanId } };
}
