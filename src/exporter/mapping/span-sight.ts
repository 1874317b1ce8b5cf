import type { SpanId } from '../../record/ids.js';
import type { SpanEnd, SpanStart } from '../../record/telemetry-record.js';
import type { UnixNano } from '../../record/unix-nano.js';
import { type Interruption, interruptionOf } from '../../run/node-outcome.js';
import { type SeenSpan, seenSpan } from './span-tree.js';
import type { TextAttributes } from './text-attributes.js';

/** What the run's memory (tree, nodes, missing parents) takes of a span: read from its record, or from its line. */
export interface SpanSight extends SeenSpan, TextAttributes {
  readonly isEnd: boolean;
  readonly spanId: SpanId;
  readonly parentSpanId: SpanId | null;
  readonly startTimeUnixNano: UnixNano;
  /** The start once more, of a start. */
  readonly endTimeUnixNano: UnixNano;
  /** Whether the texts that it gives are in memory of their own, see `ownText`. */
  readonly hasOwnTexts: boolean;
  /** Whether it says that a node, or the command, was interrupted. */
  interruption(): Interruption | undefined;
}

/** What is seen of a record. */
export function sightOf(record: SpanStart | SpanEnd): SpanSight {
  const isEnd = record.recordType === 'SpanEnd';
  return {
    ...seenSpan(record),
    isEnd,
    spanId: record.spanId,
    parentSpanId: record.parentSpanId,
    startTimeUnixNano: record.startTimeUnixNano,
    endTimeUnixNano: isEnd ? record.endTimeUnixNano : record.startTimeUnixNano,
    hasOwnTexts: false,
    text: (name) => record.attributes.text(name),
    interruption: () => interruptionOf(record),
  };
}
