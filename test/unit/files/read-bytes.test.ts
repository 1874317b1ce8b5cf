import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { openSource } from '../../../src/files/open-source.js';
import { readBytes } from '../../../src/files/read-bytes.js';
import { otlp, readAll, running, samplePath, temporaryFolder } from './reading.js';

const folder = temporaryFolder('read-bytes');
const packedPath = (name: string) => new URL(`../../fixture/packed/${name}`, import.meta.url).pathname;
const sample = readFileSync(samplePath('build-mixed'));
const parse = readFileSync(samplePath('parse'));

async function unpack(path: string) {
  const pieces: Uint8Array[] = [];
  let bytesRead = 0;
  for await (const piece of readBytes(path, running)) {
    pieces.push(piece.bytes);
    expect(piece.bytesRead).toBeGreaterThanOrEqual(bytesRead);
    bytesRead = piece.bytesRead;
  }
  return { bytes: Buffer.concat(pieces), bytesRead, largest: Math.max(...pieces.map(({ length }) => length)) };
}

describe('readBytes', () => {
  it('gives a plain file as it is', async () => {
    const { bytes, bytesRead } = await unpack(samplePath('build-mixed'));
    expect([bytes.equals(sample), bytesRead]).toEqual([true, sample.length]);
  });

  it('unpacks gzip, also of several members, in bounded pieces', async () => {
    const packed = Buffer.concat([gzipSync(sample), gzipSync(parse)]);
    const { bytes, bytesRead, largest } = await unpack(folder.write('two.jsonl.gz', packed));
    expect(bytes.equals(Buffer.concat([sample, parse]))).toBe(true);
    expect([bytesRead, largest <= 256 * 1024]).toEqual([packed.length, true]);
  });

  it('unpacks zstd, with a large window and of several frames', async () => {
    expect((await unpack(packedPath('build-mixed.jsonl.zst'))).bytes.equals(sample)).toBe(true);
    expect((await unpack(packedPath('parse-twice.jsonl.zst'))).bytes.equals(Buffer.concat([parse, parse]))).toBe(true);
  });

  it('unpacks 200 MB of zeros in small pieces, at most 16 MiB of them at once', async () => {
    const bytesAt = new Map<number, number>();
    for await (const { bytes, bytesRead } of readBytes(packedPath('zeros.jsonl.zst'), running)) {
      expect(bytes.length).toBeLessThanOrEqual(128 * 1024);
      bytesAt.set(bytesRead, (bytesAt.get(bytesRead) ?? 0) + bytes.length);
    }
    expect([...bytesAt.values()].reduce((sum, bytes) => sum + bytes)).toBe(200_000_000);
    expect(Math.max(...bytesAt.values())).toBeLessThanOrEqual(16 * 2 ** 20);
  });

  it.each([
    ['cut.jsonl.gz', gzipSync(sample).subarray(0, 10_000), 'gzip: unexpected end of file'],
    ['bad.jsonl.gz', Buffer.from('no gzip at all, whatever its name'), 'gzip: incorrect header check'],
    ['cut.jsonl.zst', readFileSync(packedPath('build-mixed.jsonl.zst')).subarray(0, 10_000), 'zstd: unexpected EOF'],
    [
      'wide.jsonl.zst',
      Buffer.from('28b52ffd04a8010000', 'hex'),
      'zstd: it needs a window of 2048 MiB; at most 32 are supported',
    ],
    ['bad.jsonl.zst', Buffer.from('no zstd at all, whatever its name'), 'zstd: invalid zstd data'],
  ])('says what is wrong with %s', async (name, bytes, reason) => {
    const reading = unpack(folder.write(name, bytes));
    await expect(reading).rejects.toMatchObject({ name: 'SourceError', code: 'unreadable' });
    await expect(reading).rejects.toThrow(`cannot be unpacked as ${reason}`);
  });
});

describe('packed telemetry', () => {
  it('gives the records before the damage', async () => {
    const source = await openSource(folder.write('torn.jsonl.gz', gzipSync(sample).subarray(0, 20_000)), otlp);
    let recordCount = 0;
    const reading = async () => {
      for await (const { delivery } of source.read(running)) {
        for (const { records } of delivery.batches) recordCount += records.length;
      }
    };
    await expect(reading()).rejects.toThrow('cannot be unpacked');
    expect(recordCount).toBeGreaterThan(100);
  });

  it('holds the limit of a line inside what is unpacked', async () => {
    const { rejects } = await readAll(await openSource(packedPath('zeros.jsonl.zst'), otlp));
    expect(rejects).toMatchObject([{ place: 'line 1', reason: 'longer than 67108864 bytes' }]);
  });

  it('tells OTLP by what is inside, and refuses packed Parquet', async () => {
    const path = folder.write('traces.json.gz', gzipSync('{"resourceSpans":[]}\n'));
    expect((await openSource(path, otlp)).constructor.name).toBe('OtlpJsonFile');
    const opening = openSource(folder.write('run.parquet.gz', gzipSync('PAR1')), otlp);
    await expect(opening).rejects.toThrow('run.parquet.gz is packed Parquet, which cannot be read in order. Unpack it');
  });
});
