import { DEFAULT_MAPPING_OPTIONS, type MappingOptions } from '../../config/mapping-options.js';
import type { LocatedItem } from '../../otlp/wire/item-chunk.js';
import type { Resource } from '../../record/attributes.js';
import { KnownNames } from '../../redaction/known-names.js';
import { Redactor } from '../../redaction/redactor.js';
import type { RunSummary } from '../../run/verdict.js';
import { isTestId, type Manifest } from '../../storage/manifest.js';
import type { RunOrigin } from '../../storage/trace-catalog.js';
import type { LoggedLines, RunMapper } from '../run-mapper.js';
import { ResourceMap } from '../wire/export-group.js';
import { type MappedItems, WindowWriter } from '../wire/item-window.js';
import type { SpanEvents } from '../wire/wire-writer.js';
import { BufferedReader, type BufferedSpan, BufferedSpans } from './buffered-spans.js';
import { CellWriter } from './cell-writer.js';
import { adoptOrphanEvents, ClosingSpans } from './closing-spans.js';
import { CommandAttributes } from './command-attributes.js';
import { EventBuffer } from './event-buffer.js';
import { EVENT_TYPE } from './exported-names.js';
import { type LineHost, LineIntake } from './line-intake.js';
import { MadeEvents } from './made-events.js';
import { type CellRecord, isBefore, type MappedRecord, PlainRecord } from './mapped-record.js';
import { NodeIndex } from './node-index.js';
import { LogWriter, movedEvent, SpanWriter } from './plain-writer.js';
import { SharedMapping } from './shared-mapping.js';
import { MissingParents, SpanTree } from './span-tree.js';
import { UpstreamLinks } from './upstream-links.js';

/** Makes the mappers of a destination, which share what they made of texts. */
export function mapperFactory(options: MappingOptions): () => OtelRunMapper {
  const shared = new SharedMapping(options.redaction);
  return () => new OtelRunMapper(options, shared);
}

/**
 * Maps a run onto OTel, see `docs/reference/mapping.md`. What is released when depends on the records alone, not on how they are
 * cut into pushes, so that a replay gives the same items.
 */
export class OtelRunMapper implements RunMapper, LineHost {
  private readonly tree: SpanTree;
  private readonly buffer: EventBuffer;
  private readonly resources: ResourceMap;
  private readonly spans: SpanWriter;
  private readonly logs: LogWriter;
  private readonly cells: CellWriter;
  private readonly intake: LineIntake;
  private readonly reader = new BufferedReader();
  private readonly windows = new WindowWriter();
  private readonly closing: ClosingSpans;
  private readonly madeEvents: MadeEvents;
  private readonly upstream: UpstreamLinks;
  private readonly buffered = new BufferedSpans();
  private readonly holdSeconds: number;
  private readonly holdNanos: number;
  /** Items anchored before these were sent. */
  private sentTraces = 0;
  private sentLogs = 0;
  /** Whether items were taken: what they belong to is not described anew. */
  private hasGiven = false;
  /** Latest time of any record. */
  private latestSeconds = 0;
  private latestNanos = 0;
  /** Spans that may be let go in the present call, as far as those after them may wait for the next one. */
  private mayRelease = Number.POSITIVE_INFINITY;
  /** Whether spans are let go since the run is quiet, or over. */
  private isQuiet = false;

  /** @param shared what was made of texts: runs may share it. */
  constructor(
    private readonly options: MappingOptions = DEFAULT_MAPPING_OPTIONS,
    shared: SharedMapping = new SharedMapping(options.redaction),
  ) {
    const { switches, maxRememberedSpans } = options;
    const tree = new SpanTree(maxRememberedSpans);
    const nodes = new NodeIndex(maxRememberedSpans, tree);
    const missingParents = new MissingParents(maxRememberedSpans, tree);
    const buffer = new EventBuffer(options.maxEventsPerSpan, options.maxWaitingEvents);
    const redactor = new Redactor(options.redaction, new KnownNames(), shared.prose);
    const resources = new ResourceMap(options.resourceOverrides, options.publicUrl);
    const commands = new CommandAttributes(tree, resources, maxRememberedSpans);
    this.upstream = new UpstreamLinks(nodes);
    const spans = new SpanWriter(switches, redactor, nodes, commands, this.upstream);
    this.tree = tree;
    this.buffer = buffer;
    this.resources = resources;
    this.spans = spans;
    this.logs = new LogWriter(switches, redactor);
    this.cells = new CellWriter(switches, redactor, nodes, commands, this.upstream, shared);
    this.holdSeconds = Math.floor(options.eventHoldMs / 1000);
    this.holdNanos = (options.eventHoldMs % 1000) * 1_000_000;
    this.intake = new LineIntake({ redactor, tree, nodes, missingParents }, this, shared);
    const { windows } = this;
    this.madeEvents = new MadeEvents(resources, windows);
    this.closing = new ClosingSpans({
      switches,
      tree,
      nodes,
      commands,
      missingParents,
      buffer,
      redactor,
      resources,
      spans,
      windows,
    });
  }

