import type { Resource } from '../../record/resource.js';
import type { SpanEnd } from '../../record/telemetry-record.js';
import type { EventBuffer, SpanEvents } from '../mapping/event-buffer.js';
import type { HeldSpan } from '../mapping/held-spans.js';
import { highOf, lowOf } from '../mapping/id-halves.js';
import type { SpanMapper } from '../mapping/map-span.js';
import type { MappingSwitches } from '../mapping/mapping-switches.js';
import type { NodeIndex } from '../mapping/node-index.js';
import type { ResourceMap } from '../mapping/resource-map.js';
import type { Redactor } from '../redaction/redactor.js';
import { EncodedSpan } from '../wire/encoded-span.js';
import type { ItemEncoder } from '../wire/item-encoder.js';
import type { EventPlans } from './event-plans.js';
import { LineReader } from './line-reader.js';
import { SpanTranscoder } from './span-transcoder.js';

/** What spans are mapped with; all of one run. */
export interface ReleaseDeps {
  readonly switches: MappingSwitches;
  readonly redactor: Redactor;
  readonly nodes: NodeIndex;
  readonly resources: ResourceMap;
  readonly spanMapper: SpanMapper;
  readonly encoder: ItemEncoder;
  /** Those that held lines were scanned with. */
  readonly plans: EventPlans;
}

/** Makes what is sent of a span that was held: from its line where that can be, else from its record. */
export class SpanRelease {
  private readonly line: LineReader;
  private readonly transcoder: SpanTranscoder;
  /** The id of the span that was encoded last. */
  spanHigh = 0;
  spanLow = 0;

  constructor(private readonly deps: ReleaseDeps) {
    this.line = new LineReader(deps.plans);
    this.transcoder = new SpanTranscoder({ ...deps, outcomes: deps.spanMapper.outcomes });
  }

  /** @returns `undefined` for a line that turns out to be damaged. */
  encode(held: HeldSpan, buffer: EventBuffer): EncodedSpan | undefined {
    const { resource } = held;
    if (held.record !== undefined) {
      const { spanId } = held.record;
      this.spanHigh = highOf(spanId);
      this.spanLow = lowOf(spanId);
      return this.encodeRecord(held.record, resource, buffer.take(spanId));
    }
    const { line } = this;
    if (held.block === undefined) return undefined;
    line.pointAt(held.block, held.index);
    this.spanHigh = line.spanHigh;
    this.spanLow = line.spanLow;
    const events = buffer.takeHalves(line.spanHigh, line.spanLow);
    const transcoded = this.transcode(line.uniqueId, resource, events);
    if (transcoded !== undefined) return transcoded;
    const record = line.readRecord();
    return record?.recordType === 'SpanEnd' ? this.encodeRecord(record, resource, events) : undefined;
  }

  /** Lets go of a span that was sent before: its id is known, and its events are gone with it. */
  passOver({ record, block, index }: HeldSpan, buffer: EventBuffer): undefined {
    if (record !== undefined) {
      this.spanHigh = highOf(record.spanId);
      this.spanLow = lowOf(record.spanId);
    } else if (block !== undefined) {
      this.line.pointAt(block, index);
      this.spanHigh = this.line.spanHigh;
      this.spanLow = this.line.spanLow;
    }
    buffer.takeHalves(this.spanHigh, this.spanLow);
  }

  private transcode(uniqueId: string | undefined, resource: Resource, events: SpanEvents): EncodedSpan | undefined {
    const { encoder, resources } = this.deps;
    const out = encoder.writer();
    const start = out.length;
    try {
      if (!this.transcoder.write(out, this.line, uniqueId, events)) return undefined;
    } catch (error) {
      out.length = start;
      if (error instanceof SyntaxError) return undefined;
      throw error;
    }
    return new EncodedSpan(out.bytes, start, out.length, resources.map(resource));
  }

  private encodeRecord(record: SpanEnd, resource: Resource, events: SpanEvents): EncodedSpan {
    const { spanMapper, encoder, resources } = this.deps;
    return encoder.span(spanMapper.ended(record, resource, events), resources.map(resource));
  }
}
