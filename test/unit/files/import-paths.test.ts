import { mkdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/core/clock.js';
import { importPaths } from '../../../src/files/import-paths.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../../../src/record/record-batch.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import { otlp, running, sampleLines, samplePath, temporaryFolder } from './reading.js';

const folder = temporaryFolder('import-paths');

/** Takes everything, after the errors that it was given. */
class Taking implements RecordConsumer {
  readonly deliveries: Delivery[] = [];
  constructor(private readonly errors: Error[] = []) {}
  async consume(delivery: Delivery): Promise<void> {
    const error = this.errors.shift();
    if (error !== undefined) throw error;
    this.deliveries.push(delivery);
  }
  get batches() {
    return this.deliveries.flatMap((delivery) => delivery.batches);
  }
}

/** Time passes as soon as someone waits for it. */
class JumpingClock implements Clock {
  readonly waits: number[] = [];
  nowUnixMs = () => 0;
  monotonicMs = () => 0;
  after(delayMs: number, callback: () => void) {
    this.waits.push(delayMs);
    queueMicrotask(callback);
    return { cancel() {} };
  }
}

function importing(paths: readonly string[], consumer: RecordConsumer, clock = new JumpingClock()) {
  return importPaths(paths, consumer, { otlp, clock, workingDir: folder.path('.'), signal: running });
}

describe('importPaths', () => {
  it('hands over the records of all formats as batches of one trace without a resource', async () => {
    const consumer = new Taking();
    const paths = [samplePath('build-clean'), samplePath('parse', 'otel.parquet')];
    const result = await importing(paths, consumer);
    expect(result).toMatchObject({
      recordCount: 254 + 63,
      passthroughCount: 0,
      rejectCount: 0,
      rejects: [],
      fileCount: 2,
    });
    expect(new Set(consumer.batches.map((batch) => batch.resource))).toEqual(new Set([UNKNOWN_RESOURCE]));
    expect(consumer.batches.flatMap((batch) => batch.records).map(formatRecordLine)).toEqual([
      ...sampleLines('build-clean'),
      ...sampleLines('parse'),
    ]);
  });

  it('joins the records of traces that lie mixed in one file', async () => {
    const consumer = new Taking();
    const other = sampleLines('parse').map((line) =>
      line.replace(/"trace_id":"\w+"/, `"trace_id":"${'a'.repeat(32)}"`),
    );
    const mixed = sampleLines('parse').flatMap((line, index) => [line, other[index] ?? '']);
    await importing([folder.write('mixed.jsonl', `${mixed.join('\n')}\n`)], consumer);
    expect(consumer.batches.map((batch) => batch.records.length)).toEqual([63, 63]);
  });

  it('tells rejects with their file when there are several', async () => {
    const bad = folder.write('bad.jsonl', 'nonsense\n');
    const alone = await importing([bad], new Taking());
    expect(alone.rejects).toMatchObject([{ place: 'line 1' }]);
    const both = await importing([bad, samplePath('parse')], new Taking());
    expect(both.rejects).toMatchObject([{ place: `${bad} line 1` }]);
  });

  it('keeps the first hundred rejects and counts them all', async () => {
    const bad = folder.write('many.jsonl', 'nonsense\n'.repeat(250));
    const result = await importing([bad], new Taking());
    expect([result.rejectCount, result.rejects.length]).toEqual([250, 100]);
  });

  it('takes folders and patterns, each file once, and packed ones', async () => {
    mkdirSync(folder.path('runs/deep'), { recursive: true });
    folder.write('runs/a.jsonl', `${sampleLines('parse').join('\n')}\n`);
    folder.write('runs/deep/b.jsonl.gz', gzipSync(`${sampleLines('build-clean').join('\n')}\n`));
    folder.write('runs/manifest.json', '{}');
    const result = await importing([folder.path('runs'), folder.path('runs/*.jsonl')], new Taking());
    expect(result).toMatchObject({ fileCount: 2, recordCount: 63 + 254, rejectCount: 0 });
  });

  it('passes over a damaged file among several, and tells it and other rejects as they come', async () => {
    const bad = folder.write('empty.parquet', '');
    const torn = folder.write('torn.jsonl', `${sampleLines('parse')[0]}\n{"record_type":"SpanE`);
    const reported: unknown[] = [];
    const result = await importPaths([bad, torn], new Taking(), {
      otlp,
      clock: new JumpingClock(),
      workingDir: folder.path('.'),
      signal: running,
      onRejects: async (path, rejects) => void reported.push([path, ...rejects]),
    });
    expect(result).toMatchObject({ recordCount: 1, rejectCount: 2 });
    expect(reported).toEqual([
      [
        bad,
        expect.objectContaining({
          place: 'the file',
          reason: expect.stringContaining('is empty: the engine was killed'),
        }),
      ],
      [torn, expect.objectContaining({ place: 'line 2', text: '{"record_type":"SpanE' })],
    ]);
    await expect(importing([bad], new Taking())).rejects.toThrow('is empty');
  });

  it('takes nothing when one of the files is not there', async () => {
    const consumer = new Taking();
    const paths = [samplePath('parse'), folder.path('none.jsonl')];
    await expect(importing(paths, consumer)).rejects.toMatchObject({ code: 'notFound' });
    expect(consumer.deliveries).toEqual([]);
  });

  it('waits as long as the consumer asks and offers the same again', async () => {
    const clock = new JumpingClock();
    const consumer = new Taking([new ConsumeError('overloaded', 'full', 70), new ConsumeError('unavailable', 'x', 30)]);
    await importing([samplePath('parse')], consumer, clock);
    expect(clock.waits).toEqual([70, 30]);
    expect(consumer.batches.flatMap((batch) => batch.records)).toHaveLength(63);
  });

  it('gives up on a refusal, and on a consumer that never takes anything', async () => {
    const refusing = new Taking([new ConsumeError('refused', 'no', 0)]);
    await expect(importing([samplePath('parse')], refusing)).rejects.toThrow('no');
    const full = new Taking(Array.from({ length: 50 }, () => new ConsumeError('overloaded', 'full', 1)));
    await expect(importing([samplePath('parse')], full)).rejects.toThrow('full');
  });
});
