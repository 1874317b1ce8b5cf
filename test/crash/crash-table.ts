import { median } from './median.js';

/** A row of the table: what a server had after it was killed so often. `null` where it has no such thing. */
export interface CrashRow {
  readonly name: string;
  readonly kills: number;
  readonly acknowledged: number;
  readonly inLog: number | null;
  readonly twiceInLog: number | null;
  readonly inParquet: number | null;
  readonly atSink: number;
  /** Of acknowledged: in some place where it has to be it is not. */
  readonly missing: number;
  readonly twiceAtSink: number;
  readonly recoveriesMs: readonly number[];
}

const COLUMNS: readonly (readonly [string, (row: CrashRow) => string])[] = [
  ['server', ({ name }) => name],
  ['kills', ({ kills }) => text(kills)],
  ['spans acknowledged', ({ acknowledged }) => text(acknowledged)],
  ['in the log', ({ inLog }) => text(inLog)],
  ['twice in the log', ({ twiceInLog }) => text(twiceInLog)],
  ['in Parquet', ({ inParquet }) => text(inParquet)],
  ['at the sink', ({ atSink }) => text(atSink)],
  ['missing', ({ missing }) => text(missing)],
  ['twice at the sink', ({ twiceAtSink }) => text(twiceAtSink)],
  ['ready after, median ms', ({ recoveriesMs }) => text(Math.round(median(recoveriesMs)))],
  ['max ms', ({ recoveriesMs }) => text(Math.round(Math.max(0, ...recoveriesMs)))],
];

/** The rows as a Markdown table. */
export function crashTable(rows: readonly CrashRow[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const head = [line(COLUMNS.map(([title]) => title)), line(COLUMNS.map(() => '---'))];
  return [...head, ...rows.map((row) => line(COLUMNS.map(([, cell]) => cell(row))))].join('\n');
}

function text(value: number | null): string {
  return value === null ? '' : value.toLocaleString('en-US');
}
