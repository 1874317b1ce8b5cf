import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

let dir: string;
let file: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-receive-'));
  file = join(dir, 'kafka.yaml');
  // Port 9 is nobody's.
  writeFileSync(file, 'journal:\n  kafka:\n    brokers: 127.0.0.1:9\n');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe('serve --role receive', () => {
  test('says what it needs', async () => {
    const bare = await runBridge(['serve', '--role', 'receive', '--data-dir', join(dir, 'data')], { cwd: dir });
    expect(bare.exitCode).toBe(2);
    expect(bare.stderr).toMatch(/role: receive writes to topics of Kafka: set journal: kafka: brokers:/);
    const open = await runBridge(['serve', '--role', 'receive', '--config', file, '--http', '0.0.0.0:0'], { cwd: dir });
    expect(open.exitCode).toBe(2);
    expect(open.stderr).toMatch(/tokens are in the database: set DATABASE_URL .* or otlp-auth to none/);
  });

  test('starts without Kafka, says that it is away, and leaves nothing on the disk', async () => {
    const receiver = await BridgeProcess.start({ args: ['--role', 'receive', '--config', file] });
    try {
      expect(receiver.stderr.split('\n').map((line) => line.split(/ {2,}/)[0])).toEqual(
        expect.arrayContaining(['receives', 'health', 'writes', 'now run']),
      );
      expect(receiver.stderr).toMatch(/topics otlp_spans and otlp_logs of Kafka at 127\.0\.0\.1:9\n/);
      const readyz = () => fetch(`${receiver.webUrl}/readyz`);
      await until('the failure', async () => /journal: Kafka, .* is away/.test(await (await readyz()).text()));
      expect((await readyz()).status).toBe(503);
      const body = Buffer.from('{"resourceSpans":[]}');
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${receiver.otlpUrl}/v1/traces`, { method: 'POST', headers, body });
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
      expect(await (await fetch(receiver.webUrl)).text()).toMatch(/^run-bridge takes telemetry here/);
      expect((await fetch(`${receiver.webUrl}/api/run-bridge/v1/runs`)).status).toBe(404);
      expect(await receiver.stop()).toBe(0);
      expect(readdirSync(receiver.dataFolder)).toEqual([]);
    } finally {
      await receiver.remove();
    }
  });
});

describe('serve --role build and --role web', () => {
  test.each(['build', 'web'])('%s says all that it needs at once', async (role) => {
    const bare = await runBridge(['serve', '--role', role, '--data-dir', join(dir, 'data')], { cwd: dir });
    expect(bare.exitCode).toBe(2);
    for (const needed of [
      /set processes to several, or role to all/,
      /DATABASE_URL/,
      /s3:/,
      /WEBHOOK_KEY/,
      /journal:/,
    ]) {
      expect(bare.stderr).toMatch(needed);
    }
    expect(existsSync(join(dir, 'data'))).toBe(false);
  });
});