  get bufferedCount(): number {
    return this.buffered.count;
  }

  skipTo(tracesOffset: number, logsOffset: number, finishedAtBytes = 0): void {
    this.sentTraces = tracesOffset;
    this.sentLogs = logsOffset;
    this.madeEvents.skipTo(logsOffset, finishedAtBytes);
  }

  pushLines(lines: LoggedLines, maxSpans = Number.POSITIVE_INFINITY): number {
    this.mayRelease = maxSpans;
    return this.intake.push(lines);
  }

  get stoppedAt(): number | undefined {
    return this.intake.stoppedAt;
  }

  setOrigins(origins: readonly RunOrigin[]): void {
    this.resources.setOrigins(origins, !this.hasGiven);
  }

  setManifest(manifest: Manifest): void {
    this.upstream.setManifest(manifest);
  }

  get lacksOrigin(): boolean {
    return this.resources.lacksOrigin;
  }

  take(isQuiet: boolean, maxSpans = Number.POSITIVE_INFINITY): MappedItems {
    if (isQuiet) this.release(maxSpans);
    return this.given();
  }

  finish(run: RunSummary): MappedItems {
    this.release(Number.POSITIVE_INFINITY);
    this.closing.write(run, [this.latestSeconds, this.latestNanos]);
    this.madeEvents.finish(run.logBytes);
    return this.given();
  }

  closingSpanIds(run: RunSummary): readonly string[] {
    return this.closing.spanIds(run);
  }

  log(anchorOffset: number, resource: Resource, record: CellRecord | PlainRecord): void {
    const isWanted = anchorOffset >= this.sentLogs;
    const { buffer, cells, tree } = this;
    const { spanHigh, spanLow } = record;
    // It becomes an event of its own span, or of the nearest one above it that was not sent.
    const isEvent = this.options.switches.events === true && (spanHigh !== 0 || spanLow !== 0);
    const isOwn = isEvent && !tree.isSent(spanHigh, spanLow);
    const above = isEvent && !isOwn ? tree.nearestUnsentAncestor(spanHigh, spanLow) : undefined;
    if (!isWanted && !isOwn && above === undefined) return;
    const text = this.mapLog(record, isWanted);
    if (isWanted) this.windows.add('logs', this.resources.map(resource), anchorOffset);
    if (above !== undefined)
      buffer.addText(above[0], above[1], movedEvent(text ?? cells.eventText(), [spanHigh, spanLow]));
    else if (!isOwn) return;
    else if (text === undefined) buffer.add(spanHigh, spanLow, cells.eventStart, cells.eventEnd);
    else buffer.addText(spanHigh, spanLow, text);
  }

  /** Makes the event of a log record, and writes that itself where it is wanted. @returns the event where plain code made it; else `cells` has it */
  private mapLog(record: CellRecord | PlainRecord, isWanted: boolean): string | undefined {
    const { cells, logs, windows } = this;
    const isPlain = record instanceof PlainRecord;
    if (!isPlain && cells.event(record)) {
      if (isWanted) cells.log(windows.begin(), record);
      return undefined;
    }
    const read = isPlain ? record : this.intake.plainLog();
    logs.read(read);
    if (isWanted) logs.write(windows.begin(), read);
    return logs.eventText(read);
  }

