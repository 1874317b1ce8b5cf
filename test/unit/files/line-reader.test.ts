import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { LineSplitter } from '../../../src/core/lines.js';
import { JsonlKeys } from '../../../src/exec/command-records.js';
import { CommandSteps } from '../../../src/exec/command-steps.js';
import { LineReader, readLine } from '../../../src/files/read-record.js';
import { batchesOf } from '../../../src/files/record-source.js';
import type { Appended, AppendedPiece } from '../../../src/log/appended.js';
import { FreshRecords, loggedRecords } from '../../../src/log/appended.js';
import { JsonlRecordLog } from '../../../src/log/jsonl-record-log.js';
import { PassthroughSegments } from '../../../src/log/passthrough-segments.js';
import { CellBatch, ItemChunk } from '../../../src/otlp/wire/item-chunk.js';
import { itemReading } from '../../../src/otlp/wire/read-items.js';
import { buffer, REGION } from '../../../src/record/arena.js';
import type { RecordBatch } from '../../../src/record/record-batch.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import { RunState } from '../../../src/run/open-run.js';
import { stepStart } from '../../contract/step-registry.contract.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';
import { sampleDeliveries } from '../../fake/sample-deliveries.js';
import { SENT_SAMPLES, SMALL_SAMPLES, sampleLines } from '../../fake/sample-run.js';
import { LARGE_SAMPLES } from '../../tool/large-samples.js';

const NO_WAIT = { quietAfterProcessMs: 0, quietAfterInvocationMs: 0, silenceMs: 0 };
const RUNS = [...SMALL_SAMPLES, ...LARGE_SAMPLES];

/** Some lines that were read: as cells, or as records alone. */
type Read = (lines: ReturnType<typeof splitLines>) => { batches: readonly RecordBatch[]; release(): void };

const asRecords: Read = (lines) => ({
  batches: batchesOf(lines.flatMap((line) => readLine(line).records)),
  release() {},
});

function asCells(): Read {
  const reader = new LineReader();
  return (lines) => reader.read(lines);
}

function splitLines(texts: readonly string[]) {
  const splitter = new LineSplitter();
  splitter.push(Buffer.from(texts.map((text) => `${text}\n`).join('')));
  return splitter.take().lines;
}

/** A sample's lines as they come while it is written, a few hundred at a time. */
function* parts(run: string) {
  const lines = sampleLines(run);
  for (let from = 0, count = 1; from < lines.length; from += count, count = Math.min(700, 3 * count)) {
    yield splitLines(lines.slice(from, from + count));
  }
}

function piecesOf(batches: readonly RecordBatch[], offset: number): readonly AppendedPiece[] {
  const fresh = new FreshRecords();
  for (const batch of batches) {
    if (batch instanceof CellBatch) for (let at = batch.from; at < batch.to; at++) fresh.addItem(batch, at);
    else for (const record of batch.records) fresh.addRecord(record, batch.resource);
  }
  return fresh.pieces(offset);
}

/** What a run's lines add up to, and its records with their offsets. */
function told(run: string, read: Read, disturb: () => void = () => {}) {
  const state = new RunState(NO_WAIT);
  const logged: string[] = [];
  let offset = 0;
  for (const lines of parts(run)) {
    const { batches, release } = read(lines);
    disturb();
    const pieces = piecesOf(batches, offset);
    state.addPieces(pieces, 1);
    for (const piece of pieces) {
      for (const { record, offset: at, endOffset } of loggedRecords(piece)) {
        logged.push(`${at} ${endOffset} ${formatRecordLine(record)}`);
      }
      offset += piece.lines.length;
    }
    release();
  }
  return { judged: state.judge(2), logged };
}

