import { expect, it } from 'vitest';
import { packSpans, unpackSpans } from '../../../src/export/exporter-thread.js';
import { ExportGroup } from '../../../src/export/wire/export-group.js';
import { countOf, type ItemRange, WindowWriter } from '../../../src/export/wire/item-window.js';
import { DecodedSpan } from '../../../src/export/wire/wire-reader.js';
import { RECORD, SPAN } from '../../../src/export/wire/wire-writer.js';

const GROUPS = ['a', 'b'].map(
  (name) => new ExportGroup({ 'service.name': name, list: ['x', 'y'], count: 7, isOn: true }, { name }),
);

/** Windows of spans with these names, every third of the second group. */
function spansOf(names: readonly string[]): readonly ItemRange[] {
  const windows = new WindowWriter();
  for (const [number, name] of names.entries()) {
    const out = windows.begin();
    out.tag(RECORD);
    const start = out.open();
    out.tag(SPAN.traceId);
    out.hex('0af7651916cd43dd8448eb211c80319c');
    out.tag(SPAN.spanId);
    out.hex('b7ad6b7169203331');
    out.tag(SPAN.name);
    out.text(name);
    out.close(start);
    const group = GROUPS[names.length > 3 && number % 3 === 0 ? 1 : 0];
    if (group !== undefined) windows.add('traces', group, number);
  }
  return windows.take().traces;
}

/** As they are after their way to another thread. */
const sent = (ranges: readonly ItemRange[]) => unpackSpans(structuredClone(packSpans(ranges)));

function* itemsOf(ranges: readonly ItemRange[]) {
  for (const { window, from, to } of ranges) {
    for (let index = from; index < to; index++) {
      const bytes = window.block.out.bytes.toString('hex', window.startOf(index), window.endOf(index));
      yield { bytes, group: window.group, span: new DecodedSpan(window.messageOf(index), window.group) };
    }
  }
}

it('spans come out of their pack to the byte, in their order, each with its resource and scope', () => {
  const spans = [...itemsOf(spansOf(Array.from({ length: 500 }, (_, number) => `span ${number} ä`)))];
  const unpacked = [...itemsOf(sent(spansOf(Array.from({ length: 500 }, (_, number) => `span ${number} ä`))))];
  expect(unpacked.map(({ bytes }) => bytes)).toEqual(spans.map(({ bytes }) => bytes));
  for (const [index, { span, group }] of unpacked.entries()) {
    expect(span.name).toBe(`span ${index} ä`);
    expect(span.resource.attributes).toEqual(spans[index]?.span.resource.attributes);
    expect(span.instrumentationScope).toEqual(spans[index]?.span.instrumentationScope);
    expect(group.resourceKey).toBe(spans[index]?.group.resourceKey);
  }
  // As many as there are groups, and not one for each span.
  expect(new Set(unpacked.map(({ group }) => group)).size).toBe(2);
});

it('a pack holds no more than an exporter gets at a time, but one span', () => {
  const sizes = [900_000, 900_000, 900_000];
  expect(countOf(sent(spansOf(sizes.map((size) => 'x'.repeat(size)))))).toBe(2);
  expect(countOf(sent(spansOf(['x'.repeat(5_000_000), 'y'])))).toBe(1);
});
