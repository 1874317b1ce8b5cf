import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { InvocationFiles } from '../../../src/run/invocation-files.js';
import { InvocationParquet } from '../../../src/run/invocation-parquet.js';
import { writeLogAsParquet } from '../../../src/sink/parquet/log-parquet.js';
import { readParquetRows } from '../../../src/sink/parquet/parquet-reader.js';
import { ParquetWriter } from '../../../src/sink/parquet/parquet-writer.js';
import { recordFromRow } from '../../../src/sink/parquet/record-from-row.js';
import type { LoggedRecord } from '../../../src/sink/record-log.js';
import { fromJsonl, fromOtlp } from './logged-samples.js';
import { TrackerBench } from './tracker-bench.js';

let bench: TrackerBench;
/** Record counts of the files in the order in which they were written. */
let written: string[];
let brokenAfter: number;

beforeEach(async () => {
  written = [];
  brokenAfter = Number.POSITIVE_INFINITY;
  bench = await TrackerBench.open();
  bench.furtherListeners.push(
    new InvocationParquet(
      bench.folder,
      new InvocationFiles(bench.folder, { reader: bench.reader, createParquet: (path) => createFile(path) }),
    ),
  );
  await bench.restart();
});

afterEach(async () => {
  await bench.close();
});

async function createFile(path: string) {
  const file = await ParquetWriter.create(path);
  return {
    append: async (records: Iterable<TelemetryRecord>) => {
      await file.append(records);
      if (written.length >= brokenAfter) throw new Error('disk full');
    },
    close: async () => {
      written.push(path.slice(path.lastIndexOf('/') + 1));
      await file.close();
    },
    abort: () => file.abort(),
  };
}

function folderOf(records: readonly LoggedRecord[]): string {
  return join(bench.folder, 'runs', records[0]?.record.traceId ?? '');
}

async function parquetFiles(records: readonly LoggedRecord[]): Promise<string[]> {
  return (await readdir(folderOf(records))).filter((name) => name.includes('parquet')).sort();
}

async function spanIdsIn(path: string): Promise<Set<string | null>> {
  const spanIds = new Set<string | null>();
  for await (const chunk of readParquetRows(path)) {
    for (const row of chunk.rows) spanIds.add(recordFromRow(row).spanId);
  }
  return spanIds;
}

it('writes one file for a run of one invocation, with every record', async () => {
  const records = fromOtlp('build-clean');
  await bench.append(records);
  await bench.pass(10_000);
  expect(written).toEqual(['telemetry.parquet']);
  expect(await spanIdsIn(join(folderOf(records), 'telemetry.parquet'))).toEqual(
    new Set(records.map(({ record }) => record.spanId)),
  );
});

it('writes the log of a run of one invocation as a whole where it can, and then the files of two invocations as ever', async () => {
  const logs: string[] = [];
  bench.furtherListeners.splice(
    0,
    1,
    new InvocationParquet(
      bench.folder,
      new InvocationFiles(bench.folder, {
        reader: bench.reader,
        createParquet: (path) => createFile(path),
        writeLog: async (traceId, byteCount, path) => {
          logs.push(path.slice(path.lastIndexOf('/') + 1));
          const log = join(bench.folder, 'runs', traceId, 'telemetry.jsonl');
          await writeLogAsParquet(log, byteCount, path, () => {});
        },
      }),
    ),
  );
  await bench.restart();
  const records = fromOtlp('build-clean');
  await bench.append(records);
  await bench.append(fromOtlp('overlapping'));
  await bench.pass(10_000);
  expect(logs).toEqual(['telemetry.parquet']);
  expect(written.toSorted()).toEqual(['telemetry-2.parquet', 'telemetry.parquet']);
  expect(await spanIdsIn(join(folderOf(records), 'telemetry.parquet'))).toEqual(
    new Set(records.map(({ record }) => record.spanId)),
  );
});

it('writes each of two overlapping commands a file of its own, with its own records only', async () => {
  const records = fromOtlp('overlapping');
  await bench.append(records);
  await bench.pass(10_000);
  expect(await parquetFiles(records)).toEqual(['telemetry-2.parquet', 'telemetry.parquet']);
  const own = fromJsonl('overlapping').map(({ record }) => record);
  const secondFile = own.findLastIndex((r) => r.recordType === 'SpanStart' && r.eventType.endsWith('.Process'));
  const came = new Set(records.map(({ record }) => record.spanId));
  const idsOf = (part: readonly TelemetryRecord[]) => new Set(part.map((r) => r.spanId).filter((id) => came.has(id)));
  expect(await spanIdsIn(join(folderOf(records), 'telemetry.parquet'))).toEqual(idsOf(own.slice(0, secondFile)));
  expect(await spanIdsIn(join(folderOf(records), 'telemetry-2.parquet'))).toEqual(idsOf(own.slice(secondFile)));
});

it('writes the files anew when late records came', async () => {
  const records = fromOtlp('overlapping');
  await bench.append(records.slice(0, -1));
  await bench.pass(10_000);
  await bench.pass(600_000);
  const before = written.length;
  await bench.append(records.slice(-1));
  await bench.pass(600_000);
  expect(written.length).toBeGreaterThan(before);
  expect(await parquetFiles(records)).toEqual(['telemetry-2.parquet', 'telemetry.parquet']);
});

it('leaves no half file when writing fails, and writes it at the next start', async () => {
  const records = fromOtlp('parse');
  brokenAfter = 0;
  await bench.append(records);
  await bench.pass(10_000);
  expect(await parquetFiles(records)).toEqual([]);
  brokenAfter = Number.POSITIVE_INFINITY;
  await bench.restart();
  expect(await parquetFiles(records)).toEqual(['telemetry.parquet']);
  await bench.restart();
  expect(written).toEqual(['telemetry.parquet']);
});
