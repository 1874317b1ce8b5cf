import { describe, expect, it } from 'vitest';
import { JsonlFile } from '../../../src/files/jsonl-file.js';
import { openSource, ParquetFile } from '../../../src/files/open-source.js';
import { OtlpJsonFile } from '../../../src/files/otlp-json-file.js';
import { otlp, readAll, sampleLines, samplePath, temporaryFolder } from './reading.js';

const folder = temporaryFolder('open-source');
const request = '{"resourceSpans":[]}\n';

describe('openSource', () => {
  it.each([
    ['run.jsonl', sampleLines('parse')[0] ?? '', JsonlFile],
    ['run.json', '', JsonlFile],
    ['run.NDJSON', 'half a li', JsonlFile],
    ['traces.jsonl', request, OtlpJsonFile],
    ['traces.json', ` \n ${request}`, OtlpJsonFile],
    ['collector.json', '{"resource_logs":[]}', OtlpJsonFile],
    ['run.otlp.jsonl', '', OtlpJsonFile],
    ['run.otlp.json', request, OtlpJsonFile],
    ['run.parquet', '', ParquetFile],
  ])('tells the format of %s', async (name, content, expected) => {
    expect(await openSource(folder.write(name, content), otlp)).toBeInstanceOf(expected);
  });

  it('names the endings that it knows when it does not know one', async () => {
    const opening = openSource(folder.write('run.csv', ''), otlp);
    await expect(opening).rejects.toMatchObject({ name: 'SourceError', code: 'unknownFormat' });
    await expect(opening).rejects.toThrow(/run\.csv: its name must end in \.jsonl/);
  });

  it('says that a file is not there, or is a folder', async () => {
    await expect(openSource(folder.path('none.jsonl'), otlp)).rejects.toMatchObject({ code: 'notFound' });
    await expect(openSource(folder.path('.'), otlp)).rejects.toThrow(/is a folder/);
  });

  it('tells a damaged Parquet file as unreadable when it is read', async () => {
    const source = await openSource(folder.write('bad.parquet', 'PAR1 nonsense PAR1'), otlp);
    await expect(readAll(source)).rejects.toMatchObject({ name: 'SourceError', code: 'unreadable' });
  });

  it('knows how far a Parquet file is read', async () => {
    const path = samplePath('build-mixed', 'otel.parquet');
    const { chunks, records } = await readAll(await openSource(path, otlp));
    expect(records).toHaveLength(694);
    expect(chunks.at(-1)?.bytesRead).toBe(69_118);
  });
});

describe('OTLP JSON lines', () => {
  it('tells lines that are none, with their numbers', async () => {
    const path = folder.write(
      'bad.otlp.jsonl',
      `{"resourceSpans":7}\nnonsense\n[]\n{"resourceMetrics":[]}\n{}\n${request}`,
    );
    const { rejects } = await readAll(await openSource(path, otlp));
    expect(rejects.map((reject) => reject.place)).toEqual(['line 1', 'line 2', 'line 3', 'line 4']);
  });

  it('takes traces and logs from one line', async () => {
    const log = { traceId: 'a'.repeat(32), timeUnixNano: '1', eventName: 'v1.public.events.fusion.log.LogMessage' };
    const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'dbt-core' } }] };
    const path = folder.write(
      'both.otlp.jsonl',
      JSON.stringify({
        resourceSpans: [],
        resourceLogs: [{ resource, scopeLogs: [{ scope: { name: 'dbt-core' }, logRecords: [log] }] }],
      }),
    );
    const { records, chunks } = await readAll(await openSource(path, otlp));
    expect(records).toMatchObject([{ recordType: 'LogRecord', traceId: 'a'.repeat(32) }]);
    expect(chunks.at(-1)?.delivery.batches[0]?.resource.attributes).toEqual({ 'service.name': 'dbt-core' });
  });
});
