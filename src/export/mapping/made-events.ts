import type { Attributes } from '@opentelemetry/api';
import type { TimedEvent } from '@opentelemetry/sdk-trace-base';
import type { Resource } from '../../record/attributes.js';
import { ERROR, type Severity, WARN } from '../../record/severity.js';
import type { TraceId } from '../../record/telemetry-record.js';
import type { ResourceMap } from '../wire/export-group.js';
import type { WindowWriter } from '../wire/item-window.js';
import { encodeAttributes, encodeValue, LOG, RECORD } from '../wire/wire-writer.js';
import { type IdHalves, isBefore, type Time } from './mapped-record.js';
import { TEST_WARNED } from './span-outcomes.js';

/** An event that is made of a span that ended, such as `exception`. */
export interface MadeEvent {
  readonly event: TimedEvent;
  readonly traceId: TraceId;
  readonly spanId: IdHalves;
  /** The node that the span is about. */
  readonly uniqueId: string | undefined;
}

/** A span that a replay let go earlier than it may have been let go before. */
interface Pending {
  readonly end: Time;
  readonly made: MadeEvent | undefined;
  readonly resource: Resource;
}

/**
 * Makes log records of events that no record of the engine stands for. Such a record is made when its span is let go, and anchored in
 * front of the line at which that happened, where a run is quiet at the last line: nothing that comes later has a lower anchor, and a
 * replay lets spans go at the same lines.
 *
 * Only where a replay cannot know when a span was let go, since its run was quiet, the record waits until the line from which on
 * log records were not sent. Then it is sent, perhaps for the second time.
 */
export class MadeEvents {
  private pending: Pending[] = [];
  /** Log records anchored before this offset were sent; and all that was made of the log up to the other one. */
  private sentTo = 0;
  private finishedTo = 0;

  constructor(
    private readonly resources: ResourceMap,
    private readonly windows: WindowWriter,
  ) {}

  skipTo(logsOffset: number, finishedAtBytes: number): void {
    this.sentTo = logsOffset;
    this.finishedTo = finishedAtBytes;
  }

  /** Returns whether a record may have to be made of a span that is let go, though the span itself was sent. @param lineOffset as for `add` */
  mayBeWanted(lineOffset: number, isQuiet: boolean): boolean {
    const anchorOffset = anchorAt(lineOffset, isQuiet);
    return anchorOffset >= this.sentTo || (isQuiet && anchorOffset >= this.finishedTo);
  }

  /**
   * A span was let go.
   * @param made of it; `undefined` for nothing
   * @param lineOffset the line that is being taken; where the run is quiet, the one that was taken last
   */
  add(end: Time, made: MadeEvent | undefined, resource: Resource, lineOffset: number, isQuiet: boolean): void {
    const anchorOffset = anchorAt(lineOffset, isQuiet);
    if (anchorOffset >= this.sentTo) this.write(made, resource, anchorOffset);
    else if (isQuiet && anchorOffset >= this.finishedTo) this.pending.push({ end, made, resource });
  }

  /** A line is being taken. @param seconds time before which spans have ended that are let go by now, whether the run was quiet or not: what is made of them was sent */
  advance(lineOffset: number, seconds: number, nanos: number): void {
    const { pending } = this;
    if (pending.length === 0) return;
    const anchorOffset = anchorAt(lineOffset, false);
    if (anchorOffset >= this.sentTo) {
      for (const { made, resource } of pending) this.write(made, resource, anchorOffset);
      this.pending = [];
      return;
    }
    const first = pending.findIndex(({ end }) => !isBefore(end[0], end[1], seconds, nanos));
    this.pending = first === -1 ? [] : pending.slice(first);
  }

  /** The run is over, and no line will come. @param logBytes length of its log */
  finish(logBytes: number): void {
    for (const { made, resource } of this.pending) this.write(made, resource, logBytes);
    this.pending = [];
  }

  private write(made: MadeEvent | undefined, resource: Resource, anchorOffset: number): void {
    if (made === undefined) return;
    const { event, traceId, spanId, uniqueId } = made;
    const { number, text }: Severity = event.name === TEST_WARNED ? WARN : ERROR;
    const attributes: Attributes = event.attributes ?? {};
    const out = this.windows.begin();
    out.tag(RECORD);
    const start = out.open();
    // The ids come first, by which such a record is known (`ItemWindow.isOfSpan`).
    out.tag(LOG.traceId);
    out.hex(traceId);
    out.tag(LOG.spanId);
    out.id(spanId[0], spanId[1]);
    out.tag(LOG.time);
    out.time(event.time[0], event.time[1]);
    out.tag(LOG.severityNumber);
    out.int64(number);
    out.tag(LOG.severityText);
    out.text(text);
    out.tag(LOG.body);
    encodeValue(out, attributes['exception.message'] ?? attributes.message);
    encodeAttributes(out, LOG.attributes, attributes);
    if (uniqueId !== undefined) encodeAttributes(out, LOG.attributes, { unique_id: uniqueId });
    out.tag(LOG.droppedAttributesCount);
    out.varint(0);
    out.tag(LOG.flags);
    out.fixed32(1);
    out.tag(LOG.observedTime);
    out.time(event.time[0], event.time[1]);
    out.tag(LOG.eventName);
    out.text(event.name);
    out.close(start);
    this.windows.add('logs', this.resources.map(resource), anchorOffset);
  }
}

function anchorAt(lineOffset: number, isQuiet: boolean): number {
  return isQuiet ? lineOffset : lineOffset - 1;
}
