import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { parquetMetadata } from 'hyparquet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import { InvocationFiles } from '../../../src/parquet/invocation-files.js';
import { LogParquetWriter } from '../../../src/parquet/log-parquet.js';
import { readParquetRows } from '../../../src/parquet/parquet-reader.js';
import { recordFromRow } from '../../../src/parquet/record-from-row.js';
import { InvocationParquet } from '../../../src/parquet/run-parquet.js';
import type { TelemetryRecord, TraceId } from '../../../src/record/telemetry-record.js';
import { fromJsonl, fromOtlp } from '../run/logged-samples.js';
import { TrackerBench } from '../run/tracker-bench.js';

let bench: TrackerBench;
/** Files that were written straight from a log. */
let logs: string[];

beforeEach(async () => {
  logs = [];
  bench = await TrackerBench.open();
  bench.furtherListeners.push(new InvocationParquet(bench.folder, invocationFiles()));
  await bench.restart();
});

afterEach(async () => {
  await bench.close();
});

/** As in a thread that has just begun. */
function invocationFiles(): InvocationFiles {
  const writer = new LogParquetWriter();
  return new InvocationFiles(bench.folder, {
    reader: bench.reader,
    writeLog: async (traceId, byteCount, path) => {
      const log = join(bench.folder, 'runs', traceId, 'telemetry.jsonl');
      await writer.write(log, byteCount, path, () => {});
      logs.push(path.slice(path.lastIndexOf('/') + 1));
    },
  });
}

function folderOf(records: readonly LoggedRecord[]): string {
  return join(bench.folder, 'runs', traceIdOf(records));
}

function traceIdOf([first]: readonly LoggedRecord[]): TraceId {
  if (first === undefined) throw new Error('there is no record');
  return first.record.traceId;
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
  expect([logs, await parquetFiles(records)]).toEqual([['telemetry.parquet'], ['telemetry.parquet']]);
  expect(await spanIdsIn(join(folderOf(records), 'telemetry.parquet'))).toEqual(
    new Set(records.map(({ record }) => record.spanId)),
  );
});

it('writes the log of a run of one invocation, and then the files of two invocations', async () => {
  const records = fromOtlp('build-clean');
  await bench.append(records);
  await bench.append(fromOtlp('overlapping'));
  await bench.pass(10_000);
  expect(logs).toEqual(['telemetry.parquet']);
  expect(await parquetFiles(fromOtlp('overlapping'))).toEqual(['telemetry-2.parquet', 'telemetry.parquet']);
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

describe('what comes late to a trace of two commands', () => {
  const records = fromOtlp('overlapping');
  const NAMES = ['telemetry.parquet', 'telemetry-2.parquet'];
  const LATE = 6;
  const finished = async (part: readonly LoggedRecord[]) => {
    await bench.append(part);
    await bench.pass(10_000);
    await bench.pass(600_000);
  };
  const content = (name: string) => readFileSync(join(folderOf(records), name));
  const rowGroups = (name: string) => {
    const { row_groups } = parquetMetadata(new Uint8Array(content(name)).buffer);
    return row_groups.map(({ num_rows }) => Number(num_rows));
  };
  /** All files of a log of these records that are written at one time hold the same rows. */
  const expectTheRows = async () => {
    const folder = folderOf(records);
    const duckdb = await (await DuckDBInstance.create()).connect();
    for (const name of NAMES) copyFileSync(join(folder, name), join(folder, `grown-${name}`));
    for (const name of NAMES) rmSync(join(folder, name));
    await bench.restart();
    await invocationFiles().write({
      traceId: traceIdOf(records),
      logBytes: statSync(join(folder, 'telemetry.jsonl')).size,
      invocationCount: 2,
      files: NAMES.map((parquetFile, at) => ({ index: at + 1, parquetFile })),
    });
    for (const name of NAMES) {
      const [grown, whole] = [join(folder, `grown-${name}`), join(folder, name)];
      for (const [one, other] of [
        [grown, whole],
        [whole, grown],
      ]) {
        const missing = `SELECT count(*) FROM (SELECT * FROM '${one}' EXCEPT ALL SELECT * FROM '${other}')`;
        expect((await duckdb.runAndReadAll(missing)).getRows(), name).toEqual([[0n]]);
      }
    }
  };

  it('is appended to the file of its command, and the other is left alone', async () => {
    await finished(records.slice(0, -LATE));
    let writtenCount = 0;
    for (const late of records.slice(-LATE)) {
      const before = NAMES.map((name) => ({ name, bytes: content(name), groups: rowGroups(name) }));
      await finished([late]);
      const changed = before.filter(({ name, bytes }) => !content(name).equals(bytes));
      expect(changed.length).toBe(1);
      for (const { name, groups } of changed) {
        const after = rowGroups(name);
        const keptCount = after.findIndex((rows, at) => rows !== groups[at]);
        writtenCount += after.slice(keptCount).reduce((sum, rows) => sum + rows, 0);
      }
    }
    // Each of the late ones a few times, the many before them not once.
    expect(writtenCount).toBeLessThan(LATE * 6);
    expect(NAMES.flatMap(rowGroups).reduce((sum, rows) => sum + rows, 0)).toBe(records.length);
    await expectTheRows();
  });

  it('is appended by a thread that has just begun, too; a file that is spoiled or gone is written anew', async () => {
    await finished(records.slice(0, -2));
    const [first = [], second = []] = NAMES.map(rowGroups);
    for (const [at, late] of records.slice(-2).entries()) {
      bench.furtherListeners.splice(0, 1, new InvocationParquet(bench.folder, invocationFiles()));
      await bench.restart();
      if (at === 1) {
        rmSync(join(folderOf(records), NAMES[0] ?? ''));
        writeFileSync(join(folderOf(records), NAMES[1] ?? ''), 'PAR1');
      }
      await finished([late]);
      if (at === 0) expect(NAMES.map(rowGroups)).toEqual([first, [...second, 1]]);
    }
    await expectTheRows();
  });

  it('has files written anew where it moves earlier records to another command', async () => {
    const isTelling = ({ record }: LoggedRecord) => /\.(Invocation|Process)$/.test(record.eventType);
    await finished(records.filter((each) => !isTelling(each)));
    await finished(records.filter(isTelling));
    await expectTheRows();
  });
});

it('leaves no half file when writing fails, and writes it at the next start', async () => {
  const records = fromOtlp('overlapping');
  const broken = join(folderOf(records), 'telemetry-2.parquet.partial');
  mkdirSync(broken, { recursive: true });
  await bench.append(records);
  await bench.pass(10_000);
  expect(await parquetFiles(records)).toEqual(['telemetry-2.parquet.partial', 'telemetry.parquet']);
  rmSync(broken, { recursive: true });
  await bench.restart();
  expect(await parquetFiles(records)).toEqual(['telemetry-2.parquet', 'telemetry.parquet']);
});
