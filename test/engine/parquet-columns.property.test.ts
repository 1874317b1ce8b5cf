import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { convertFile } from '../../src/files/convert-file.js';
import { parseRecordLine } from '../../src/record/record-line.js';
import { parquetPython } from '../tool/parquet-equality.js';
import { propertyRuns } from '../tool/property-runs.js';
import { otlp, running } from '../unit/files/reading.js';
import { writeParquet } from '../unit/parquet/samples.js';

/** Rows after which the engine, and so this program, ends a page, and this program a row group. */
const PAGE_ROWS = 20_000;
const GROUP_ROWS = 100_000;
const MAX_ROWS = 250_000;
const folder = mkdtempSync(join(tmpdir(), 'parquet-columns-'));
let python: string;

beforeAll(() => {
  python = parquetPython();
});
afterAll(() => rmSync(folder, { recursive: true }));

/** What a row is: it decides which columns it can have. */
const SHAPES = ['SpanStart', 'SpanEnd', 'LogRecord', 'QueryExecuted'] as const;
const [START, END, LOG, QUERY] = [0, 1, 2, 3] as const;

/** Columns by their path, with the attribute that fills them (or the field, outside `attributes`) and the rows that can have them. */
const COLUMNS = {
  event_id: { kind: 'text', field: 'event_id', shapes: [LOG] },
  parent_span_id: { kind: 'spanId', field: 'parent_span_id', shapes: [START, END, QUERY] },
  links: { kind: 'links', field: 'links', shapes: [START, END, QUERY] },
  status_message: { kind: 'text', field: 'status_message', shapes: [END, QUERY] },
  'attributes.database': { kind: 'text', field: 'database', shapes: [START, END] },
  'attributes.identifier': { kind: 'text', field: 'identifier', shapes: [START, END] },
  'attributes.sao_enabled': { kind: 'boolean', field: 'sao_enabled', shapes: [START, END] },
  'attributes.duration_ms': { kind: 'uint64', field: 'duration_ms', shapes: [START, END] },
  'attributes.rows_affected': { kind: 'uint64', field: 'rows_affected', shapes: [START, END] },
  'attributes.group': { kind: 'text', field: 'group', shapes: [START, END] },
  'attributes.code': { kind: 'uint32', field: 'code', shapes: [LOG] },
  'attributes.code_name': { kind: 'text', field: 'code_name', shapes: [LOG] },
  'attributes.line': { kind: 'uint32', field: 'line', shapes: [LOG] },
  'attributes.query_id': { kind: 'text', field: 'query_id', shapes: [QUERY] },
  'attributes.query_error_vendor_code': { kind: 'int32', field: 'query_error_vendor_code', shapes: [QUERY] },
} as const;
type Kind = (typeof COLUMNS)[keyof typeof COLUMNS]['kind'];

/** Rows from the first up to the second, every so many of them. */
type Run = readonly [from: number, to: number, stride: number];

interface ColumnPlan {
  readonly kind: Kind;
  readonly shapes: readonly number[];
  readonly values: 'same' | 'few' | 'distinct' | 'wide';
  /** Where the column has values. */
  readonly runs: readonly Run[];
}

/** A file to be made: how many rows, what they are from which row on, and where each column begins, ends and pauses. */
interface Plan {
  readonly rowCount: number;
  readonly shapes: readonly (readonly [from: number, shape: number])[];
  readonly columns: Readonly<Record<string, ColumnPlan>>;
  readonly groupRows: number;
}

/** Anywhere in a file, and often where something ends: bytes of a bitmap, its first sizes, pages, row groups. */
function rowsUpTo(maxRows: number): fc.Arbitrary<number> {
  const near = (size: number) =>
    fc.tuple(fc.nat(Math.floor(maxRows / size)), fc.integer({ min: -1, max: 1 })).map(([n, by]) => n * size + by);
  return fc
    .oneof(fc.nat(maxRows), ...[8, 1024, 2048, PAGE_ROWS, GROUP_ROWS].filter((size) => size < maxRows).map(near))
    .map((row) => Math.max(0, Math.min(maxRows, row)));
}

