import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sendSample } from '../tool/send-sample.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { runBridge } from './run-bridge.js';

const SAMPLE = new URL('../fixture/samples/build-clean/otel.jsonl', import.meta.url).pathname;
const OTHER_SAMPLE = 'fail-fast';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-start-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** V8 lists every script that was loaded where it is asked for coverage. */
const coverage = () => ({ NODE_V8_COVERAGE: join(dir, 'coverage') });
function loadedFiles(): readonly string[] {
  const folder = join(dir, 'coverage');
  const reports = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')));
  const urls: string[] = reports.flatMap(({ result }) => result.map(({ url }: { readonly url: string }) => url));
  return urls.filter((url) => url.startsWith('file:'));
}
/** Each piece of a bundled file stands under the path that it is from; what is not bundled is a package's own file. */
const packagesOf = (files: readonly string[]) => {
  const heads = (file: string) => readFileSync(new URL(file), 'utf8').match(/^\/\/ node_modules\/.*/gm) ?? [];
  const paths = files.flatMap((file) => [file, ...heads(file)]);
  return [...new Set(paths.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []))];
};

describe('a start loads what it needs and no more:', () => {
  test.each([['--version'], ['--help']])('%s no package but the one for command lines', async (flag) => {
    expect(await runBridge([flag], { cwd: dir, env: coverage() })).toMatchObject({ exitCode: 0 });
    const files = loadedFiles();
    expect(packagesOf(files)).toEqual(['commander']);
    expect(files.length).toBeLessThan(60);
  });

  test('serve nothing for exports, Parquet and configuration files where there are none', async () => {
    const bridge = await BridgeProcess.start({ dataFolder: dir, env: coverage() });
    await bridge.stop();
    const packages = packagesOf(loadedFiles());
    expect(packages).toContain('express');
    expect(
      packages.filter((name) => /^(@opentelemetry\/|hyparquet|yaml$|zod$|cli-progress$|prom-client$|hono$)/.test(name)),
    ).toEqual([]);
  });
});

test('runs that are finished are not read again, not even for a destination that is new', async () => {
  const dataFolder = join(dir, 'data');
  expect(await runBridge(['import', SAMPLE, '--data-dir', dataFolder], { cwd: dir })).toMatchObject({ exitCode: 0 });
  const [traceId = ''] = traceIdsIn(dataFolder);
  const log = join(dataFolder, 'runs', traceId, 'telemetry.jsonl');
  // Whoever reads it would complain of it.
  const damaged = readFileSync(log, 'utf8').replaceAll('{', '#');
  writeFileSync(log, damaged);
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };
  const bridge = await BridgeProcess.start({ dataFolder, env });
  await sendSample(bridge.otlpUrl, OTHER_SAMPLE);
  await bridge.finished(bridge.traceIds().find((id) => id !== traceId) ?? '');
  expect(await bridge.stop()).toBe(0);
  expect(bridge.stderr).toContain('finished a run');
  expect(bridge.stderr).not.toContain('damaged');
});
