import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { BridgeProcess } from '../tool/bridge-process.js';
import { SentRun } from '../tool/sent-run.js';
import { TestDatabase } from '../tool/test-database.js';
import { until } from '../tool/until.js';

const runs = z.object({ data: z.array(z.object({ id: z.number(), job: z.object({ name: z.string() }) })) });

it.each(['SQLite', 'PostgreSQL'])('a run is kept on %s whatever its texts hold, and so is the next', async (kind) => {
  const database = kind === 'SQLite' ? undefined : await TestDatabase.create();
  const dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-hostile-'));
  const bridge = await BridgeProcess.start({
    dataFolder,
    ...(database !== undefined && { env: { DATABASE_URL: database.url } }),
  });
  try {
    const [hostile, honest] = [new SentRun(), new SentRun()];
    for (const { signal, bytes } of hostile.bodies) {
      const answer = await fetch(`${bridge.otlpUrl}/v1/${signal}`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-protobuf' },
        body: withNul(bytes, '2.0.0-alpha.4'),
      });
      expect(answer.status).toBe(200);
    }
    await honest.send(bridge.otlpUrl);
    for (const { traceId } of [hostile, honest]) await bridge.finished(traceId);
    const token = readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim();
    const headers = { authorization: `Token ${token}`, 'content-type': 'application/json' };
    const step = {
      run_key: null,
      job: 'by\0hand',
      environment: null,
      project: null,
      command: ['x'],
      started_unix_ms: 1.5,
    };
    const url = `${bridge.webUrl}/api/run-bridge/v1/executions/steps/a`;
    expect(
      (await fetch(url, { method: 'PUT', headers, body: JSON.stringify({ ...step, is_last: true }) })).status,
    ).toBe(200);
    const end = { ending: { kind: 'exited', exit_code: 2 ** 40 }, ended_unix_ms: 3 };
    expect((await fetch(`${url}/end`, { method: 'PUT', headers, body: JSON.stringify(end) })).status).toBe(400);
    const list = await until('all runs', async () => {
      const answer = await fetch(`${bridge.webUrl}/api/v2/accounts/10001/runs/?include_related=["job"]`, { headers });
      const { data } = runs.parse(await answer.json());
      return data.length === 3 && data;
    });
    expect(list.map(({ job }) => job.name).sort()).toEqual(['adhoc', 'adhoc', 'by␀hand']);
    expect(await (await fetch(`${bridge.webUrl}/metrics`, { headers })).text()).toMatch(
      /^run_bridge_runs_set_aside 0$/m,
    );
    expect(bridge.stderr).not.toMatch(/failed to save|retrying/);
  } finally {
    await bridge.remove();
    await database?.drop();
    rmSync(dataFolder, { recursive: true, force: true });
  }
});

/** The same bytes, but that a text in them holds NUL. */
function withNul(bytes: Buffer, text: string): Buffer<ArrayBuffer> {
  const copy = Buffer.from(bytes);
  const found = copy.indexOf(text);
  expect(found).toBeGreaterThan(0);
  for (let at = found; at !== -1; at = copy.indexOf(text, at + 1)) copy[at + 2] = 0;
  return copy;
}
