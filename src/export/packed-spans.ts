import type { Attributes } from '@opentelemetry/api';
import type { InstrumentationScope } from '@opentelemetry/core';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { ExportGroup } from './wire/export-group.js';
import { type ItemRange, WindowWriter } from './wire/item-window.js';

/** The resource and scope that spans have in common. */
interface PackedGroup {
  readonly attributes: Attributes;
  readonly scope: InstrumentationScope;
}

/** Spans on their way to another thread, which are not copied one by one: their bytes, and numbers beside them. */
export interface PackedSpans {
  /** Each as it stands in a ScopeSpans, one behind the other. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where each ends in them. */
  readonly ends: Uint32Array;
  /** Which of the groups each belongs to. */
  readonly groupOf: Uint32Array;
  readonly groups: readonly PackedGroup[];
}

/**
 * A batch has so many bytes at most, in OTLP's protobuf; a single span that is larger goes alone. Exporters send a batch as
 * one request, in JSON often twice as large, and receivers refuse what is too large for them.
 */
const MAX_BATCH_BYTES = 2 * 1024 * 1024;

/** Packs as many spans from the front as an exporter gets at a time; at least one. */
export function packSpans(ranges: readonly ItemRange[]): PackedSpans {
  const parts: Uint8Array[] = [];
  const ends: number[] = [];
  const groupOf: number[] = [];
  const numbers = new Map<ExportGroup, number>();
  let byteCount = 0;
  for (const { window, from, to } of ranges) {
    for (let index = from; index < to; index++) {
      const [start, end] = [window.startOf(index), window.endOf(index)];
      if (parts.length > 0 && byteCount + end - start > MAX_BATCH_BYTES) return packed();
      const number = numbers.get(window.group) ?? numbers.size;
      numbers.set(window.group, number);
      byteCount += end - start;
      parts.push(window.block.out.bytes.subarray(start, end));
      ends.push(byteCount);
      groupOf.push(number);
    }
  }
  return packed();

  function packed(): PackedSpans {
    const bytes = new Uint8Array(byteCount);
    for (const [index, part] of parts.entries()) bytes.set(part, ends[index - 1] ?? 0);
    const groups = Array.from(numbers.keys(), ({ resource, scope }) => ({ attributes: resource.attributes, scope }));
    return { bytes, ends: Uint32Array.from(ends), groupOf: Uint32Array.from(groupOf), groups };
  }
}

/** The spans that were packed. */
export function unpackSpans({ bytes, ends, groupOf, groups }: PackedSpans): readonly ItemRange[] {
  const known = groups.map(({ attributes, scope }) => new ExportGroup(resourceFromAttributes(attributes), scope));
  const windows = new WindowWriter();
  let start = 0;
  for (const [index, end] of ends.entries()) {
    const group = known[groupOf[index] ?? 0];
    const out = windows.begin();
    out.raw(bytes.subarray(start, end));
    if (group !== undefined) windows.add('traces', group, 0);
    start = end;
  }
  return windows.take().traces;
}