function plans(maxRows: number, minRows = 1): fc.Arbitrary<Plan> {
  const places = rowsUpTo(maxRows);
  const run = fc
    .tuple(
      places,
      places,
      fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 9 }), fc.integer({ min: 500, max: 30_000 })),
    )
    .map(([a, b, stride]): Run => [Math.min(a, b), Math.max(a, b) + 1, stride]);
  const column = fc.record({
    values: fc.constantFrom('same' as const, 'few' as const, 'distinct' as const, 'wide' as const),
    runs: fc.array(run, { maxLength: 4 }),
  });
  return fc
    .record({
      rowCount: places.map((row) => Math.max(minRows, row)),
      shapes: fc.array(fc.tuple(places, fc.nat(SHAPES.length - 1)), { minLength: 1, maxLength: 8 }),
      columns: fc.array(column, { minLength: Object.keys(COLUMNS).length, maxLength: Object.keys(COLUMNS).length }),
      groupRows: fc.oneof(fc.constant(GROUP_ROWS), fc.integer({ min: 900, max: 50_000 })),
    })
    .map(({ rowCount, shapes, columns, groupRows }) => ({
      rowCount,
      groupRows,
      shapes: [[0, START] as const, ...shapes.toSorted(([a], [b]) => a - b)],
      columns: Object.fromEntries(
        Object.entries(COLUMNS).map(([name, { kind, shapes }], index) => [
          name,
          { kind, shapes, values: 'few' as const, runs: [], ...columns[index] },
        ]),
      ),
    }));
}

it('columns that begin, end and pause anywhere are read by pyarrow as they were written', async () => {
  await fc.assert(fc.asyncProperty(plans(process.env.PROPERTY_RUNS === 'all' ? MAX_ROWS : 45_000), expectColumns), {
    numRuns: propertyRuns(30),
    endOnFailure: true,
  });
}, 3_600_000);

it('so are those of a file of 250,000 rows', async () => {
  await fc.assert(fc.asyncProperty(plans(MAX_ROWS, MAX_ROWS), expectColumns), { numRuns: 1, endOnFailure: true });
}, 600_000);

/** Makes the file in both ways: from lines, in row groups of 100,000 rows, and from records, in those of the plan. */
async function expectColumns(plan: Plan): Promise<void> {
  const lines = join(folder, 'rows.jsonl');
  const fromLines = join(folder, 'lines.parquet');
  const fromRecords = join(folder, 'records.parquet');
  const texts = linesOf(plan);
  writeLines(lines, texts);
  await convertFile(lines, fromLines, { otlp, signal: running, threads: 2 });
  await writeParquet(fromRecords, texts.map(parseRecordLine), {
    maxRowGroupRows: plan.groupRows,
    maxRowGroupBytes: Number.POSITIVE_INFINITY,
  });
  const input = JSON.stringify({ files: [fromLines, fromRecords], plan });
  const wrong = execFileSync(python, [join('test', 'tool', 'parquet_columns.py')], { input, encoding: 'utf8' });
  expect(JSON.parse(wrong)).toEqual([]);
}

function writeLines(path: string, lines: readonly string[]): void {
  const file = openSync(path, 'w');
  for (let at = 0; at < lines.length; at += 10_000) writeSync(file, `${lines.slice(at, at + 10_000).join('\n')}\n`);
  closeSync(file);
}

