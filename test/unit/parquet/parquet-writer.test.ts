import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { asyncBufferFromFile, parquetMetadataAsync } from 'hyparquet';
import { afterAll, describe, expect, it } from 'vitest';
import { ParquetWriter } from '../../../src/parquet/parquet-writer.js';
import type { Row } from '../../../src/parquet/record-from-row.js';
import { ATTRIBUTE_KINDS, LEAF_COLUMNS } from '../../../src/parquet/schema.js';
import { Attributes } from '../../../src/record/attributes.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { recordsOf, rowsOf, SAMPLES_WITH_PARQUET, samplePath, sampleRecords, writeParquet } from './samples.js';

const folder = mkdtempSync(join(tmpdir(), 'parquet-writer-'));
afterAll(() => rmSync(folder, { recursive: true }));

const firstRecord = (): TelemetryRecord => {
  const [record] = sampleRecords('parse');
  if (record === undefined) throw new Error('the sample is empty');
  return record;
};

describe.each(SAMPLES_WITH_PARQUET)('the Parquet file of %s', (sample) => {
  const path = join(folder, `${sample}.parquet`);

  it("holds the engine's rows, cell by cell", async () => {
    await writeParquet(path, sampleRecords(sample));
    const ours = byKey(await rowsOf(path));
    const theirs = byKey(await rowsOf(samplePath(sample, 'otel.parquet')));
    expect([...ours.keys()].sort()).toEqual([...theirs.keys()].sort());
    for (const [key, row] of theirs) expectEqual(comparable(ours.get(key)), comparable(row));
  });

  it('holds the rows in the order of the JSONL', async () => {
    expect((await rowsOf(path)).map(keyOf)).toEqual(
      sampleRecords(sample).map((record) =>
        keyOf({
          record_type: record.recordType,
          span_id: record.spanId === null ? null : BigInt(`0x${record.spanId}`),
          event_id: record.recordType === 'LogRecord' ? record.eventId : null,
        }),
      ),
    );
  });

  it("has the engine's Parquet schema and Arrow schema, in one row group", async () => {
    const ours = await metadataOf(path);
    const theirs = await metadataOf(samplePath(sample, 'otel.parquet'));
    // The logical INTEGER type is left to the converted type, from which readers take the same.
    const withoutInteger = theirs.schema.map((element) =>
      element.logical_type?.type === 'INTEGER' ? { ...element, logical_type: undefined } : element,
    );
    expect(ours.schema).toEqual(withoutInteger);
    expect(ours.key_value_metadata).toEqual(theirs.key_value_metadata);
    expect(ours.row_groups).toHaveLength(1);
    const chunks = (file: typeof ours) =>
      file.row_groups[0]?.columns.map(({ meta_data: chunk }) => [
        chunk?.path_in_schema,
        chunk?.codec,
        chunk?.encodings,
        chunk?.num_values,
        chunk?.statistics?.null_count,
      ]);
    expect(chunks(ours)).toEqual(chunks(theirs));
  });
});

