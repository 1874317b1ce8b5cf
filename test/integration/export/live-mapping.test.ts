import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEFAULT_MAPPING_OPTIONS } from '../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../src/export/mapping/otel-run-mapper.js';
import { type AppendedPiece, FreshRecords } from '../../../src/log/appended.js';
import { CellBatch } from '../../../src/otlp/wire/item-chunk.js';
import { itemReading } from '../../../src/otlp/wire/read-items.js';
import { Cell, cellsBeside, pointAt, setCell } from '../../../src/record/cells.js';
import { itemRing } from '../../../src/record/item-ring.js';
import type { Delivery } from '../../../src/record/record-batch.js';
import { texts } from '../../../src/record/texts.js';
import type { RedactionLevel } from '../../../src/redaction/known-names.js';
import { itemsOf, type MappedItem } from '../../fake/mapped-items.js';
import { sampleDeliveries } from '../../fake/sample-deliveries.js';
import { SMALL_SAMPLES, sampleFolder } from '../../fake/sample-run.js';
import { finish, type MappedBytes } from '../../unit/export/mapping/mapped-bytes.js';

const LEVELS: readonly RedactionLevel[] = ['literals', 'off'];

/** What others do to what a mapper needs, between two pushes. */
type Disturbance = () => void;

const NOTHING: Disturbance = () => {};
/** Takes all room for items, so that those that are held are copied. */
const takeRoom: Disturbance = () => {
  for (let count = 0; count < 40; count++) itemRing.take(2 ** 20);
};
const forgetTexts: Disturbance = () => texts.forgetAll();
/** As ever new names do. */
const forgetLayouts: Disturbance = () => {
  const { layouts } = itemReading();
  layouts.constants.clear();
  layouts.tidy();
};
/** Somebody looks at an item of his own, and changes a number that he reads from it. */
const lookElsewhere: Disturbance = () => {
  const own = itemRing.take(4096);
  if (own === undefined) throw new Error('the ring has no room');
  pointAt(cellsBeside(own.start));
  setCell(Cell.layout, 0);
};

/** The pieces of a run's deliveries, as a record log that keeps everything appends them. */
function* piecesOf(deliveries: Iterable<Delivery>): Generator<AppendedPiece> {
  let offset = 0;
  for (const { batches, release } of deliveries) {
    const fresh = new FreshRecords();
    for (const batch of batches) {
      if (batch instanceof CellBatch) for (let at = batch.from; at < batch.to; at++) fresh.addItem(batch, at);
      else for (const record of batch.records) fresh.addRecord(record, batch.resource);
    }
    for (const piece of fresh.pieces(offset)) {
      yield piece;
      offset = piece.offset + piece.lines.length;
    }
    release?.();
  }
}

/** Maps a run as it is appended. @param isLive by cells, or by lines */
function map(run: string, redaction: RedactionLevel, isLive: boolean, disturb: Disturbance): MappedBytes {
  const mapper = new OtelRunMapper({ ...DEFAULT_MAPPING_OPTIONS, redaction });
  const items: MappedItem[] = [];
  const log: Buffer[] = [];
  let itemCount = 0;
  for (const piece of piecesOf(sampleDeliveries(run))) {
    const { resource, offset, lines } = piece;
    log.push(Buffer.from(lines));
    disturb();
    if (isLive && piece.items !== undefined) {
      mapper.pushLines({ resource, offset, lines, items: piece.items });
      itemCount += piece.items.to - piece.items.from;
    } else mapper.pushLines({ resource, offset, lines });
    for (const item of itemsOf(mapper.take(false))) items.push(item);
    disturb();
  }
  expect(itemCount > 0).toBe(isLive);
  return finish(mapper, Buffer.concat(log), items);
}

const RUNS = [...SMALL_SAMPLES.filter((run) => existsSync(join(sampleFolder(run), 'otlp'))), 'big-build'];

describe.each(RUNS)('%s, mapped as it is appended', (run) => {
  it.each(LEVELS)('is exported as its lines are, at level %s', (level) => {
    expect(map(run, level, true, NOTHING)).toEqual(map(run, level, false, NOTHING));
  });
});

it.each([
  ['others need the room of its items', takeRoom],
  ['all remembered texts are forgotten', forgetTexts],
  ['all layouts are forgotten', forgetLayouts],
  ['somebody looks at another item', lookElsewhere],
] as const)('is exported as its lines are when %s', (_what, disturb) => {
  for (const run of ['build-mixed', 'fail-fast', 'joined']) {
    const expected = map(run, 'literals', false, NOTHING);
    expect(map(run, 'literals', true, disturb)).toEqual(expected);
    expect(map(run, 'literals', false, disturb)).toEqual(expected);
  }
});