/** The rows as the engine would write them. */
function linesOf(plan: Plan): string[] {
  const columns = Object.entries(COLUMNS).map(([name, { field }]) => {
    const column = plan.columns[name];
    if (column === undefined) throw new Error(`the plan lacks ${name}`);
    return { field, isAttribute: name.startsWith('attributes.'), ...column, has: presence(plan, column) };
  });
  const shapes = new Uint8Array(plan.rowCount);
  for (const [from, shape] of plan.shapes) shapes.fill(shape, from);
  return Array.from({ length: plan.rowCount }, (_, row) => {
    const shape = shapes[row] ?? START;
    const envelope: Record<string, unknown> = {};
    const attributes: Record<string, unknown> = {};
    for (const { field, isAttribute, kind, values, has } of columns) {
      if (has[row] === 1 && COLUMN_SHAPES[field]?.includes(shape) === true)
        (isAttribute ? attributes : envelope)[field] = cellOf(kind, values, row);
    }
    return lineOf(row, shape, envelope, attributes);
  });
}

const COLUMN_SHAPES: Readonly<Record<string, readonly number[]>> = Object.fromEntries(
  Object.values(COLUMNS).map(({ field, shapes }) => [field, shapes]),
);

function presence({ rowCount }: Plan, { runs }: ColumnPlan): Uint8Array {
  const has = new Uint8Array(rowCount);
  for (const [from, to, stride] of runs) for (let row = from; row < Math.min(to, rowCount); row += stride) has[row] = 1;
  return has;
}

/** The value of a cell; `parquet_columns.py` says what becomes of it. */
function cellOf(kind: Kind, values: ColumnPlan['values'], row: number): unknown {
  const number = { same: 7, few: row % 7, distinct: row, wide: 0 }[values];
  const isWide = values === 'wide';
  switch (kind) {
    case 'text':
      return isWide ? `é${row}`.padEnd(120, '-') : `t${number}`;
    case 'uint64':
      return String(isWide ? BigInt(row) * 73_786_976_294_838n : number);
    case 'uint32':
      return isWide ? (row * 2_654_435_761) % 2 ** 32 : number;
    case 'int32':
      return isWide ? ((row * 2_654_435_761) % 2 ** 32) - 2 ** 31 : 0 - number;
    case 'boolean':
      return row % 3 === 0;
    case 'spanId':
      return hex(row + 1, 16);
    case 'links':
      return Array.from({ length: row % 4 }, (_, item) => ({
        trace_id: hex(row + 1, 32),
        span_id: hex(item + 1, 16),
        attributes: { n: row },
      }));
  }
}

/** A line with the keys in the engine's order. */
function lineOf(
  row: number,
  shape: number,
  fields: Record<string, unknown>,
  attributes: Record<string, unknown>,
): string {
  const sorted = Object.fromEntries(Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1)));
  const severity = { severity_number: 9, severity_text: 'INFO' };
  const trace_id = hex(1, 32);
  const time = String(1_700_000_000_000_000_000n + BigInt(row));
  if (shape === LOG) {
    return JSON.stringify({
      record_type: 'LogRecord',
      trace_id,
      span_id: null,
      span_name: null,
      event_id: fields.event_id ?? null,
      time_unix_nano: time,
      ...severity,
      body: 'b',
      event_type: 'v1.public.events.fusion.log.LogMessage',
      attributes: sorted,
    });
  }
  return JSON.stringify({
    record_type: shape === START ? 'SpanStart' : 'SpanEnd',
    trace_id,
    span_id: hex(row + 1, 16),
    span_name: 's',
    parent_span_id: fields.parent_span_id ?? null,
    links: fields.links ?? null,
    start_time_unix_nano: time,
    ...(shape === START ? {} : { end_time_unix_nano: time }),
    ...severity,
    ...(shape === START
      ? {}
      : { status: fields.status_message === undefined ? null : { message: fields.status_message, code: 1 } }),
    event_type: `v1.public.events.fusion.${shape === QUERY ? 'query.QueryExecuted' : 'node.NodeProcessed'}`,
    attributes: sorted,
  });
}

function hex(number: number, length: number): string {
  return number.toString(16).padStart(length, '0');
}