describe('lines of JSONL that are read as cells', () => {
  it.each(RUNS)('add up to what their records add up to, each where it stands: %s', (run) => {
    const byCells = told(run, asCells());
    expect(byCells.logged.length).toBe(sampleLines(run).length);
    expect(byCells).toEqual(told(run, asRecords));
  });

  it.each(LARGE_SAMPLES)('are nearly all of what the engine writes: %s', (run) => {
    const asked = vi.spyOn(ItemChunk.prototype, 'recordsOf');
    onTestFinished(() => asked.mockRestore());
    const reader = new LineReader();
    const counts = { cells: 0, others: 0 };
    const state = new RunState(NO_WAIT);
    for (const lines of parts(run)) {
      const { batches, release } = reader.read(lines);
      for (const batch of batches) {
        if (batch instanceof CellBatch) counts.cells += batch.to - batch.from;
        else counts.others += batch.records.length;
      }
      state.addPieces(piecesOf(batches, 0), 1);
      release();
    }
    expect(counts.cells).toBeGreaterThan(15_000);
    expect(counts.others / counts.cells).toBeLessThan(0.01);
    expect(asked.mock.calls.length / counts.cells).toBeLessThan(0.01);
  });

  it('also when others needed their room, and when layouts were forgotten', () => {
    const isSpilled = vi.spyOn(ItemChunk.prototype, 'spill');
    onTestFinished(() => isSpilled.mockRestore());
    const needRoom = () => {
      const others = Array.from({ length: 12 }, () => [...sampleDeliveries('build-mixed')]).flat();
      const large = [...sampleDeliveries('big-build')];
      for (const { release } of [...others, ...large]) release?.();
    };
    const expected = told('build-mixed', asRecords);
    expect(told('build-mixed', asCells(), needRoom)).toEqual(expected);
    expect(isSpilled).toHaveBeenCalled();
    expect(told('build-mixed', asCells(), forgetLayouts)).toEqual(expected);
  });

  it('give way to plain code where they are damaged, of another spelling or no records, in their order', () => {
    const [first = '', second = '', third = '', ...others] = sampleLines('build-clean').slice(0, 40);
    const texts = [
      ...[
        first,
        '{"record_type":"Span',
        second + third,
        third.replace('"links":null', '"links": null'),
        'no JSON',
        ...others,
      ],
      ...[first.slice(0, 100) + second, `${third}\r`, third.replace('"severity_number":9', '"severity_number":99')],
    ];
    const lines = splitLines(texts);
    const { batches, rejects, release } = new LineReader().read(lines);
    const plain = lines.map(readLine);
    expect(batches.flatMap(({ records }) => records)).toEqual(plain.flatMap(({ records }) => records));
    expect(rejects).toEqual(plain.flatMap((one) => one.rejects));
    expect(rejects.length).toBeGreaterThan(1);
    release();
  });

  it.each(['build-mixed', 'overlapping'])(
    'are stored as their records are, and known again whichever way they come again: %s',
    async (run) => {
      const stored: string[] = [];
      for (const ways of [
        [asRecords, asRecords],
        [asCells(), asRecords],
        [asRecords, asCells()],
        [asCells(), asCells()],
      ]) {
        stored.push(await storedOf(run, ways));
      }
      expect(new Set(stored).size).toBe(1);
      expect(stored[0]?.split('\n').length).toBe(sampleLines(run).length + 1);
    },
  );

  it.each(SENT_SAMPLES)('leave nothing of the OTLP of the same run to be missing: %s', (run) => {
    const [keys, expected] = [new JsonlKeys(), new JsonlKeys()];
    const read = asCells();
    for (const lines of parts(run)) {
      const { batches, release } = read(lines);
      for (const batch of batches) keys.noteAll(batch);
      for (const batch of asRecords(lines).batches) expected.noteAll(batch);
      release();
    }
    const sent = [...sampleDeliveries(run)].flatMap(({ batches }) => batches.flatMap(({ records }) => records));
    expect(sent.map((record) => keys.lacks(record))).toEqual(sent.map((record) => expected.lacks(record)));
  });

  it.each(SMALL_SAMPLES)('are of the commands that their records are of: %s', async (run) => {
    const [byCells, byRecords] = await Promise.all([stepsOf(run, asCells()), stepsOf(run, asRecords)]);
    expect(byCells).toEqual(byRecords);
  });
});

/** The record log of a run that came twice, by two ways. */
async function storedOf(run: string, ways: readonly Read[]): Promise<string> {
  const dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-lines-'));
  const folders: string[] = [];
  const log = new JsonlRecordLog(
    {
      dataFolder,
      durability: 'os',
      maxOpenLogs: 2,
      maxOpenBytes: 2 ** 25,
      maxQueuedRecords: 200_000,
      nameHoldMs: 6000,
    },
    {
      clock: new FakeClock(),
      logger: new RecordingLogger(),
      passthrough: new PassthroughSegments(join(dataFolder, 'foreign'), { isSynced: false, listeners: [] }),
      listeners: [
        {
          onAppended({ traceId }: Appended) {
            folders.push(join(dataFolder, 'runs', traceId));
          },
        },
      ],
    },
  );
  try {
    for (const read of ways) {
      for (const lines of parts(run)) {
        const { batches, release } = read(lines);
        await log.consume({ batches, passthrough: [] });
        release();
      }
    }
    return [...new Set(folders)].map((folder) => readFileSync(join(folder, 'telemetry.jsonl'), 'utf8')).join('');
  } finally {
    await log.shutdown(new AbortController().signal);
    rmSync(dataFolder, { recursive: true, force: true });
  }
}

/** The step of each record, in their order within a trace, and what is known of the steps. */
async function stepsOf(run: string, read: Read) {
  const ofRecords: string[] = [];
  const consumer = {
    async consume({ batches }: { readonly batches: readonly RecordBatch[] }) {
      for (const { resource, records } of batches) {
        for (const { spanId, recordType } of records) {
          ofRecords.push(`${recordType} ${spanId} of ${resource.attributes['run_bridge.step.id']}`);
        }
      }
    },
  };
  const registry = { async register() {}, async attach() {}, async end() {} };
  const steps = new CommandSteps(
    async () => ({ consumer: consumer as never, registry: registry as never }),
    stepStart('s', {}),
    '',
  );
  for (const lines of parts(run)) {
    const { batches, release } = read(lines);
    await steps.consume({ batches, passthrough: [] });
    release();
  }
  return {
    ofRecords: ofRecords.sort(),
    steps: JSON.stringify(steps.steps, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  };
}

const SCRATCH = REGION.scratch + 1024;

function forgetLayouts(): void {
  const { layouts } = itemReading();
  const { forgottenCount } = layouts;
  const placeOf = (text: string) => [SCRATCH, SCRATCH + buffer.write(text, SCRATCH)] as const;
  for (const name of Array.from({ length: 5_000 }, (_, number) => `name_${forgottenCount}_${number}`)) {
    layouts.tidy();
    const first = layouts.ofLog(...placeOf('v1.public.events.fusion.log.LogMessage'))?.first;
    const [start, end] = placeOf(name);
    first?.follow(start, end - start);
  }
  layouts.tidy();
  expect(layouts.forgottenCount).toBeGreaterThan(forgottenCount);
}
