import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { openSqliteState } from '../../src/storage/sqlite-state.js';
import type { ExpectedRun } from './expected-runs.js';

/** The destination that `OTEL_EXPORTER_OTLP_ENDPOINT` makes. */
const DESTINATION = 'otlp';

/**
 * Whether what the program remembers agrees with the files: each run finished, judged as its command ended, its Parquet and
 * every export at the end of its log; nothing half-written left.
 * @returns one sentence for each thing that is wrong; none when all is well.
 */
export async function auditState(dataFolder: string, runs: readonly ExpectedRun[]): Promise<readonly string[]> {
  const path = join(dataFolder, 'state.db');
  const problems = checkIntegrity(path);
  const state = await openSqliteState(path);
  try {
    const rows = new Map((await state.runs.list(runs.length * 2)).map((row) => [String(row.traceId), row]));
    for (const { traceId, sample, verdicts } of runs) {
      const folder = join(dataFolder, 'runs', traceId);
      const say = (problem: string) => problems.push(`${traceId} (${sample}): ${problem}`);
      const logBytes = statSync(join(folder, 'telemetry.jsonl')).size;
      const row = rows.get(traceId);
      if (row?.state !== 'finished') say(`its row says ${row?.state}`);
      if (row?.logBytes !== logBytes) say(`its row knows ${row?.logBytes} bytes of ${logBytes}`);
      if (row?.parquetBytes !== logBytes) say(`its row has Parquet for ${row?.parquetBytes} bytes of ${logBytes}`);
      checkDocument(folder, verdicts, say);
      for (const name of readdirSync(folder)) if (name.endsWith('.partial')) say(`${name} was left behind`);
      if (row === undefined) continue;
      const cursor = await state.cursors.find(DESTINATION, row.traceId);
      const places = [cursor?.tracesOffset, cursor?.logsOffset, cursor?.finishedAtBytes];
      if (places.some((place) => place !== logBytes)) say(`its export is at ${places.join(', ')} of ${logBytes}`);
    }
    for (const { traceId } of await state.runs.listUnfinished()) problems.push(`${traceId} is listed as unfinished`);
    for (const { traceId } of await state.cursors.listPending(DESTINATION))
      problems.push(`${traceId} waits for its export`);
  } finally {
    await state.close();
  }
  return problems;
}

function checkIntegrity(path: string): string[] {
  const database = new Database(path);
  const answers = database.prepare('PRAGMA integrity_check').all() as { integrity_check: string }[];
  database.close();
  return answers.flatMap(({ integrity_check: answer }) => (answer === 'ok' ? [] : [`state.db: ${answer}`]));
}

function checkDocument(folder: string, verdicts: readonly string[], say: (problem: string) => void): void {
  const path = join(folder, 'run.json');
  if (!existsSync(path)) {
    say('it has no run.json');
    return;
  }
  const run = JSON.parse(readFileSync(path, 'utf8')) as { state: string; steps: { verdict: string | null }[] };
  const stored = run.steps.map(({ verdict }) => String(verdict)).sort();
  if (run.state !== 'finished') say(`run.json says ${run.state}`);
  if (stored.join() !== verdicts.join()) say(`its verdicts are ${stored.join(', ')}, not ${verdicts.join(', ')}`);
}
