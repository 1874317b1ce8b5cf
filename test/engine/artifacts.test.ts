import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { Engine } from '../tool/engine.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';

const main = new URL('../../dist/main.js', import.meta.url).pathname;

interface ScriptRun {
  readonly id: number;
  readonly run_steps: readonly object[];
}

describe('artifacts of a run of the real engine under exec --to', () => {
  let engine: Engine;
  let bridge: BridgeProcess;
  let ownFolder: string;
  let base: string;
  let token: string;

  beforeAll(async () => {
    engine = Engine.up('core');
    bridge = await BridgeProcess.start({});
    ownFolder = mkdtempSync(join(tmpdir(), 'run-bridge-artifacts-'));
    token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
    const exec = (...command: readonly string[]) =>
      engine.runCommand(
        [process.execPath, main, 'exec', '--run-id', 'night', '--to', bridge.otlpUrl, '--', ...command],
        {
          RUN_BRIDGE_DATA_DIR: ownFolder,
        },
      );
    await exec('dbt', 'seed');
    await exec('dbt', 'build', '--exclude', 'tag:slow', '--target-path', 'made');
    await exec('sh', '-c', 'exit 0');
    const runs = await ask('/api/v2/accounts/10001/runs/?order_by=-id&limit=1');
    const { data } = JSON.parse(runs.toString()) as { data: readonly { id: number }[] };
    base = `/api/v2/accounts/10001/runs/${data[0]?.id}/artifacts`;
  });
  afterAll(async () => {
    await bridge?.remove();
    engine?.remove();
    rmSync(ownFolder, { recursive: true, force: true });
  });

  async function ask(path: string): Promise<Buffer> {
    const answer = await fetch(bridge.webUrl + path, { headers: { authorization: `Token ${token}` } });
    if (!answer.ok) throw new Error(`${path} is ${answer.status}`);
    return Buffer.from(await answer.arrayBuffer());
  }
  const listOf = async (step: number): Promise<readonly string[] | null> =>
    (JSON.parse((await ask(`${base}/?step=${step}`)).toString()) as { data: readonly string[] | null }).data;

  it('are what each step left, byte by byte', async () => {
    const listed = (await listOf(2)) ?? [];
    expect(listed).toEqual(expect.arrayContaining(['manifest.json', 'run_results.json', 'semantic_manifest.json']));
    expect(listed).toContain('run/shop/models/marts/revenue.sql');
    expect(listed).toContain('compiled/shop/models/marts/revenue.sql');
    for (const path of listed.filter((each) => !each.startsWith('metadata/'))) {
      const written = readFileSync(join(engine.project, 'made', path));
      expect((await ask(`${base}/${path}?step=2`)).equals(written) ? path : `${path} differs`).toBe(path);
    }
    expect(await listOf(1)).toContain('run_results.json');
    expect(await listOf(3)).toEqual([]);
    expect(readdirSync(join(ownFolder, 'spool'))).toEqual([]);
  });

  it('are those of each engine command of a script, as if each had been run by itself', async () => {
    const script = 'dbt parse && dbt build --exclude tag:slow tag:bad; dbt test --select stg_orders';
    await engine.runCommand([process.execPath, main, 'exec', '--to', bridge.otlpUrl, '--', 'sh', '-c', script], {
      RUN_BRIDGE_DATA_DIR: ownFolder,
    });
    const runs = await ask('/api/v2/accounts/10001/runs/?order_by=-id&limit=1&include_related=["run_steps"]');
    const [run] = (JSON.parse(runs.toString()) as { data: readonly ScriptRun[] }).data;
    expect(run?.run_steps).toMatchObject([
      { index: 1, name: expect.stringContaining('dbt parse'), status: 10 },
      { index: 2, name: expect.stringContaining('dbt build'), status: 10 },
      { index: 3, name: expect.stringContaining('dbt test'), status: 10 },
    ]);
    const files = `/api/v2/accounts/10001/runs/${run?.id}/artifacts`;
    const invocations: string[] = [];
    for (const step of [1, 2, 3]) {
      const { data } = JSON.parse((await ask(`${files}/?step=${step}`)).toString()) as { data: readonly string[] };
      expect(data).toContain(`metadata/telemetry-${step}-otel.parquet`);
      const document = JSON.parse((await ask(`${files}/manifest.json?step=${step}`)).toString());
      invocations.push(document.metadata.invocation_id.replaceAll('-', ''));
      expect(data.includes('run_results.json')).toBe(step > 1);
    }
    const bytes = await Promise.all(
      invocations.map((_, index) => ask(`${files}/metadata/telemetry-${index + 1}-otel.parquet`)),
    );
    const parquet = (traceId: string) => readFileSync(join(bridge.dataFolder, 'runs', traceId, 'telemetry.parquet'));
    expect(invocations.map((traceId, index) => bytes[index]?.equals(parquet(traceId)))).toEqual([true, true, true]);
  });

  it('have the telemetry of each step, byte by byte the Parquet file in the data folder', async () => {
    const files = traceIdsIn(bridge.dataFolder).map((id) => join(bridge.dataFolder, 'runs', id, 'telemetry.parquet'));
    for (const step of [1, 2]) {
      const path = `metadata/telemetry-${step}-otel.parquet`;
      await until(`${path} in the list`, async () => (await listOf(step))?.includes(path) === true);
      const bytes = await ask(`${base}/${path}?step=${step}`);
      expect(files.filter((file) => readFileSync(file).equals(bytes))).toHaveLength(1);
    }
  });
});
