import { existsSync, linkSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { convertFile } from '../../../src/files/convert-file.js';
import { otlp, running, sampleLines, samplePath, temporaryFolder } from './reading.js';

const folder = temporaryFolder('convert-file');
const options = { otlp, signal: running };
const SAMPLES = [
  'build-clean',
  'build-mixed',
  'build-mixed-fusion',
  'fail-fast',
  'interrupted',
  'joined',
  'parse',
  'preview-120-failed',
];

describe.each(SAMPLES)('%s', (sample) => {
  it('comes back byte by byte from JSONL through Parquet', async () => {
    const parquet = folder.path(`${sample}.parquet`);
    const jsonl = folder.path(`${sample}.jsonl`);
    const result = await convertFile(samplePath(sample), parquet, options);
    expect(result).toEqual({
      recordCount: sampleLines(sample).length,
      passthroughCount: 0,
      rejectCount: 0,
      rejects: [],
    });
    await convertFile(parquet, jsonl, options);
    expect(readFileSync(jsonl, 'utf8')).toBe(readFileSync(samplePath(sample), 'utf8'));
  });

  it('keeps every record from JSONL through OTLP JSON lines', async () => {
    const lines = folder.path(`${sample}.otlp.jsonl`);
    const jsonl = folder.path(`${sample}-again.jsonl`);
    await convertFile(samplePath(sample), lines, options);
    await convertFile(lines, jsonl, options);
    expect(folder.lines(`${sample}-again.jsonl`).map(parsed).sort()).toEqual(sampleLines(sample).map(parsed).sort());
  });
});

describe('convertFile', () => {
  it('keeps several traces in one Parquet file', async () => {
    const two = folder.write(
      'two.jsonl',
      ['build-clean', 'parse'].map((sample) => readFileSync(samplePath(sample), 'utf8')).join(''),
    );
    await convertFile(two, folder.path('two.parquet'), options);
    await convertFile(folder.path('two.parquet'), folder.path('two-again.jsonl'), options);
    expect(folder.lines('two-again.jsonl')).toEqual([...sampleLines('build-clean'), ...sampleLines('parse')]);
  });

  it('goes from Parquet to OTLP and back', async () => {
    const parquet = samplePath('fail-fast', 'otel.parquet');
    await convertFile(parquet, folder.path('ff.otlp.json'), options);
    await convertFile(folder.path('ff.otlp.json'), folder.path('ff.jsonl'), options);
    expect(folder.lines('ff.jsonl').map(parsed).sort()).toEqual(sampleLines('fail-fast').map(parsed).sort());
  });

  it("counts other services' telemetry, which only OTLP can hold", async () => {
    const passthrough = {
      resourceSpans: [
        {
          resource: { attributes: [{ key: 'service.name', value: { stringValue: 'airflow' } }] },
          scopeSpans: [
            { scope: {}, spans: [{ traceId: 'b'.repeat(32), spanId: 'c'.repeat(16), name: 'task', kind: 1 }] },
          ],
        },
      ],
    };
    const path = folder.write('foreign.otlp.jsonl', `${JSON.stringify(passthrough)}\n`);
    expect(await convertFile(path, folder.path('foreign.jsonl'), options)).toMatchObject({ passthroughCount: 1 });
    await convertFile(path, folder.path('foreign-again.otlp.jsonl'), options);
    expect(folder.lines('foreign-again.otlp.jsonl')[0]).toContain('"name":"task"');
  });

  it('tells what it passed over and converts the rest', async () => {
    const path = folder.write('rejects.jsonl', `${sampleLines('parse')[0]}\nnonsense\n`);
    const result = await convertFile(path, folder.path('rejects.parquet'), options);
    expect(result).toMatchObject({ recordCount: 1, rejectCount: 1, rejects: [{ place: 'line 2' }] });
  });

  it('tells how far it is', async () => {
    const progress: unknown[] = [];
    await convertFile(samplePath('parse'), folder.path('progress.parquet'), {
      ...options,
      onProgress: (now) => progress.push(now),
    });
    expect(progress.at(-1)).toEqual({ bytesRead: 36_093, totalBytes: 36_093, recordCount: 63 });
  });

  it('refuses to write over the file that it reads, by whatever name', async () => {
    const path = folder.write('same.jsonl', `${sampleLines('parse')[0]}\n`);
    linkSync(path, folder.path('link.otlp.jsonl'));
    await expect(convertFile(path, path, options)).rejects.toMatchObject({ name: 'ConvertError', code: 'sameFile' });
    await expect(convertFile(path, folder.path('link.otlp.jsonl'), options)).rejects.toThrow(/are the same file/);
    expect(folder.lines('same.jsonl')).toHaveLength(1);
  });

  it('says what is wrong with the file to write before it reads anything', async () => {
    await expect(convertFile(samplePath('parse'), folder.path('no/such.parquet'), options)).rejects.toMatchObject({
      code: 'unwritable',
    });
    await expect(convertFile(samplePath('parse'), folder.path('out.csv'), options)).rejects.toMatchObject({
      code: 'unknownFormat',
    });
  });

  it('leaves an earlier file and no other when it is stopped', async () => {
    const out = folder.path('stopped.parquet');
    writeFileSync(out, 'earlier');
    const stopped = AbortSignal.abort();
    await expect(convertFile(samplePath('parse'), out, { otlp, signal: stopped })).rejects.toThrow(/abort/i);
    expect(readFileSync(out, 'utf8')).toBe('earlier');
    expect(existsSync(`${out}.partial`)).toBe(false);
  });
});

function parsed(line: string): string {
  // Equal as JSON: OTLP keeps no order of keys.
  return JSON.stringify(sorted(JSON.parse(line)));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  );
}
