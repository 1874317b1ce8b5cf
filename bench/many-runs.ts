import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseTraceId, type TraceId } from '../src/record/telemetry-record.js';
import type { RunRow } from '../src/storage/run-store.js';
import { openSqliteState } from '../src/storage/sqlite-state.js';
import type { State } from '../src/storage/state.js';
import { measureNode } from './measured-process.js';

const SAMPLE = 'test/fixture/samples/build-clean/otel.jsonl';
const ROWS_AT_ONCE = 500;

/**
 * A data folder with many finished runs: one that the program itself imported, over and over under other trace ids, files
 * and rows alike.
 * @param destination a destination that is to have got all of them; `null` for none
 * @param sample JSONL of the run
 */
export async function makeManyRuns(
  folder: string,
  count: number,
  dist: string,
  destination: string | null,
  sample = SAMPLE,
): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await measureNode([join(dist, 'main.js'), 'import', sample, '--data-dir', folder, '--log-level', 'error']);
  const runs = join(folder, 'runs');
  const original = parseTraceId(readdirSync(runs)[0] ?? '');
  if (original === undefined) throw new Error(`${sample} was not imported`);
  const state = await openSqliteState(join(folder, 'state.db'));
  const row = await state.runs.find(original);
  if (row === undefined) throw new Error(`the run ${original} has no row`);
  if (destination !== null) await state.cursors.register(destination, 0);
  let rows: RunRow[] = [row];
  for (let number = 1; number < count; number++) {
    const traceId = otherId(original, number);
    copyRun(join(runs, original), join(runs, traceId), original, traceId);
    rows.push({ ...row, traceId, summary: renamed(row.summary, original, traceId) });
    if (rows.length >= ROWS_AT_ONCE) rows = await saved(state, rows, destination);
  }
  await saved(state, rows, destination);
  await state.close();
}

async function saved(state: State, rows: readonly RunRow[], destination: string | null): Promise<RunRow[]> {
  await state.runs.save(rows);
  if (destination !== null) {
    await state.cursors.save(
      rows.map(({ traceId, logBytes }) => ({
        destination,
        traceId,
        tracesOffset: logBytes,
        logsOffset: logBytes,
        finishedAtBytes: logBytes,
      })),
    );
  }
  return [];
}

/** Parquet is copied as it is: no start reads it. */
function copyRun(from: string, to: string, original: TraceId, traceId: TraceId): void {
  mkdirSync(to);
  for (const name of readdirSync(from)) {
    const [source, target] = [join(from, name), join(to, name)];
    if (name.endsWith('.parquet')) cpSync(source, target);
    else writeFileSync(target, renamed(readFileSync(source, 'utf8'), original, traceId));
  }
}

function renamed(text: string, original: TraceId, traceId: TraceId): string {
  return text.replaceAll(original, traceId).replaceAll(uuid(original), uuid(traceId));
}

function uuid(id: TraceId): string {
  return id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function otherId(original: TraceId, number: number): TraceId {
  const id = parseTraceId(number.toString(16).padStart(8, '0') + original.slice(8));
  if (id === undefined) throw new Error('no trace id');
  return id;
}
