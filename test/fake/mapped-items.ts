import type { InstrumentationScope } from '@opentelemetry/core';
import type { Resource } from '@opentelemetry/resources';
import type { ItemRange, ItemWindow, MappedItems } from '../../src/export/wire/item-window.js';
import { type DecodedLog, DecodedSpan, decodeLog } from '../../src/export/wire/wire-reader.js';
import type { Signal } from '../../src/record/record-batch.js';

/** A log record with its resource and scope. */
export type MappedLog = DecodedLog & {
  readonly resource: Resource;
  readonly instrumentationScope: InstrumentationScope;
};

/** One thing that a mapper gave, and the offset of the record that caused it. */
export type MappedItem = { readonly anchorOffset: number; readonly bytes: Buffer } & (
  | { readonly signal: 'traces'; readonly span: DecodedSpan }
  | { readonly signal: 'logs'; readonly log: MappedLog }
);

interface Place {
  readonly signal: Signal;
  readonly window: ItemWindow;
  readonly index: number;
}

/** What a mapper gave, one by one, in the order in which it was written. */
export function itemsOf({ traces, logs }: MappedItems): readonly MappedItem[] {
  const places = [...placesOf('traces', traces), ...placesOf('logs', logs)];
  return places.sort(byTime).map(({ signal, window, index }) => {
    const anchorOffset = window.anchorOf(index);
    const bytes = window.block.out.bytes.subarray(window.startOf(index), window.endOf(index));
    const message = window.messageOf(index);
    if (signal === 'traces') return { signal, anchorOffset, bytes, span: new DecodedSpan(message, window.group) };
    const { resource, scope: instrumentationScope } = window.group;
    return { signal, anchorOffset, bytes, log: { ...decodeLog(message), resource, instrumentationScope } };
  });
}

function placesOf(signal: Signal, ranges: readonly ItemRange[]): readonly Place[] {
  return ranges.flatMap(({ window, from, to }) =>
    Array.from({ length: to - from }, (_, number) => ({ signal, window, index: from + number })),
  );
}

/** In a block by where it stands there, and otherwise by which window was begun first: a run fills one block after the other. */
function byTime(one: Place, other: Place): number {
  return one.window.block === other.window.block
    ? one.window.startOf(one.index) - other.window.startOf(other.index)
    : one.window.number - other.window.number;
}
