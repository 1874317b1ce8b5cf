import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runBridge } from '../e2e/run-bridge.js';
import { SAMPLES } from '../fake/sample-run.js';
import { MountedFolder } from '../tool/mounted-folder.js';
import { SpawnedCommand } from '../tool/spawned-command.js';
import { until } from '../tool/until.js';

const standIn = new URL('../tool/stand-in-engine.mjs', import.meta.url).pathname;
const sample = join(resolve(SAMPLES), 'build-mixed');
const lines = readFileSync(join(sample, 'otel.jsonl'), 'utf8').trimEnd().split('\n');
const traceId = /"trace_id":"([0-9a-f]{32})"/.exec(lines[0] ?? '')?.[1] ?? '';

const mounted = MountedFolder.mount(24);
afterAll(() => mounted?.remove());

describe.skipIf(mounted === undefined)('a disk that fills while the command runs', () => {
  const filler = join(mounted?.path ?? '', 'filler');
  const data = join(mounted?.path ?? '', 'data');
  const log = join(data, 'runs', traceId, 'telemetry.jsonl');
  const env = (temp: string) => ({ TMPDIR: temp, RUN_BRIDGE_DATA_DIR: data });
  let temp: string;

  beforeEach(() => {
    temp = mkdtempSync(join(tmpdir(), 'run-bridge-exec-disk-'));
    mkdirSync(data);
  });
  afterEach(() => {
    for (const path of [filler, data, temp]) rmSync(path, { recursive: true, force: true });
  });

  const fill = () => {
    const { bavail, bsize } = statfsSync(data);
    try {
      writeFileSync(filler, Buffer.alloc(bavail * bsize));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
    }
  };
  /** Without what a write that failed left at the end. */
  const wholeLines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);

  /** Runs the stand-in, fills the disk once the first records are in, and gives how it ended. */
  async function runWhileFilling(temporary: string, reserve: string) {
    const engine = [process.execPath, standIn, sample, '--slow', '3'].join(' ');
    const script = `echo out; ${engine}; echo done; exit 3`;
    const command = new SpawnedCommand(['exec', '--flush-timeout', '1s', '--', 'sh', '-c', script], {
      cwd: temp,
      env: { ...env(temporary), RUN_BRIDGE_DISK_RESERVE: reserve },
    });
    await until('the first records', () => existsSync(log));
    fill();
    await until('the end of the command', () => command.stdout.toString().endsWith('done\n'));
    const exitCode = await command.ended();
    return { exitCode, stdout: command.stdout.toString(), stderr: command.stderr };
  }

  test.each([
    ['is about to be, with room kept free', '4MiB'],
    ['is full to the last byte', 'off'],
  ])('leaves the command alone, and says in a line where its telemetry is: the disk %s', async (_how, reserve) => {
    const { exitCode, stdout, stderr } = await runWhileFilling(temp, reserve);
    expect([exitCode, stdout]).toEqual([3, 'out\ndone\n']);
    const folder = /telemetry of the command is left in (\S+): run-bridge import imports it/.exec(stderr)?.[1];
    if (folder === undefined) {
      // The records had come in before the disk was full, and at most the command's end could not be noted.
      expect(stderr).toMatch(/^(run-bridge: the step could not be saved: [^\n]*\n)?$/);
      expect(wholeLines().sort()).toEqual([...lines].sort());
      return;
    }
    expect(stderr).toMatch(/^run-bridge: [^\n]*\n$/);
    expect(folder, stderr).toContain(temp);
    // What was accepted is whole: every line of it is one of the engine's, in their order.
    const accepted = wholeLines();
    expect(lines.slice(0, accepted.length)).toEqual(accepted);

    rmSync(filler);
    const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
    const paths = files.map((name) => join(folder, name));
    const taken = await runBridge(['import', ...paths], { cwd: temp, env: env(temp) });
    expect(taken).toMatchObject({ exitCode: 0 });
    expect(wholeLines().sort()).toEqual([...lines].sort());
  });

  test('says so in a line where there is no other place, either', async () => {
    writeFileSync(join(temp, 'file'), '');
    const { exitCode, stdout, stderr } = await runWhileFilling(join(temp, 'file', 'none'), 'off');
    expect([exitCode, stdout]).toEqual([3, 'out\ndone\n']);
    if (stderr === '') expect(wholeLines().sort()).toEqual([...lines].sort());
    else expect(stderr).toMatch(/^run-bridge: [^\n]*\n$/);
  });
});
