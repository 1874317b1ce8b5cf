import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Whether one of some runs' Parquet is half-written just now. */
export function isWritingParquet(dataFolder: string, traceIds: readonly string[]): boolean {
  return traceIds.some((traceId) => {
    const folder = join(dataFolder, 'runs', traceId);
    return existsSync(folder) && readdirSync(folder).some((name) => name.endsWith('.parquet.partial'));
  });
}

/** Whether a run's `run.json` says that it is finished, with all that is in its record log. */
export function isJudgedToItsEnd(dataFolder: string, traceId: string): boolean {
  const folder = join(dataFolder, 'runs', traceId);
  const path = join(folder, 'run.json');
  if (!existsSync(path)) return false;
  const run = JSON.parse(readFileSync(path, 'utf8')) as { state: string; log_bytes: number };
  return run.state === 'finished' && run.log_bytes === statSync(join(folder, 'telemetry.jsonl')).size;
}
