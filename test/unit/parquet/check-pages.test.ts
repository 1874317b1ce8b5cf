import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetMetadata, type RowGroup } from 'hyparquet';
import { describe, expect, it } from 'vitest';
import { checkPages, parsePageHeader } from '../../../src/parquet/parquet-reader.js';
import { SAMPLES } from '../../fake/sample-run.js';

const bytes = readFileSync(join(SAMPLES, 'build-mixed/otel.parquet'));
const whole = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
const fileOf = (buffer: ArrayBuffer) => ({
  byteLength: buffer.byteLength,
  slice: async (start: number, end?: number) => buffer.slice(start, end),
});

/** A signed number of Thrift's compact protocol. */
function zigZag(value: number): number[] {
  const digits: number[] = [];
  let rest = value * 2;
  for (; rest >= 128; rest = Math.floor(rest / 128)) digits.push((rest % 128) + 128);
  return [...digits, rest];
}

/** The header of a data page: its type, lengths and count of values. */
function header(uncompressedBytes: number, compressedBytes: number, valueCount: number): Uint8Array {
  const dataPage = [0x15, ...zigZag(valueCount), 0x15, 0, 0x15, 6, 0x15, 6, 0];
  return Uint8Array.from([
    0x15,
    0,
    0x15,
    ...zigZag(uncompressedBytes),
    0x15,
    ...zigZag(compressedBytes),
    0x2c,
    ...dataPage,
    0,
  ]);
}

function groupOf(column: Record<string, bigint | undefined>, num_rows = 1n): RowGroup {
  const meta_data = { path_in_schema: ['a'], data_page_offset: 0n, total_compressed_size: 0n, ...column };
  return { columns: [{ file_offset: 0n, meta_data }], num_rows, total_byte_size: 0n } as unknown as RowGroup;
}

/** What is wrong with a group of one page. */
async function problem(page: Uint8Array, rowCount = 1n): Promise<string> {
  const buffer = Uint8Array.from(page).buffer;
  const group = groupOf({ total_compressed_size: BigInt(page.byteLength) }, rowCount);
  return checkPages(fileOf(buffer), group).then(
    () => 'nothing',
    (error: Error) => error.message,
  );
}

describe('the pages of a row group', () => {
  it('of the engine are fine', async () => {
    const { row_groups } = parquetMetadata(whole);
    for (const group of row_groups) await checkPages(fileOf(whole), group);
    expect(row_groups.length).toBeGreaterThan(0);
  });

  it('are refused where one claims more than a real one has', async () => {
    expect(await problem(header(100, 0, 10))).toBe('nothing');
    expect(await problem(header(100, 0, 2_147_483_647))).toBe('a page claims 2147483647 values');
    expect(await problem(header(2_147_483_647, 0, 10))).toBe('a page claims 2 GiB');
  });

  it('are refused where the group claims more rows than they have', async () => {
    expect(await problem(header(100, 0, 10), 10n)).toBe('nothing');
    expect(await problem(header(100, 0, 10), 10_000_000_000n)).toBe(
      'a row group claims 10000000000 rows, more than it has',
    );
  });

  it('are refused where they are not where they should be', async () => {
    const group = groupOf({ data_page_offset: 5n, total_compressed_size: BigInt(bytes.byteLength) });
    await expect(checkPages(fileOf(whole), group)).rejects.toThrow('a column lies outside of the file');
  });

  it.each([
    ['cut off', header(100, 0, 10).subarray(0, 5)],
    ['zeros', new Uint8Array(10)],
    ['ones', new Uint8Array(2_000).fill(0xff)],
    ['structs in structs', new Uint8Array(2_000).fill(0x1c)],
  ])('are refused where a header is %s', async (_, page) => {
    expect(await problem(page)).not.toBe('nothing');
  });
});

it('a header is read to its end, whatever else it says', () => {
  expect(parsePageHeader(header(1_000, 300, 77))).toEqual({
    headerBytes: header(1_000, 300, 77).byteLength,
    uncompressedBytes: 1_000,
    compressedBytes: 300,
    valueCount: 77,
    isDictionary: false,
  });
});
