import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Engine, type EngineBuild } from '../tool/engine.js';
import { SpawnedCommand } from '../tool/spawned-command.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';

const main = new URL('../../dist/main.js', import.meta.url).pathname;
const BUILD = ['build', '--exclude', 'tag:slow', '--otel-file-name', 'otel.jsonl'];

describe.each<EngineBuild>(['core', 'fusion'])('a real run of the %s build', (build) => {
  let engine: Engine;
  let dataFolder: string;

  beforeAll(() => {
    engine = Engine.up(build);
  });
  afterAll(() => engine.remove());
  beforeEach(() => {
    dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-data-'));
    for (const made of ['logs', 'target', 'shop.duckdb'])
      rmSync(join(engine.project, made), { recursive: true, force: true });
  });
  afterEach(() => rmSync(dataFolder, { recursive: true }));

  /** The record log of the only run. */
  const recorded = (): readonly string[] => {
    const [traceId = ''] = traceIdsIn(dataFolder);
    return readFileSync(join(dataFolder, 'runs', traceId, 'telemetry.jsonl'), 'utf8')
      .trimEnd()
      .split('\n');
  };
  const verdict = (): unknown => {
    const [traceId = ''] = traceIdsIn(dataFolder);
    return JSON.parse(readFileSync(join(dataFolder, 'runs', traceId, 'run.json'), 'utf8')).steps[0].verdict;
  };
  const follow = () =>
    new SpawnedCommand(['follow', 'logs/otel.jsonl', '--data-dir', dataFolder, '--log-format', 'text'], {
      cwd: engine.project,
    });

  it('is piped to the record log, and the exit code stays the engine’s', async () => {
    const dbt = `dbt ${BUILD.join(' ')} --log-format otel --log-level debug`;
    const line = `${dbt} | ${process.execPath} ${main} pipe --data-dir ${dataFolder}; echo "ended \${PIPESTATUS[@]}"`;
    const { output } = await engine.runShell(line);
    expect(output).toContain('ended 1 0');
    // Its threads take turns in another order on standard output than in the file.
    expect([...recorded()].sort()).toEqual([...engine.jsonlLines()].sort());
    expect(verdict()).toBe('error');
  });

  it('is followed to the record log line by line', async () => {
    const following = follow();
    await engine.run(BUILD, {});
    await until('the verdict', () => following.stderr.includes('finished a run'));
    expect(await following.stop('SIGINT')).toBe(0);
    expect(recorded()).toEqual(engine.jsonlLines());
    expect(verdict()).toBe('error');
  });

  it('is followed without a gap or a repetition by a program that is killed meanwhile', async () => {
    let following = follow();
    const running = engine.run(BUILD, {});
    await until('the first records', () => following.stderr.includes('a run started'));
    await following.stop('SIGKILL');
    following = follow();
    await running;
    await until('the verdict', () => following.stderr.includes('finished a run'));
    expect(await following.stop('SIGINT')).toBe(0);
    expect(recorded()).toEqual(engine.jsonlLines());
  });
});
