import type { Resource } from '../../record/resource.js';
import { KnownNames, SharedTexts } from '../../redaction/known-names.js';
import { Redactor } from '../../redaction/redactor.js';
import type { RunSummary } from '../../run/run-summary.js';
import type { RunOrigin } from '../../storage/trace-catalog.js';
import { EventMappings } from '../lines/event-mappings.js';
import { LineIntake, type LineStart } from '../lines/line-intake.js';
import { HeldSpans, LineReader } from '../lines/line-reader.js';
import type { LoggedLines, MappedItem, RunMapper } from '../run-mapper.js';
import { ItemEncoder } from '../wire/encoded-items.js';
import type { WireWriter } from '../wire/wire-writer.js';
import { adoptOrphanEvents, ClosingSpans } from './closing-spans.js';
import { EVENT_TYPE } from './event-types.js';
import { EventBuffer, LogWriter, movedEvent } from './log-writer.js';
import { DEFAULT_MAPPING_OPTIONS, type MappingOptions } from './mapping-options.js';
import { NodeIndex } from './node-index.js';
import { ResourceMap } from './resource-map.js';
import { type IdHalves, isBefore, MissingParents, SpanTree } from './span-tree.js';
import { SpanWriter } from './span-writer.js';

/**
 * Maps a run onto OTel, see `docs/export.md`. What is released when depends on the records alone, not on how they are
 * cut into pushes, so that a replay gives the same items.
 */
export class OtelRunMapper implements RunMapper {
  private readonly tree: SpanTree<LineStart>;
  private readonly nodes: NodeIndex;
  private readonly missingParents: MissingParents;
  private readonly buffer: EventBuffer;
  private readonly redactor: Redactor;
  private readonly resources: ResourceMap;
  private readonly spans: SpanWriter;
  private readonly logs: LogWriter;
  /** Points at a held line. */
  private readonly heldLine: LineReader;
  private readonly intake: LineIntake;
  private readonly encoder = new ItemEncoder();
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

  /** @param mappings of lines, and @param prose what was made of texts: runs may share both. */
  constructor(
    private readonly options: MappingOptions = DEFAULT_MAPPING_OPTIONS,
    mappings: EventMappings = new EventMappings(),
    prose: SharedTexts = new SharedTexts(),
  ) {
    this.tree = new SpanTree(options.maxRememberedSpans);
    this.nodes = new NodeIndex(options.maxRememberedSpans, this.tree);
    this.missingParents = new MissingParents(options.maxRememberedSpans, this.tree);
    this.buffer = new EventBuffer(options.maxEventsPerSpan, options.maxWaitingEvents);
    this.redactor = new Redactor(options.redaction, new KnownNames(), prose);
    this.resources = new ResourceMap(options.resourceOverrides, options.publicUrl);
    const { switches } = options;
    this.spans = new SpanWriter(switches, this.redactor, this.nodes);
    this.logs = new LogWriter(switches, this.redactor);
    this.heldLine = new LineReader(mappings);
    this.holdSeconds = Math.floor(options.eventHoldMs / 1000);
    this.holdNanos = (options.eventHoldMs % 1000) * 1_000_000;
    const { tree, nodes, missingParents, buffer, redactor, resources, encoder, spans } = this;
    this.intake = new LineIntake(
      { redactor, tree, nodes, missingParents },
      {
        advance: (seconds, nanos) => this.advance(seconds, nanos),
        hold: (anchorOffset, resource, endSeconds, endNanos, block) => {
          this.held.add(anchorOffset, resource, endSeconds, endNanos, block, block.lineTotal - 1);
          this.boundHeld();
        },
        log: (anchorOffset, resource, line) => this.pushLog(anchorOffset, resource, line),
      },
      mappings,
    );
    const { intake } = this;
    const memory = { switches, tree, nodes, missingParents, buffer, redactor, resources };
    this.closing = new ClosingSpans({ ...memory, intake, spans, encoder });
  }

  get heldCount(): number {
    return this.held.count;
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
    for (const span of this.closing.spans(run, [this.latestSeconds, this.latestNanos])) {
      items.push({ signal: 'traces', anchorOffset: run.logBytes, span });
    }
    return items;
  }

  closingSpanIds(run: RunSummary): readonly string[] {
    return this.closing.spanIds(run);
  }

  private pushLog(anchorOffset: number, resource: Resource, line: LineReader): void {
    const { switches } = this.options;
    const isWanted = switches['log-records'] && anchorOffset >= this.sentLogs;
    const target = switches['span-events'] ? this.eventTarget(line) : undefined;
    if (!isWanted && target === undefined) return;
    this.logs.read(line);
    if (isWanted) {
      const log = this.encoder.log(this.resources.map(resource), (out) => this.logs.write(out, line));
      this.ready.push({ signal: 'logs', anchorOffset, log });
    }
    if (target === undefined) return;
    const { spanHigh, spanLow } = line;
    const isOwn = target[0] === spanHigh && target[1] === spanLow;
    const event = this.logs.eventText();
    this.buffer.add(target[0], target[1], isOwn ? event : movedEvent(event, [spanHigh, spanLow]));
  }

  /** The span that a log record is to be an event of: its own, or the nearest one above it that was not sent. */
  private eventTarget({ spanHigh, spanLow }: LineReader): IdHalves | undefined {
    if (spanHigh === 0 && spanLow === 0) return undefined;
    const { tree } = this;
    return tree.isSent(spanHigh, spanLow) ? tree.nearestUnsentAncestor(spanHigh, spanLow) : [spanHigh, spanLow];
  }

  private boundHeld(): void {
    if (this.heldCount > this.options.maxHeldSpans) this.releaseOldest();
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
    const { heldLine: line, buffer, tree } = this;
    const { anchorOffset, block, index } = oldest;
    line.pointAt(block, index);
    const { spanHigh, spanLow } = line;
    if (line.eventType === EVENT_TYPE.invocation) adoptOrphanEvents(tree, buffer, [adopterOf(line)]);
    const events = buffer.take(spanHigh, spanLow);
    if (anchorOffset >= this.sentTraces) {
      const write = (out: WireWriter) => this.spans.write(out, line, events);
      const span = this.encoder.spanOf(this.resources.map(oldest.resource), write);
      if (span !== undefined) this.ready.push({ signal: 'traces', anchorOffset, span });
    }
    line.forget();
    this.intake.letGo(block);
    tree.sent(spanHigh, spanLow);
  }
}

const NANOS_PER_SECOND = 1_000_000_000;

function adopterOf(line: LineReader): Parameters<typeof adoptOrphanEvents>[2][number] {
  const nanosOf = (seconds: number, nanos: number) => BigInt(seconds) * 1_000_000_000n + BigInt(nanos);
  return {
    id: [line.spanHigh, line.spanLow],
    startTimeUnixNano: nanosOf(line.startSeconds, line.startNanos),
    endTimeUnixNano: nanosOf(line.endSeconds, line.endNanos),
  };
}
