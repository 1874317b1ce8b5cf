import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LineRows } from '../../../src/parquet/line-rows.js';
import { ParquetOutput } from '../../../src/parquet/parquet-writer.js';
import { RowGroupColumns } from '../../../src/parquet/row-group.js';
import type { TelemetryRecord } from '../../../src/record/telemetry-record.js';
import { recordsOf } from './samples.js';

/** What lines became: the reasons why some are no records, and the records that are read again. */
export interface Written {
  readonly reasons: readonly (string | undefined)[];
  readonly records: readonly TelemetryRecord[];
}

const LINE_BREAK = Buffer.from('\n');

/** Writes lines to a file and reads it again. */
export async function throughParquet(
  lines: readonly Buffer[],
  toModern = (record: TelemetryRecord) => record,
): Promise<Written> {
  const columns = new RowGroupColumns();
  const rows = new LineRows(columns, { isModern: false, toModern });
  // As in a file, each stands before the next.
  const bytes = Buffer.concat(lines.flatMap((line) => [line, LINE_BREAK]));
  let end = -1;
  rows.begin(bytes.length);
  const reasons = lines.map((line) => {
    const start = end + 1;
    end = start + line.length;
    return rows.append(bytes, start, end);
  });
  const folder = mkdtempSync(join(tmpdir(), 'line-rows-'));
  const path = join(folder, 'lines.parquet');
  const output = await ParquetOutput.create(path);
  await output.write(columns.finish());
  await output.close();
  const records = await recordsOf(path);
  rmSync(folder, { recursive: true });
  return { reasons, records };
}