  bufferSpan(anchorOffset: number, resource: Resource, record: MappedRecord, item: LocatedItem): void {
    this.buffered.addItem(anchorOffset, resource, record.endSeconds, record.endNanos, item);
    if (this.bufferedCount > this.options.maxBufferedSpans) this.releaseOldest();
  }

  bufferLine(anchorOffset: number, resource: Resource, record: MappedRecord, line: Buffer): void {
    this.buffered.addLine(anchorOffset, resource, record.endSeconds, record.endNanos, Buffer.from(line));
    if (this.bufferedCount > this.options.maxBufferedSpans) this.releaseOldest();
  }

  advance(seconds: number, nanos: number): boolean {
    if (!isBefore(this.latestSeconds, this.latestNanos, seconds, nanos)) return true;
    const borrowed = nanos < this.holdNanos ? 1 : 0;
    const sinceSeconds = seconds - this.holdSeconds - borrowed;
    const sinceNanos = nanos - this.holdNanos + borrowed * NANOS_PER_SECOND;
    this.madeEvents.advance(this.intake.lineOffset, sinceSeconds, sinceNanos);
    for (; this.buffered.isOldestBefore(sinceSeconds, sinceNanos); this.mayRelease--) {
      if (this.mayRelease <= 0) return false;
      this.releaseOldest();
    }
    this.latestSeconds = seconds;
    this.latestNanos = nanos;
    return true;
  }

  private given(): MappedItems {
    const items = this.windows.take();
    this.hasGiven ||= items.traces.length + items.logs.length > 0;
    return items;
  }

  private release(maxSpans: number): void {
    this.reader.tidy();
    this.mayRelease = maxSpans;
    this.intake.settle();
    this.isQuiet = true;
    for (; this.mayRelease > 0 && this.bufferedCount > 0; this.mayRelease--) this.releaseOldest();
    this.isQuiet = false;
  }

  private releaseOldest(): void {
    const oldest = this.buffered.takeOldest();
    if (oldest === undefined) return;
    const { reader } = this;
    try {
      this.giveSpan(reader.begin(oldest), oldest);
    } finally {
      reader.end();
    }
  }

  private giveSpan(record: CellRecord | PlainRecord, { anchorOffset, resource }: BufferedSpan): void {
    const { buffer, tree } = this;
    const { spanHigh, spanLow } = record;
    if (record.eventType === EVENT_TYPE.invocation) adoptOrphanEvents(tree, buffer, [adopterOf(record)]);
    const events = buffer.take(spanHigh, spanLow);
    const isWanted = anchorOffset >= this.sentTraces;
    const { lineOffset } = this.intake;
    if (!isWanted && !this.madeEvents.mayBeWanted(lineOffset, this.isQuiet)) this.noteTest(record);
    else if (this.writeSpan(record, resource, events)) {
      if (isWanted) this.windows.add('traces', this.resources.map(resource), anchorOffset);
      this.madeEvents.add([record.endSeconds, record.endNanos], this.spans.made, resource, lineOffset, this.isQuiet);
    }
    tree.sent(spanHigh, spanLow);
  }

  private writeSpan(record: CellRecord | PlainRecord, resource: Resource, events: SpanEvents): boolean {
    const out = this.windows.begin();
    this.spans.made = undefined;
    if (record instanceof PlainRecord) return this.spans.write(out, record, resource, events);
    return this.cells.span(out, record, events) || this.spans.write(out, this.reader.plain(), resource, events);
  }

  /** A span that was sent before may be that of a test, on which depends what its command says later. */
  private noteTest(record: CellRecord | PlainRecord): void {
    if (record.eventType !== EVENT_TYPE.nodeProcessed || !isTestId(record.uniqueId ?? '')) return;
    this.spans.noteTest(record instanceof PlainRecord ? record : this.reader.plain());
  }
}

const NANOS_PER_SECOND = 1_000_000_000;

function adopterOf(span: MappedRecord): Parameters<typeof adoptOrphanEvents>[2][number] {
  const nanosOf = (seconds: number, nanos: number) => BigInt(seconds) * 1_000_000_000n + BigInt(nanos);
  return {
    id: [span.spanHigh, span.spanLow],
    startTimeUnixNano: nanosOf(span.startSeconds, span.startNanos),
    endTimeUnixNano: nanosOf(span.endSeconds, span.endNanos),
  };
}
