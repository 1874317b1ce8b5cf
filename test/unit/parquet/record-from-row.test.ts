import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, describe, expect, it } from 'vitest';
import { ParquetReadError, readParquetRows } from '../../../src/parquet/parquet-reader.js';
import { RowParseError, recordFromRow } from '../../../src/parquet/record-from-row.js';
import { formatRecordLine, parseRecordLine } from '../../../src/record/record-line.js';
import {
  recordsOf,
  rowsOf,
  SAMPLES_WITH_PARQUET,
  sampleLines,
  samplePath,
  sampleRecords,
  writeParquet,
} from './samples.js';

const folder = mkdtempSync(join(tmpdir(), 'parquet-reader-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe.each(SAMPLES_WITH_PARQUET)('%s', (sample) => {
  it("gives the engine's JSONL lines, byte by byte, from the engine's Parquet", async () => {
    const lines = (await recordsOf(samplePath(sample, 'otel.parquet'))).map(formatRecordLine);
    expect(lines.sort()).toEqual([...sampleLines(sample)].sort());
  });

  it('is the same file after Parquet to JSONL to Parquet', async () => {
    const first = join(folder, `${sample}-1.parquet`);
    const second = join(folder, `${sample}-2.parquet`);
    await writeParquet(first, await recordsOf(samplePath(sample, 'otel.parquet')));
    const lines = (await recordsOf(first)).map(formatRecordLine);
    await writeParquet(second, lines.map(parseRecordLine));
    expect(readFileSync(second).equals(readFileSync(first))).toBe(true);
  });
});

describe('records of an older engine', () => {
  it('keep their JSONL lines through Parquet', async () => {
    const path = join(folder, 'older.parquet');
    await writeParquet(path, sampleRecords('preview-120-failed'));
    expect((await recordsOf(path)).map(formatRecordLine)).toEqual(sampleLines('preview-120-failed'));
  });

  it('are read where the payload of an evaluated node is the outcome detail itself', () => {
    expect(attributesOf('node.NodeEvaluated', { json_payload: '{"NodeTestDetail":{"failing_rows":3}}' })).toEqual({
      node_test_detail: { failing_rows: 3 },
    });
  });
});

describe('what the layout does not know', () => {
  it.each([
    ['an unknown event type', 'x.New', { b: 1, a: { deep: [1, 'x', null] } }],
    ['an unknown field', 'node.NodeEvaluated', { phase: 'EXECUTION_PHASE_RUN', new_field: { x: 1 } }],
    ['an unknown field beside a map', 'dev.CallTrace', { extra: { k: { string: 'v' } }, name: 'n', new_field: 7 }],
    ['a map of something else', 'dev.CallTrace', { extra: { k: 5, l: { string: 'v' } }, name: 'n' }],
    ['two members of a oneof', 'node.NodeEvaluated', { node_test_detail: {}, node_cache_detail: { x: 1 } }],
    ['an unknown enum value', 'phase.PhaseExecuted', { phase: 'EXECUTION_PHASE_NEXT' }],
    ['an enum number', 'phase.PhaseExecuted', { phase: 999 }],
    ['a value of another type than its column', 'node.NodeProcessed', { duration_ms: 'soon', name: 5 }],
    ['a message without a layout', 'node.MicrobatchEvaluated', { batch_id: 'b', idle_time_ms: '7' }],
    ['counts beyond 2^53', 'phase.PhaseExecuted', { node_count_total: '18446744073709551615' }],
    ['the greatest uint64', 'node.NodeProcessed', { duration_ms: '18446744073709551615' }],
  ])('comes back whole: %s', async (_, eventType, attributes) => {
    const path = join(folder, 'unknown.parquet');
    const record = parseRecordLine(line(eventType, attributes));
    await writeParquet(path, [record]);
    const [read] = await recordsOf(path);
    expect(read?.attributes.value).toEqual(attributes);
  });

  it('keeps the spelling of numbers that JavaScript cannot hold, and stays on one line', () => {
    const exact = '{"n":12345678901234567890,"x":1.0}';
    expect(recordFromRow(row('x.New', { json_payload: exact })).attributes.json).toBe(exact);
    expect(recordFromRow(row('x.New', { json_payload: exact.replace(',', ',\n') })).attributes.json).not.toContain(
      '\n',
    );
  });

  it('comes back from columns that the message did not use before', () => {
    expect(attributesOf('process.Process', { package_name: 'shop', rows_affected: 3n, json_payload: '{}' })).toEqual({
      package_name: 'shop',
      rows_affected: '3',
    });
  });
});

describe('a row', () => {
  it.each([
    [{ record_type: 'Other' }, /record_type must be/],
    [{ trace_id: 'xyz' }, /trace_id must be/],
    [{ span_id: null }, /needs a span_id/],
    [{ start_time_unix_nano: null }, /start_time_unix_nano must be/],
    [{ attributes: { json_payload: `{"x":${'['.repeat(999)}${']'.repeat(999)}}` } }, /nested deeper than 200/],
    [{ links: [{ trace_id: '1'.repeat(32), span_id: 1n, json_payload: '7' }] }, /must be a JSON object/],
  ])('that is no record is refused: %o', (change, message) => {
    expect(() => recordFromRow({ ...row('process.Process', {}), ...change })).toThrow(RowParseError);
    expect(() => recordFromRow({ ...row('process.Process', {}), ...change })).toThrow(message);
  });
});

describe('readParquetRows', () => {
  it('says that an empty file is what a killed engine leaves', async () => {
    const path = join(folder, 'killed.parquet');
    writeFileSync(path, '');
    await expect(rowsOf(path)).rejects.toThrow(/is empty: the engine was killed/);
  });

  it('refuses files that are damaged or of something else', async () => {
    const path = join(folder, 'damaged.parquet');
    const whole = readFileSync(samplePath('parse', 'otel.parquet'));
    writeFileSync(path, whole.subarray(0, whole.length - 100));
    await expect(rowsOf(path)).rejects.toThrow(ParquetReadError);
    writeFileSync(path, Buffer.concat([whole.subarray(0, 5_000), Buffer.alloc(3_000, 0xa5), whole.subarray(8_000)]));
    await expect(rowsOf(path)).rejects.toThrow(ParquetReadError);
    writeFileSync(path, new Uint8Array(parquetWriteBuffer({ columnData: [{ name: 'x', data: [1, 2, 3] }] })));
    await expect(rowsOf(path)).rejects.toThrow(/has no column record_type/);
  });

  it('reads a large row group in parts', async () => {
    const path = join(folder, 'large.parquet');
    const records = sampleRecords('parse');
    await writeParquet(path, Array.from({ length: 500 }, () => records).flat());
    const parts: [number, number][] = [];
    for await (const { rows, firstRow } of readParquetRows(path)) parts.push([firstRow, rows.length]);
    expect(parts).toEqual([
      [0, 10_000],
      [10_000, 10_000],
      [20_000, 10_000],
      [30_000, 1_500],
    ]);
  });
});

function row(event: string, attributes: object) {
  return {
    record_type: 'SpanStart',
    trace_id: '0'.repeat(31) + 1,
    span_id: 1n,
    start_time_unix_nano: 1n,
    event_type: `v1.public.events.fusion.${event}`,
    attributes,
  };
}

function attributesOf(event: string, attributes: object) {
  return recordFromRow(row(event, attributes)).attributes.value;
}

function line(event: string, attributes: object): string {
  const { span_id, ...start } = row(event, attributes);
  return JSON.stringify({ ...start, span_id: '00000000000000a1', start_time_unix_nano: '1', severity_number: 9 });
}