describe('ParquetWriter', () => {
  it("has the published layout's columns in its order", () => {
    const layout: { envelope: [string][]; attributes: [string, string][] } = JSON.parse(
      readFileSync(new URL('../../fixture/schema/parquet-layout.json', import.meta.url), 'utf8'),
    );
    expect([...new Set(LEAF_COLUMNS.map((leaf) => leaf.path[0]))]).toEqual(layout.envelope.map(([name]) => name));
    const kinds = { 'large_utf8(json)': 'text', 'dict<utf8>': 'text', large_utf8: 'text', bool: 'boolean' };
    expect(Object.entries(ATTRIBUTE_KINDS)).toEqual(
      layout.attributes.map(([name, type]) => [name, type in kinds ? kinds[type as keyof typeof kinds] : type]),
    );
  });

  it('begins a new row group when one has its rows, and reads all of them back in order', async () => {
    const path = join(folder, 'groups.parquet');
    const records = sampleRecords('build-mixed');
    const info = await writeParquet(path, records, { maxRowGroupRows: 300, maxRowGroupBytes: 1e9 });
    expect(info).toMatchObject({ rowCount: 694, rowGroupCount: 3 });
    const sizes = (await metadataOf(path)).row_groups.map((group) => Number(group.num_rows));
    expect(sizes).toEqual([300, 300, 94]);
    expect((await recordsOf(path)).map((record) => record.attributes.value)).toEqual(
      records.map((record) => record.attributes.value),
    );
  });

  it('ends a row group early when it holds too many bytes', async () => {
    const path = join(folder, 'bytes.parquet');
    const record = firstRecord();
    const records = Array.from({ length: 3_000 }, () => record);
    const info = await writeParquet(path, records, { maxRowGroupRows: 100_000, maxRowGroupBytes: 1 });
    expect(info.rowGroupCount).toBe(3);
  });

  it('splits long columns into pages, and rows are found through them', async () => {
    const path = join(folder, 'pages.parquet');
    const { line: _, ...record } = firstRecord();
    const records = Array.from({ length: 21_000 }, (_, index) => ({
      ...record,
      // Long and all different: the dictionary is given up after a mebibyte.
      attributes: Attributes.of({ package: `p${index}`.padEnd(100, '-') }),
    }));
    await writeParquet(path, records);
    const read = await recordsOf(path);
    expectEqual(
      read.map((one) => one.attributes.json),
      records.map((one) => one.attributes.json),
    );
  });

  it('writes values that are left out where a column has more texts than its dictionary takes, and in the row group after', async () => {
    const path = join(folder, 'left-out.parquet');
    const { line: _, ...record } = firstRecord();
    const nameOf = (index: number) => (index % 3 === 0 ? '' : `n${index}`.padEnd(120, '-'));
    const records = Array.from({ length: 15_000 }, (_, index) => ({
      ...record,
      eventType: 'v1.public.events.fusion.node.NodeProcessed',
      attributes: Attributes.of(nameOf(index) === '' ? {} : { name: nameOf(index) }),
    }));
    await writeParquet(path, records, { maxRowGroupRows: 14_000, maxRowGroupBytes: 1e9 });
    const names = (await rowsOf(path)).map(({ attributes }) => (attributes as { readonly name: unknown }).name);
    expectEqual(
      names,
      records.map((_, index) => nameOf(index)),
    );
  });

  it('writes a file without rows that is read as such', async () => {
    const path = join(folder, 'empty.parquet');
    expect(await writeParquet(path, [])).toMatchObject({ rowCount: 0, rowGroupCount: 0 });
    expect(await rowsOf(path)).toEqual([]);
  });

  it('shows the file under its name only when it is complete', async () => {
    const path = join(folder, 'late.parquet');
    const writer = await ParquetWriter.create(path);
    await writer.append(sampleRecords('parse'));
    expect(existsSync(path)).toBe(false);
    await writer.close();
    expect(existsSync(path)).toBe(true);
    expect(existsSync(`${path}.partial`)).toBe(false);
  });

  it('leaves an earlier file alone when it gives up', async () => {
    const path = join(folder, 'kept.parquet');
    writeFileSync(path, 'earlier');
    const writer = await ParquetWriter.create(path);
    await writer.append(sampleRecords('parse'));
    await writer.abort();
    expect(readFileSync(path, 'utf8')).toBe('earlier');
    expect(existsSync(`${path}.partial`)).toBe(false);
  });
});

/** `toEqual`, which takes long over thousands of rows, only where they differ. */
function expectEqual(ours: unknown, theirs: unknown): void {
  if (!isDeepStrictEqual(ours, theirs)) expect(ours).toEqual(theirs);
}

function keyOf(row: Row): string {
  return [row.record_type, row.span_id, row.event_id].map((part) => String(part ?? '')).join(' ');
}

function byKey(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [keyOf(row), row]));
}

/** JSON cells as values: the engine writes the keys of maps in no order. */
function comparable(row: Row | undefined): unknown {
  const attributes = row?.attributes as Row;
  const payload = attributes.json_payload;
  return {
    ...row,
    attributes: { ...attributes, json_payload: typeof payload === 'string' ? JSON.parse(payload) : payload },
  };
}

async function metadataOf(path: string) {
  return parquetMetadataAsync(await asyncBufferFromFile(path));
}
