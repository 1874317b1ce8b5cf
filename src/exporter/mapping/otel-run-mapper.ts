import type { LogRecord, SpanEnd } from '../../record/telemetry-record.js';
import type { UnixNano } from '../../record/unix-nano.js';
import type { RunSummary } from '../../run/run-summary.js';
import type { LoggedRecord } from '../../sink/record-log.js';
import type { RunOrigin } from '../../store/trace-catalog.js';
import { KnownLayouts } from '../lines/known-layouts.js';
import { LineIntake } from '../lines/line-intake.js';
import { SpanRelease } from '../lines/span-release.js';
import { KnownNames } from '../redaction/known-names.js';
import { Redactor } from '../redaction/redactor.js';
import { SharedTexts } from '../redaction/shared-texts.js';
import type { LoggedLines, MappedItem, RunMapper } from '../run-mapper.js';
import { ItemEncoder } from '../wire/item-encoder.js';
import { adoptOrphanEvents, ClosingSpans } from './closing-spans.js';
import { EventBuffer } from './event-buffer.js';
import { EVENT_TYPE } from './event-types.js';
import { HeldSpans } from './held-spans.js';
import { hrTimeOf } from './hr-time.js';
import { learnNames } from './learn-names.js';
import { LogMapper } from './map-log.js';
import { SpanMapper } from './map-span.js';
import { DEFAULT_MAPPING_OPTIONS, type MappingOptions } from './mapping-options.js';
import { MissingParents } from './missing-parents.js';
import { movedEvent } from './moved-event.js';
import { NodeIndex } from './node-index.js';
import { ResourceMap } from './resource-map.js';
import { sightOf } from './span-sight.js';
import { recordStart, SpanTree } from './span-tree.js';

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
  private readonly logMapper: LogMapper;
  private readonly intake: LineIntake;
  private readonly encoder = new ItemEncoder();
  private readonly release: SpanRelease;
  private readonly closing: ClosingSpans;
  private readonly held = new HeldSpans();
  private readonly holdSeconds: number;
  private readonly holdNanos: number;
  private ready: MappedItem[] = [];
  /** Items anchored before these were sent. */
  private sentTraces = 0;
  private sentLogs = 0;
  /** Latest time of any record. */
  private latestSeconds = 0;
  private latestNanos = 0;

  /** @param layouts of lines, and @param prose what was made of texts: runs may share both. */
  constructor(
    private readonly options: MappingOptions = DEFAULT_MAPPING_OPTIONS,
    layouts: KnownLayouts = new KnownLayouts(),
    prose: SharedTexts = new SharedTexts(),
  ) {
    this.tree = new SpanTree(options.maxRememberedSpans);
    this.nodes = new NodeIndex(options.maxRememberedSpans, this.tree);
    this.missingParents = new MissingParents(options.maxRememberedSpans, this.tree);
    this.buffer = new EventBuffer(options.maxEventsPerSpan, options.maxWaitingEvents);
    this.redactor = new Redactor(options.redaction, new KnownNames(), prose);
    this.resources = new ResourceMap(options.resourceOverrides, options.publicUrl);
    const spanMapper = new SpanMapper(options.switches, this.redactor, this.nodes, this.resources);
    this.logMapper = new LogMapper(options.switches, this.redactor, this.resources);
    this.holdSeconds = Math.floor(options.eventHoldMs / 1000);
    this.holdNanos = (options.eventHoldMs % 1000) * 1_000_000;
    const { tree, nodes, missingParents, buffer, redactor, resources, encoder } = this;
    const { switches } = options;
    this.intake = new LineIntake(
      { redactor, tree, nodes, missingParents },
      {
        advance: (seconds, nanos) => this.advance(seconds, nanos),
        hold: (anchorOffset, resource, endSeconds, endNanos, block) => {
          this.held.addLine(anchorOffset, resource, endSeconds, endNanos, block, block.lineTotal - 1);
          this.boundHeld();
        },
        pushRecord: (logged) => this.pushRecord(logged),
      },
      layouts,
    );
    const { plans } = this.intake;
    this.release = new SpanRelease({ switches, redactor, nodes, resources, spanMapper, encoder, plans });
    this.closing = new ClosingSpans({ switches, tree, nodes, missingParents, buffer, redactor, resources, spanMapper });
  }

  get heldCount(): number {
    return this.held.count;
  }

  /** Takes records that were parsed before: what their lines have to give, for tests to compare. */
  push(records: readonly LoggedRecord[]): void {
    for (const logged of records) this.pushRecord(logged);
  }

  passOver(tracesOffset: number, logsOffset: number): void {
    this.sentTraces = tracesOffset;
    this.sentLogs = logsOffset;
  }

  pushLines(lines: LoggedLines): number {
    return this.intake.push(lines);
  }

  setOrigins(origins: readonly RunOrigin[]): void {
    this.resources.setOrigins(origins);
  }

  get lacksOrigin(): boolean {
    return this.resources.lacksOrigin;
  }

  take(isQuiet: boolean): readonly MappedItem[] {
    if (isQuiet) while (this.heldCount > 0) this.releaseOldest();
    const items = this.ready;
    this.ready = [];
    return items;
  }

  finish(run: RunSummary): readonly MappedItem[] {
    const items = [...this.take(true)];
    const latestTimeUnixNano = BigInt(this.latestSeconds) * BILLION + BigInt(this.latestNanos);
    for (const mapped of this.closing.spans(run, latestTimeUnixNano)) {
      const span = this.encoder.span(mapped, this.resources.groupOf(mapped.resource));
      items.push({ signal: 'traces', anchorOffset: run.logBytes, span });
    }
    return items;
  }

  closingSpanIds(run: RunSummary): readonly string[] {
    return this.closing.spanIds(run);
  }

  private pushRecord(logged: LoggedRecord): void {
    const { record } = logged;
    learnNames(record, this.redactor);
    switch (record.recordType) {
      case 'SpanStart': {
        this.advanceTo(record.startTimeUnixNano);
        const span = sightOf(record);
        this.tree.begin(span, recordStart(record, logged));
        this.missingParents.arrived(span.spanHigh, span.spanLow);
        this.nodes.seeSpan(span);
        break;
      }
      case 'SpanEnd':
        this.advanceTo(record.endTimeUnixNano);
        this.pushEnd(logged, record);
        break;
      case 'LogRecord':
        this.advanceTo(record.timeUnixNano);
        this.pushLog(logged, record);
        break;
    }
  }

  private pushEnd({ offset, resource }: LoggedRecord, record: SpanEnd): void {
    const span = sightOf(record);
    if (!this.tree.end(span)) return;
    this.nodes.seeSpan(span);
    this.missingParents.arrived(span.spanHigh, span.spanLow);
    this.missingParents.seeChild(span, resource);
    const [endSeconds, endNanos] = hrTimeOf(record.endTimeUnixNano);
    this.held.addRecord(offset, resource, endSeconds, endNanos, record);
    this.boundHeld();
  }

  private pushLog(logged: LoggedRecord, record: LogRecord): void {
    this.nodes.seeLog(record);
    const areEvents = this.options.switches['span-events'] && record.spanId !== null;
    const areLogs = this.options.switches['log-records'];
    if (!areEvents && !areLogs) return;
    const mapped = this.logMapper.map(record, logged.resource);
    if (areLogs && logged.offset >= this.sentLogs) {
      const log = this.encoder.log(mapped.log, this.resources.groupOf(mapped.log.resource));
      this.ready.push({ signal: 'logs', anchorOffset: logged.offset, log });
    }
    if (!areEvents || record.spanId === null) return;
    const target = this.tree.isSent(record.spanId) ? this.tree.nearestUnsentAncestor(record.spanId) : record.spanId;
    if (target === undefined) return;
    const event = target === record.spanId ? mapped.event : movedEvent(mapped.event, record.spanId);
    this.buffer.add(target, { event, timeUnixNano: record.timeUnixNano });
  }

  private boundHeld(): void {
    if (this.heldCount > this.options.maxHeldSpans) this.releaseOldest();
  }

  private advanceTo(timeUnixNano: UnixNano): void {
    const [seconds, nanos] = hrTimeOf(timeUnixNano);
    this.advance(seconds, nanos);
  }

  /** Time has passed in the run: what was held long enough is ready. */
  private advance(seconds: number, nanos: number): void {
    if (!isBefore(this.latestSeconds, this.latestNanos, seconds, nanos)) return;
    this.latestSeconds = seconds;
    this.latestNanos = nanos;
    const borrowed = nanos < this.holdNanos ? 1 : 0;
    const sinceSeconds = seconds - this.holdSeconds - borrowed;
    const sinceNanos = nanos - this.holdNanos + borrowed * NANOS_PER_SECOND;
    while (this.held.isOldestBefore(sinceSeconds, sinceNanos)) this.releaseOldest();
  }

  private releaseOldest(): void {
    const oldest = this.held.takeOldest();
    if (oldest === undefined) return;
    const { record } = oldest;
    if (record?.eventType === EVENT_TYPE.invocation) adoptOrphanEvents(this.tree, this.buffer, [record]);
    const isSent = oldest.anchorOffset < this.sentTraces;
    const span = isSent ? this.release.passOver(oldest, this.buffer) : this.release.encode(oldest, this.buffer);
    if (oldest.block !== undefined) this.intake.letGo(oldest.block);
    const { spanHigh, spanLow } = this.release;
    this.tree.sent(spanHigh, spanLow);
    if (span !== undefined) this.ready.push({ signal: 'traces', anchorOffset: oldest.anchorOffset, span });
  }
}

const NANOS_PER_SECOND = 1_000_000_000;
const BILLION = 1_000_000_000n;

function isBefore(seconds: number, nanos: number, thanSeconds: number, thanNanos: number): boolean {
  return seconds < thanSeconds || (seconds === thanSeconds && nanos < thanNanos);
}
