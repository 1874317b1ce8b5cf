import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { OtlpReceiver } from '../fake/otlp-receiver.js';
import { SAMPLES } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';
import { runBridge } from './run-bridge.js';

const SAMPLE = resolve(SAMPLES, 'build-clean', 'otel.jsonl');
/** Nobody listens there. */
const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-environment-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const INVALID: readonly (readonly [variable: string, env: Readonly<Record<string, string>>])[] = [
  ['OTEL_RESOURCE_ATTRIBUTES', { OTEL_RESOURCE_ATTRIBUTES: 'foo' }],
  ['OTEL_RESOURCE_ATTRIBUTES', { OTEL_RESOURCE_ATTRIBUTES: 'team=%zz' }],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', { OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' }],
  ['OTEL_EXPORTER_OTLP_LOGS_ENDPOINT', { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'ftp://somewhere' }],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'thrift' }],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
  ['OTEL_EXPORTER_OTLP_TRACES_COMPRESSION', { ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'zstd' }],
  ['OTEL_EXPORTER_OTLP_TIMEOUT', { ...ENDPOINT, OTEL_EXPORTER_OTLP_TIMEOUT: '10s' }],
  ['OTEL_EXPORTER_OTLP_HEADERS', { ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'key=%zz,other' }],
  ['OTEL_EXPORTER_OTLP_HEADERS', { ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'Transfer-Encoding=chunked,a=b' }],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:pa%zz@127.0.0.1:9' }],
  [
    'package.json',
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://127.0.0.1:9', OTEL_EXPORTER_OTLP_CERTIFICATE: resolve('package.json') },
  ],
  ['OTEL_EXPORTER_OTLP_CLIENT_KEY', { ...ENDPOINT, OTEL_EXPORTER_OTLP_CLIENT_KEY: '/no/such/key.pem' }],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', { ...ENDPOINT, OTEL_EXPORTER_OTLP_CERTIFICATE: '/no/such/ca.pem' }],
  ['OTEL_SDK_DISABLED', { ...ENDPOINT, OTEL_SDK_DISABLED: 'yes' }],
];

describe('a variable of OpenTelemetry that cannot be used', () => {
  test.each(INVALID)('%s: exec keeps the run and says so in one line, with %j', async (variable, env) => {
    const command = ['sh', '-c', `cat '${SAMPLE}' > "$DBT_OTEL_FILE_NAME"; exit 3`];
    const args = ['exec', '--data-dir', 'data', '--flush-timeout', '10ms', '--', ...command];
    const { exitCode, stderr } = await runBridge(args, { cwd: dir, env });
    expect(exitCode).toBe(3);
    expect(traceIdsIn(join(dir, 'data'))).toHaveLength(1);
    expect(stderr.split('\n').filter((line) => line.includes(variable))).toHaveLength(1);
    expect(stderr).not.toContain('not kept');
  });

  test('is no matter of commands that export nothing, nor is a destination of the file', async () => {
    const env = { OTEL_RESOURCE_ATTRIBUTES: 'foo', OTEL_EXPORTER_OTLP_ENDPOINT: 'foo' };
    const run = (args: readonly string[]) => runBridge(args, { cwd: dir, env });
    const imported = await run(['import', SAMPLE, '--data-dir', 'data']);
    expect(imported.exitCode).toBe(0);
    expect(imported.stderr).not.toContain('OTEL_');
    writeFileSync(
      join(dir, 'run-bridge.yaml'),
      // biome-ignore lint/suspicious/noTemplateCurlyInString: run-bridge's own.
      'destinations: { vendor: { endpoint: https://vendor.example, headers: { key: "${env:NOT_SET}" } } }\n',
    );
    for (const args of [
      ['report', SAMPLE],
      ['runs', '--data-dir', 'data'],
      ['query', '--data-dir', 'data', 'select 1 as one'],
      ['token', 'list', '--data-dir', 'data'],
    ]) {
      expect(await run(args), args.join(' ')).toMatchObject({ exitCode: 0, stderr: '' });
    }
  });
});

describe('serve', () => {
  let bridge: BridgeProcess | undefined;
  afterEach(async () => {
    await bridge?.remove();
    bridge = undefined;
  });

  async function page(path: string, of: BridgeProcess): Promise<string> {
    const { stdout } = await runBridge(['open', '--print', '--data-dir', of.dataFolder], { cwd: dir });
    const link = await fetch(stdout.trim(), { redirect: 'manual' });
    const cookie = (link.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    const answer = await fetch(`${of.webUrl}${path}`, { headers: { cookie } });
    expect(answer.status).toBe(200);
    return answer.text();
  }

  async function checks(of: BridgeProcess): Promise<Record<string, unknown>> {
    const response = await fetch(`${of.webUrl}/readyz?verbose`);
    expect(response.status).toBe(200);
    const report = (await response.json()) as { checks: { name: string; details?: unknown }[] };
    return Object.fromEntries(report.checks.map(({ name, details }) => [name, details]));
  }

  test.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
    ['OTEL_SDK_DISABLED', { ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }],
    ['/no/such/ca.pem', { ...ENDPOINT, OTEL_EXPORTER_OTLP_CERTIFICATE: '/no/such/ca.pem' }],
  ])('starts without the destination of %s, and says that it is off', async (variable, env) => {
    bridge = await BridgeProcess.start({ env });
    expect(bridge.stderr).toMatch(/exports {3}otlp is off/);
    expect(bridge.stderr.split('\n').filter((line) => line.includes('the destination is off'))).toHaveLength(1);
    expect((await checks(bridge))['export to otlp']).toEqual({
      state: 'off',
      lastError: expect.stringContaining(variable),
    });
    const settings = await page('/settings', bridge);
    expect(settings).toMatch(/otlp<\/span> is off/);
    expect(settings).toContain(variable);
  });

  test('goes on to export where only one of the variables is invalid, and shows which', async () => {
    const receiver = await OtlpReceiver.listen();
    try {
      const env = {
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        OTEL_EXPORTER_OTLP_TIMEOUT: 'soon',
        OTEL_RESOURCE_ATTRIBUTES: 'team',
      };
      bridge = await BridgeProcess.start({ env });
      const { exitCode } = await runBridge(['import', SAMPLE, '--to', bridge.otlpUrl, '--data-dir', 'data'], {
        cwd: dir,
      });
      expect(exitCode).toBe(0);
      await until('spans', () => receiver.spanNames.length > 0);
      const ignored = expect.stringMatching(/OTEL_EXPORTER_OTLP_TIMEOUT.*OTEL_RESOURCE_ATTRIBUTES/);
      expect((await checks(bridge))["OpenTelemetry's variables"]).toEqual({ ignored });
      expect(await page('/settings', bridge)).toContain('OTEL_EXPORTER_OTLP_TIMEOUT is not a number');
    } finally {
      receiver.close();
    }
  });
});
