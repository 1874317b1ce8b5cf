import { afterEach, expect, it, vi } from 'vitest';
import { GrowingBytes } from '../../../../src/core/bytes.js';
import { ItemCells } from '../../../../src/otlp/wire/item-cells.js';
import { CellBatch, FIELD, ItemChunk } from '../../../../src/otlp/wire/item-chunk.js';
import { Cell, cell } from '../../../../src/record/cells.js';
import { itemRing } from '../../../../src/record/item-ring.js';
import { logDigest } from '../../../../src/record/log-digest.js';
import { sampleDeliveries } from '../../../fake/sample-deliveries.js';

afterEach(() => vi.restoreAllMocks());

/** The chunks of a run's deliveries, over and over, which nobody gives back. */
function chunksOf(run: string, times: number): readonly ItemChunk[] {
  const batches = Array.from({ length: times }, () => [...sampleDeliveries(run)]).flatMap((deliveries) =>
    deliveries.flatMap((delivery) => delivery.batches),
  );
  return [...new Set(batches.flatMap((batch) => (batch instanceof CellBatch ? [batch.chunk] : [])))];
}

it('of what has no room in all of it, only what is looked at is read again, whatever comes between', () => {
  const chunks = chunksOf('big-build', 8);
  const reads = [vi.spyOn(ItemCells.prototype, 'readSpan'), vi.spyOn(ItemCells.prototype, 'readLog')];
  const readCount = () => reads.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  const [first] = chunks;
  if (first === undefined) throw new Error('the run has no chunk');
  for (let pass = 0; pass < 3; pass++) {
    const before = readCount();
    for (const chunk of chunks) {
      expect(chunk.look(pass % chunk.itemCount)).toBe(true);
      expect(cell(Cell.idHigh)).toBe(chunk.field(pass % chunk.itemCount, FIELD.idHigh));
      expect(cell(Cell.idLow)).toBe(chunk.field(pass % chunk.itemCount, FIELD.idLow));
    }
    expect(readCount() - before).toBeLessThanOrEqual(chunks.length);
  }
  for (const chunk of chunks) chunk.clear();
});

it('log records that are copied and get a name are what they were but for it, and not all read again for each', () => {
  const reads = vi.spyOn(ItemCells.prototype, 'readLog');
  const name = new GrowingBytes(Buffer.from('"a name"'));
  name.length = name.bytes.length;
  let count = 0;
  for (const chunk of chunksOf('big-build', 1).filter(({ isOfLogs }) => isOfLogs)) {
    const all = Array.from({ length: chunk.itemCount }, (_, index) => index);
    const waiting = all.filter((index) => chunk.lacksName(index));
    const copies = new ItemChunk(1024);
    copies.beginCopies(chunk.sizeOf(waiting, FIELD.itemStart, FIELD.itemEnd));
    const before = reads.mock.calls.length;
    const indexes = [...waiting];
    copies.copyLogs(chunk, indexes);
    for (const [at, index] of waiting.entries()) {
      const [was] = chunk.recordsOf(index);
      expect(copies.recordsOf(indexes[at] ?? 0)).toEqual([was]);
      copies.nameLog(indexes[at] ?? 0, name);
      const named = copies.itemCount - 1;
      expect(copies.look(named)).toBe(true);
      expect(cell(Cell.idLow)).toBe(chunk.field(index, FIELD.idLow));
      const [{ line, ...rest } = { line: '' }] = copies.recordsOf(named);
      expect([rest, copies.lastLineOf(named).toString()]).toEqual([{ ...was, spanName: 'a name' }, line]);
    }
    expect(reads.mock.calls.length - before).toBeLessThanOrEqual(waiting.length + 1);
    count += waiting.length;
    for (const one of [copies, chunk]) one.clear();
  }
  expect(count).toBeGreaterThan(100);
});

it('log records that came as records take no room among items', () => {
  const records = [...sampleDeliveries('build-clean')].flatMap(({ batches }) => batches.flatMap((one) => one.records));
  const taken = vi.spyOn(itemRing, 'take');
  const chunk = new ItemChunk(1024);
  chunk.beginCopies();
  const logs = records.filter((record) => record.recordType === 'LogRecord');
  expect(logs.length).toBeGreaterThan(5);
  for (const log of logs) chunk.addLog(log, logDigest(log));
  for (let index = 0; index < chunk.itemCount; index++) expect(chunk.look(index)).toBe(false);
  expect(taken).not.toHaveBeenCalled();
});
