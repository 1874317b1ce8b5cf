import { describe, expect, it } from 'vitest';
import { DEFAULT_MAPPING_OPTIONS } from '../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../src/export/mapping/otel-run-mapper.js';
import type { LoggedLines } from '../../../src/export/run-mapper.js';
import { RunReplay } from '../../../src/export/run-mapper.js';
import type { MappedItems } from '../../../src/export/wire/item-window.js';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import { parseRecordLine } from '../../../src/record/record-line.js';
import type { RunSummary } from '../../../src/run/verdict.js';
import type { ExportCursor } from '../../../src/storage/cursor-store.js';
import { itemsOf } from '../../fake/mapped-items.js';
import { sampleLines, sampleTraceId } from '../../fake/sample-run.js';

const RUN = sampleTraceId('build-mixed');
const LINES = sampleLines('build-mixed');
const BYTES = Buffer.from(`${LINES.join('\n')}\n`);
const RECORDS = loggedRecords();
const SUMMARY: RunSummary = {
  traceId: RUN,
  firstSeenUnixMs: 0,
  lastSeenUnixMs: 0,
  state: 'finished',
  logBytes: BYTES.length,
  invocations: [],
};

function loggedRecords(): readonly LoggedRecord[] {
  let offset = 0;
  return LINES.map((line) => {
    const start = offset;
    offset += Buffer.byteLength(line) + 1;
    return { record: parseRecordLine(line), resource: UNKNOWN_RESOURCE, offset: start, endOffset: offset };
  });
}

/** So short that spans are let go as the run goes on. */
const HOLD_MS = 20;

/** Offset of the record at a part of the log's length. */
function offsetAt(part: number): number {
  return RECORDS[Math.floor(RECORDS.length * part)]?.offset ?? BYTES.length;
}

function replayFrom(cursor: Partial<ExportCursor>, eventHoldMs = DEFAULT_MAPPING_OPTIONS.eventHoldMs): RunReplay {
  const start = { destination: 'x', traceId: RUN, tracesOffset: 0, logsOffset: 0, finishedAtBytes: null };
  const summary = cursor.finishedAtBytes == null ? undefined : { ...SUMMARY, logBytes: cursor.finishedAtBytes };
  return new RunReplay(
    new OtelRunMapper({ ...DEFAULT_MAPPING_OPTIONS, eventHoldMs }),
    { ...start, ...cursor },
    summary,
  );
}

function said(items: MappedItems): readonly unknown[] {
  return itemsOf(items).map((item) =>
    item.signal === 'traces'
      ? [item.anchorOffset, item.span.spanContext().spanId, item.span.name, item.span.events.length]
      : [item.anchorOffset, item.log.body],
  );
}

const piece = (from: number, to: number): LoggedLines => ({
  resource: UNKNOWN_RESOURCE,
  offset: from,
  lines: BYTES.subarray(from, to),
});

describe('a replay of a record log', () => {
  it.each<[string, Partial<ExportCursor>]>([
    ['from the start', {}],
    ['from where spans and logs were sent', { tracesOffset: offsetAt(0.4), logsOffset: offsetAt(0.6) }],
    ['between two records', { tracesOffset: offsetAt(0.5) + 7 }],
    [
      'of a run that was finished before and grew',
      { tracesOffset: offsetAt(0.7), logsOffset: offsetAt(0.7), finishedAtBytes: offsetAt(0.7) },
    ],
  ])('%s gives the same, however the lines are cut', (_, cursor) => {
    const inOne = replayFrom(cursor);
    const expected = [inOne.pushLines([piece(0, BYTES.length)]), inOne.finish(SUMMARY)].flatMap(said);
    for (const count of [1, 7, 40]) {
      const inPieces = replayFrom(cursor);
      const items: unknown[] = [];
      for (let part = 0; part < count; part += 1) {
        const [from, to] = [offsetAt(part / count), offsetAt((part + 1) / count)];
        const middle = RECORDS.find((record) => record.offset > (from + to) / 2)?.offset ?? to;
        items.push(...said(inPieces.pushLines([piece(from, middle), piece(middle, to)])));
      }
      items.push(...said(inPieces.finish(SUMMARY)));
      expect(inPieces.readOffset).toBe(BYTES.length);
      expect(items).toEqual(expected);
    }
    expect(expected.length).toBeGreaterThan(50);
  });

  it.each([1, 7, 100])('gives the same where %i spans are let go at a time', (maxSpans) => {
    for (const cursor of [{}, { tracesOffset: offsetAt(0.4), logsOffset: offsetAt(0.6) }]) {
      const atOnce = replayFrom(cursor, HOLD_MS);
      const expected = [atOnce.pushLines([piece(0, BYTES.length)]), atOnce.finish(SUMMARY)].flatMap(said);
      const inParts = replayFrom(cursor, HOLD_MS);
      const items: unknown[] = [];
      let pushCount = 0;
      while (inParts.readOffset < BYTES.length) {
        const middle = RECORDS.find(({ offset }) => offset > (inParts.readOffset + BYTES.length) / 2)?.offset;
        const pieces = middle === undefined ? [] : [piece(inParts.readOffset, middle)];
        pieces.push(piece(middle ?? inParts.readOffset, BYTES.length));
        items.push(...said(inParts.pushLines(pieces, maxSpans)));
        pushCount += 1;
      }
      while (inParts.bufferedCount > 0) items.push(...said(inParts.takePending(maxSpans)));
      items.push(...said(inParts.finish(SUMMARY)));
      expect(items).toEqual(expected);
      if (maxSpans === 1) expect(pushCount).toBeGreaterThan(10);
    }
  });

  it('counts lines that are no records', () => {
    const replay = replayFrom({});
    replay.pushLines([
      piece(0, offsetAt(0.5)),
      { resource: UNKNOWN_RESOURCE, offset: offsetAt(0.5), lines: Buffer.from('{"a\n') },
    ]);
    expect(replay.damagedCount).toBe(1);
  });

  it('that goes on after the end of its run gives what one that reads the log again gives', () => {
    for (const part of [0.3, 0.5, 0.7, 0.95]) {
      const finishedAtBytes = offsetAt(part);
      const [first, last] = [piece(0, finishedAtBytes), piece(finishedAtBytes, BYTES.length)];
      const kept = replayFrom({});
      kept.pushLines([first]);
      kept.finish({ ...SUMMARY, logBytes: finishedAtBytes });
      const anew = replayFrom({ finishedAtBytes, tracesOffset: finishedAtBytes, logsOffset: finishedAtBytes });
      anew.pushLines([first]);
      const late = [kept.pushLines([last]), kept.finish(SUMMARY)].flatMap(said);
      expect(late).toEqual([anew.pushLines([last]), anew.finish(SUMMARY)].flatMap(said));
      expect(late.length).toBeGreaterThan(5);
    }
  });

  it('makes nothing of what was sent', () => {
    const mapper = new OtelRunMapper();
    mapper.skipTo(offsetAt(0.9), offsetAt(0.8));
    mapper.pushLines(piece(0, BYTES.length));
    const anchors = itemsOf(mapper.take(true)).map(({ signal, anchorOffset }) => [signal, anchorOffset] as const);
    expect(anchors.length).toBeGreaterThan(5);
    expect(anchors.filter(([signal, at]) => at < offsetAt(signal === 'traces' ? 0.9 : 0.8))).toEqual([]);
  });
});
