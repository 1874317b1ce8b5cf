import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sampleLines, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { largeSampleFolder } from '../tool/large-samples.js';
import { MountedFolder } from '../tool/mounted-folder.js';
import { runBridge } from './run-bridge.js';

const fixture = (path: string) => new URL(`../fixture/${path}`, import.meta.url).pathname;
const parse = readFileSync(fixture('samples/parse/otel.jsonl'));

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-import-'));
  mkdirSync(join(dir, 'old'));
});
afterEach(() => rmSync(dir, { recursive: true }));
const importing = (...args: string[]) =>
  runBridge(['import', '--data-dir', 'data', '--log-level', 'error', ...args], { cwd: dir });

describe('import', () => {
  test('takes folders, patterns and packed files, and says how much and how fast', async () => {
    writeFileSync(join(dir, 'old/parse.jsonl.gz'), gzipSync(parse));
    copyFileSync(fixture('packed/build-mixed.jsonl.zst'), join(dir, 'old/mixed.jsonl.zst'));
    copyFileSync(fixture('samples/build-clean/otel.parquet'), join(dir, 'clean.parquet'));
    const { exitCode, stderr } = await importing('old', '*.parquet');
    expect(stderr).toMatch(
      /^imported into .*\/data\/runs: 1011 records from 3 files in \d+\.\d s \([\d,]+ records and [\d.]+ \w+ a second\)\n$/,
    );
    expect([exitCode, readdirSync(join(dir, 'data/runs')).length]).toEqual([0, 3]);
  });

  test('takes a large run whole, as JSONL and as Parquet, and writes each record once', async () => {
    const run = 'big-build';
    const lines = sampleLines(run);
    const folder = join(dir, 'data/runs', sampleTraceId(run));
    for (const file of ['otel.jsonl', 'otel.parquet']) {
      const { exitCode, stderr } = await runBridge(
        ['import', '--data-dir', 'data', '--log-level', 'error', join(largeSampleFolder(run), file)],
        { cwd: dir },
      );
      expect([exitCode, stderr]).toEqual([0, expect.stringContaining(`: ${lines.length} records from 1 file in `)]);
      const kept = readFileSync(join(folder, 'telemetry.jsonl'), 'utf8').trimEnd().split('\n');
      expect(kept.length).toBe(lines.length);
      expect(isDeepStrictEqual(kept, lines)).toBe(true);
    }
  });

  test('keeps what cannot be read in the data folder and takes the rest', async () => {
    writeFileSync(join(dir, 'otel.jsonl'), parse);
    appendFileSync(join(dir, 'otel.jsonl'), '{"record_type":"SpanEnd","torn');
    const { exitCode, stderr } = await importing('otel.jsonl');
    expect([exitCode, stderr]).toEqual([
      3,
      expect.stringMatching(
        /63 records from 1 file.*\nrun-bridge: 1 could not be read .* kept in .*\/data\/rejects.jsonl:\n {2}line 64: not JSON/,
      ),
    ]);
    expect(JSON.parse(readFileSync(join(dir, 'data/rejects.jsonl'), 'utf8'))).toMatchObject({
      file: join(dir, 'otel.jsonl'),
      place: 'line 64',
      byte_offset: parse.length,
      reason: expect.stringMatching(/^not JSON/),
      text: '{"record_type":"SpanEnd","torn',
    });
  });

  test('hands a large run to the bridge that has the folder, which keeps it as the engine wrote it', async () => {
    const file = join(largeSampleFolder('big-build'), 'otel.jsonl');
    const bridge = await BridgeProcess.start({ dataFolder: join(dir, 'data') });
    try {
      const command = ['import', '--data-dir', 'data', '--log-level', 'error', file];
      const { exitCode, stderr } = await runBridge(command, { cwd: dir });
      expect([exitCode, stderr]).toEqual([0, expect.stringContaining('sent to http')]);
      const logs = bridge.traceIds().map((traceId) => readFileSync(join(bridge.runFolder(traceId), 'telemetry.jsonl')));
      expect(logs.map((log) => log.equals(readFileSync(file)))).toEqual([true]);
    } finally {
      await bridge.stop();
    }
  });

  test('says what a pattern does not match, and takes nothing', async () => {
    writeFileSync(join(dir, 'otel.jsonl'), parse);
    const { exitCode, stderr } = await importing('otel.jsonl', 'none*.jsonl');
    expect([exitCode, stderr]).toEqual([1, 'run-bridge: no file matches none*.jsonl. Check the pattern\n']);
  });

  test('takes --durability', async () => {
    writeFileSync(join(dir, 'otel.jsonl'), parse);
    expect((await importing('otel.jsonl', '--durability', 'os')).exitCode).toBe(0);
    expect((await importing('otel.jsonl', '--durability', 'maybe')).stderr).toContain('one of fsync, os');
  });
});

const mounted = MountedFolder.mount(32);
afterAll(() => mounted?.remove());

test.skipIf(mounted === undefined)('an import leaves the reserve of the disk alone', async () => {
  const path = mounted?.path ?? '';
  writeFileSync(join(dir, 'otel.jsonl'), parse);
  writeFileSync(join(path, 'filler'), Buffer.alloc(8 * 2 ** 20));
  const { exitCode, stderr } = await importing('otel.jsonl', '--data-dir', path, '--disk-reserve', '30MiB');
  expect([exitCode, stderr]).toEqual([
    1,
    expect.stringMatching(
      /^run-bridge: The disk of .* is nearly full .*free some space; --disk-reserve sets the reserve\.\n$/,
    ),
  ]);
});
