import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { silentLogger } from '../../../src/core/logger.js';
import { LocalStepRegistry } from '../../../src/run/local-step-registry.js';
import { takeDataFolder } from '../../../src/storage/data-folder-lock.js';
import { stepStart } from '../../contract/step-registry.contract.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { RegistryServer } from '../../fake/registry-server.js';
import { runInProcess } from '../../fake/run-in-process.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-finish-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const finish = (args: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
  runInProcess(['finish', ...args], dir, { environment });

async function inFolder(body: (registry: LocalStepRegistry) => Promise<void>): Promise<void> {
  const state = await openFreshState(join(dir, 'state.db'));
  const { executions: store, runs } = state;
  await body(new LocalStepRegistry({ store, runs, listeners: [], clock: systemClock, logger: silentLogger }));
  await state.close();
}

describe('run-bridge finish', () => {
  it('finishes a run of the data folder, and says what it was', async () => {
    const startedUnixMs = Date.now();
    await inFolder(async (registry) => {
      await registry.register(stepStart('a', { runKey: 'night 7', job: 'nightly', startedUnixMs }));
      await registry.end('a', { kind: 'exited', exitCode: 0 }, startedUnixMs);
      await registry.register(stepStart('b', { runKey: 'night 7', startedUnixMs }));
      await registry.end('b', { kind: 'exited', exitCode: 2 }, startedUnixMs);
    });
    const line = 'run 1001 ("night 7", job nightly) is finished: 2 steps, 1 of them failed\n';
    expect(await finish(['night 7', '--data-dir', dir])).toEqual({ exitCode: 0, stdout: '', stderr: line });
    const again = line.replace('is finished', 'was already finished');
    expect(await finish(['--data-dir', dir], { RUN_BRIDGE_RUN_ID: 'night 7' })).toMatchObject({ stderr: again });
  });

  it('finishes a run whose step was left by an exec that was killed', async () => {
    await inFolder(async (registry) => {
      await registry.register(stepStart('a', { runKey: 'night', startedUnixMs: Date.now() }));
    });
    expect(await finish(['night', '--data-dir', dir])).toMatchObject({
      exitCode: 0,
      stderr: 'run 1001 ("night", job adhoc) is finished: 1 step, which failed\n',
    });
  });

  it('asks the bridge that holds the data folder, or the one that is named', async () => {
    const server = await RegistryServer.open();
    const lock = takeDataFolder(dir, 1, 0);
    try {
      lock.announce(server.url);
      await inFolder(async () => {});
      await server.registry.register(stepStart('a', { runKey: 'night', job: 'nightly' }));
      const line =
        'run 1001 ("night", job nightly) accepts no more steps; it finishes when the step that is under way has ended\n';
      expect(await finish(['night', '--data-dir', dir])).toMatchObject({ exitCode: 0, stderr: line });
      expect(await finish(['night', '--to', server.url])).toMatchObject({ exitCode: 0, stderr: line });
      expect(await finish(['noon', '--to', server.url])).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining(`run-bridge: no run "noon" is known in ${server.url}; check the spelling`),
      });
    } finally {
      lock.release();
      await server.close();
    }
  });

  it('says what is wrong, and makes nothing', async () => {
    const folder = join(dir, 'nowhere');
    expect(await finish(['night', '--data-dir', folder])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`no run "night" is known in ${folder}`),
    });
    expect(await finish([])).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('no run given') });
    expect(await finish(['night', '--to', 'bridge:4318'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('--to: "bridge:4318" is not a URL'),
    });
    expect(readdirSync(dir)).toEqual([]);
  });
});
