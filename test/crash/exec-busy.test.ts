import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SpawnedCommand } from '../tool/spawned-command.js';
import { until } from '../tool/until.js';

const sample = new URL('../fixture/samples/build-mixed/otel.jsonl', import.meta.url).pathname;
const lines = readFileSync(sample, 'utf8').trimEnd().split('\n');
const traceId = /"trace_id":"([0-9a-f]{32})"/.exec(lines[0] ?? '')?.[1] ?? '';

let dir: string;
let others: ChildProcess[];
let command: SpawnedCommand | undefined;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-exec-busy-'));
  // More than any test here takes, should this process die.
  const spin = 'const end = Date.now() + 170_000; while (Date.now() < end);';
  others = Array.from({ length: 8 * availableParallelism() }, () => spawn(process.execPath, ['-e', spin]));
});
afterEach(async () => {
  for (const other of others) other.kill('SIGKILL');
  // Its command waits for this.
  writeFileSync(join(dir, 'go'), '');
  await command?.ended();
  rmSync(dir, { recursive: true });
});

test('records of a command come in while it works, however busy others keep all processors', async () => {
  const [data, go] = [join(dir, 'data'), join(dir, 'go')];
  const script = `cat '${sample}' > "$DBT_OTEL_FILE_NAME"; while [ ! -e '${go}' ]; do sleep 0.2; done`;
  command = new SpawnedCommand(['exec', '--data-dir', data, '--', 'sh', '-c', script], { cwd: dir });
  const log = join(data, 'runs', traceId, 'telemetry.jsonl');
  const recorded = () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').length - 1 : 0);
  await until('all records', () => recorded() === lines.length);
  writeFileSync(go, '');
  expect(await command.ended()).toBe(0);
  expect(command.stderr).toBe('');
});
