import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const started: BridgeProcess[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((bridge) => bridge.remove()));
});

async function serve(options: Parameters<typeof BridgeProcess.start>[0] = {}): Promise<BridgeProcess> {
  const bridge = await BridgeProcess.start(options);
  started.push(bridge);
  return bridge;
}

const RUN = 'build-clean';
const sample = new URL(`../fixture/samples/${RUN}/`, import.meta.url);
const traceId: string = JSON.parse(readFileSync(new URL('otel.jsonl', sample), 'utf8').split('\n')[0] ?? '').trace_id;

describe('serve', () => {
  test('says in eight lines on standard error where it listens, where its first token is, where it writes, exports and what to run', async () => {
    const bridge = await serve();
    const lines = bridge.stderr.trim().split('\n');
    expect(lines.map((line) => line.split(/ {2,}/)[0])).toEqual(
      ['receives', '', 'pages', 'token', 'writes', 'exports', 'now run', 'or'].map((word) =>
        expect.stringContaining(word),
      ),
    );
    expect(lines).toHaveLength(8);
    expect(lines[5]).toBe(
      'exports   nothing; set OTEL_EXPORTER_OTLP_ENDPOINT, or destinations in run-bridge.yaml, to change that',
    );
    expect(lines[6]).toBe(`now run   run-bridge exec --to ${bridge.otlpUrl} -- dbt build`);
    expect(lines[7]).toMatch(
      new RegExp(`^or {8}OTEL_EXPORTER_OTLP_ENDPOINT=${bridge.otlpUrl} .* dbt build --export-to-otlp$`),
    );
    expect(bridge.stdout).toBe('');
  });

  test('answers what is nowhere with a page where a browser asks, and with a text elsewhere', async () => {
    const bridge = await serve();
    const token = readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
    const ask = async (path: string, headers: Record<string, string>) => {
      const answer = await fetch(`${bridge.webUrl}${path}`, { headers });
      return [answer.status, await answer.text()] as const;
    };
    const html = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    const cookie = { ...html, Cookie: `run_bridge_token=${token}` };
    expect(await ask('/nowhere', cookie)).toEqual([404, expect.stringContaining('<h1>Not found</h1>')]);
    expect(await ask('/runs/9999', cookie)).toEqual([
      404,
      expect.stringContaining('There is no run #9999 (any more).'),
    ]);
    const names = expect.stringContaining('There is no page /nowhere/&lt;b&gt;.');
    expect(await ask('/nowhere/%3Cb%3E', html)).toEqual([404, names]);
    expect(await ask('/nowhere', {})).toEqual([404, 'Nothing is here; GET / says what there is.\n']);
    expect((await ask('/readyz', html))[0]).toBe(200);
  });

  test('answers health on both ports', async () => {
    const bridge = await serve();
    for (const url of [bridge.otlpUrl, bridge.webUrl]) {
      for (const path of ['healthz', 'readyz']) expect((await fetch(`${url}/${path}`)).status).toBe(200);
    }
  });

  test('keeps what is sent, judges the run, writes its files, and ends with 0 on SIGTERM', async () => {
    const bridge = await serve();
    await sendSample(bridge.otlpUrl, RUN);
    expect(await bridge.finished(traceId)).toMatchObject({ steps: [{ verdict: 'success' }] });
    expect(readdirSync(bridge.runFolder(traceId))).toEqual(
      expect.arrayContaining(['run.json', 'telemetry.jsonl', 'telemetry.parquet']),
    );
    expect(await bridge.stop('SIGTERM')).toBe(0);
  });

  test('writes no Parquet where that is off', async () => {
    const bridge = await serve({ args: ['--parquet', 'off'] });
    await sendSample(bridge.otlpUrl, RUN);
    await until('run.json', () => readdirSync(bridge.runFolder(traceId)).includes('run.json'));
    expect(await bridge.stop('SIGINT')).toBe(0);
    expect(readdirSync(bridge.runFolder(traceId))).not.toContain('telemetry.parquet');
  });

  test('streams every record to standard output, and nothing else', async () => {
    const bridge = await serve({ args: ['--jsonl', '-'] });
    await sendSample(bridge.otlpUrl, RUN);
    await bridge.finished(traceId);
    expect(await bridge.stop()).toBe(0);
    expect(bridge.stdout).toBe(readFileSync(`${bridge.runFolder(traceId)}/telemetry.jsonl`, 'utf8'));
  });

  test('goes on receiving when the reader of its stream goes away', async () => {
    const bridge = await serve({ args: ['--jsonl', '-'] });
    bridge.child.stdout?.destroy();
    await sendSample(bridge.otlpUrl, RUN);
    await bridge.finished(traceId);
    expect(bridge.stderr).toContain('the reader closed the JSONL stream');
    expect(await bridge.stop()).toBe(0);
  });

  test('holds its data folder: a second one names the holder and ends with 2, import hands over to it', async () => {
    const bridge = await serve();
    const holder = `${bridge.dataFolder} is in use by process ${bridge.child.pid}`;
    const cwd = bridge.dataFolder;
    const second = await runBridge(['serve', '--http', '0', '--grpc', 'off', '--web', '0', '--data-dir', '.'], { cwd });
    expect(second).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(`^run-bridge: ${holder} since .*\n$`) });
    const path = new URL('otel.jsonl', sample).pathname;
    for (const where of [
      ['--data-dir', '.'],
      ['--to', bridge.otlpUrl],
    ]) {
      const sent = expect.stringMatching(`^sent to ${bridge.otlpUrl}: 254 records .*\n$`);
      expect(await runBridge(['import', path, ...where], { cwd })).toMatchObject({ exitCode: 0, stderr: sent });
    }
    await bridge.finished(traceId);
  });

  test('is named by an import that it cannot be handed over to, and that ends with 1', async () => {
    const path = new URL('otel.jsonl', sample).pathname;
    const failed = await runBridge(['import', path, '--to', 'http://127.0.0.1:1'], { cwd: tmpdir() });
    expect(failed).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/cannot be reached; start a bridge/) });
  });

  test('takes the entry point and configuration of the container', async () => {
    const config = new URL('../../deploy/run-bridge.yaml', import.meta.url).pathname;
    const bridge = await serve({ args: ['--config', config] });
    expect(bridge.stderr).toContain('exports   traces (http://traces:4318)\n');
    await sendSample(bridge.otlpUrl, RUN);
    await bridge.finished(traceId);
    expect(await bridge.stop()).toBe(0);
  });
});

test('a signal that comes twice at once, as from a terminal and from npm, is one', async () => {
  const bridge = await serve();
  await sendSample(bridge.otlpUrl, RUN);
  const ended = bridge.stop('SIGINT');
  bridge.child.kill('SIGINT');
  expect(await ended).toBe(0);
});
