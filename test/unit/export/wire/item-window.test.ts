import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BufferPool } from '../../../../src/core/bytes.js';
import { ExportGroup } from '../../../../src/export/wire/export-group.js';
import { countOf, cutRanges, type ItemRange, WindowWriter } from '../../../../src/export/wire/item-window.js';

const GROUPS = ['one', 'other'].map((name) => new ExportGroup({ name }, { name: 'dbt' }));

/** Has room for two or three of the longest items. */
const BLOCK_BYTES = 64 * 1024;

/** An item of so many bytes that tells its number. */
interface Item {
  readonly signal: 'traces' | 'logs';
  readonly group: number;
  readonly length: number;
  readonly isTakenAfter: boolean;
}

const items: fc.Arbitrary<readonly Item[]> = fc.array(
  fc.record({
    signal: fc.constantFrom('traces', 'logs'),
    group: fc.constantFrom(0, 0, 0, 1),
    length: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 20_000 })),
    isTakenAfter: fc.boolean(),
  }),
  { maxLength: 60 },
);

/** Writes items, each anchored at its number. */
function write(all: readonly Item[]): Readonly<Record<Item['signal'], readonly ItemRange[]>> {
  const windows = new WindowWriter(BLOCK_BYTES);
  const taken: Record<Item['signal'], ItemRange[]> = { traces: [], logs: [] };
  const take = () => {
    const { traces, logs } = windows.take();
    taken.traces.push(...traces);
    taken.logs.push(...logs);
  };
  for (const [number, { signal, group, length, isTakenAfter }] of all.entries()) {
    windows.begin().text('begun and not added');
    windows.begin().raw(new Uint8Array(length).fill(number));
    windows.add(signal, GROUPS[group] as ExportGroup, number);
    if (isTakenAfter) take();
  }
  take();
  return taken;
}

/** What ranges have, item by item. */
function contentOf(ranges: readonly ItemRange[]) {
  return ranges.flatMap(({ window, from, to }) =>
    Array.from({ length: to - from }, (_, place) => {
      const bytes = window.block.out.bytes.subarray(window.startOf(from + place), window.endOf(from + place));
      return [window.anchorOf(from + place), window.group, bytes.length, new Set(bytes)];
    }),
  );
}

describe('windows', () => {
  it('use a block again once all of its items were released, and no sooner', () => {
    const pool = new BufferPool();
    const windows = new WindowWriter(BLOCK_BYTES, pool);
    const add = () => {
      const block = windows.begin();
      block.raw(new Uint8Array(31_000));
      windows.add('traces', GROUPS[0] as ExportGroup, 0);
      return block.bytes;
    };
    const first = add();
    const [range] = windows.take().traces;
    range?.release();
    // It is still being filled.
    expect(add()).toBe(first);
    const [other] = windows.take().traces;
    expect(add()).not.toBe(first);
    const unfilled = new WindowWriter(BLOCK_BYTES, pool).begin().bytes;
    expect(unfilled).not.toBe(first);
    other?.release();
    expect(new WindowWriter(BLOCK_BYTES, pool).begin().bytes).toBe(first);
  });

  it('hold what was written of each signal, in order and whole, whenever it is taken', () => {
    fc.assert(
      fc.property(items, (all) => {
        const taken = write(all);
        for (const signal of ['traces', 'logs'] as const) {
          const expected = all.flatMap((item, number) =>
            item.signal === signal ? [[number, GROUPS[item.group], item.length, new Set([number])]] : [],
          );
          expect(contentOf(taken[signal])).toEqual(expected);
          expect(countOf(taken[signal])).toBe(expected.length);
        }
      }),
    );
  });

  it('are cut, filtered and found by anchor as lists of their items are', () => {
    fc.assert(
      fc.property(items, fc.nat(60), fc.func(fc.boolean()), (all, number, isWanted) => {
        const { traces } = write(all);
        const [front, rest] = cutRanges(traces, number);
        expect([contentOf(front), contentOf(rest)]).toEqual([
          contentOf(traces).slice(0, number),
          contentOf(traces).slice(number),
        ]);
        const picked: ItemRange[] = [];
        for (const range of traces) range.pick((index) => isWanted(range.window.anchorOf(index)), picked);
        expect(contentOf(picked)).toEqual(contentOf(traces).filter(([anchor]) => isWanted(anchor as number)));
        const behind = traces.flatMap((range) => range.anchoredFrom(number) ?? []);
        expect(contentOf(behind)).toEqual(contentOf(traces).filter(([anchor]) => Number(anchor) >= number));
      }),
    );
  });
});
