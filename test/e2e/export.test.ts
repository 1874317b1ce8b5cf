import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { OtlpReceiver } from '../fake/otlp-receiver.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';

const started: BridgeProcess[] = [];
const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((bridge) => bridge.remove()));
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

async function serve(options: Parameters<typeof BridgeProcess.start>[0] = {}): Promise<BridgeProcess> {
  const bridge = await BridgeProcess.start(options);
  started.push(bridge);
  return bridge;
}

const RUN = 'build-clean';
const sample = new URL(`../fixture/samples/${RUN}/`, import.meta.url);
const traceId: string = JSON.parse(readFileSync(new URL('otel.jsonl', sample), 'utf8').split('\n')[0] ?? '').trace_id;

/** A destination that takes requests and never answers. */
async function blackHole(): Promise<string> {
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  servers.push(server);
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
}

const spansIn = (path: string) => (existsSync(path) ? (readFileSync(path, 'utf8').match(/"spanId"/g) ?? []).length : 0);
const countSpans = () => {
  const lines = readFileSync(new URL('otel.jsonl', sample), 'utf8').split('\n');
  return lines.filter((line) => line.includes('"record_type":"SpanEnd"')).length;
};

test('a chain of bridges: the next one keeps what the first exports as it is, apart from runs', async () => {
  const next = await serve();
  const first = await serve({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: next.otlpUrl, OTEL_LOGS_EXPORTER: 'none' } });
  expect(first.stderr).toContain(`exports   otlp (${next.otlpUrl})\n`);
  await sendSample(first.otlpUrl, RUN);
  const passthrough = join(next.dataFolder, 'foreign', '00000001.otlp.jsonl');
  await until('every span', () => spansIn(passthrough) >= countSpans());
  expect(next.traceIds()).toEqual([]);
});

test('what a destination has not got when the bridge stops is exported after its next start', async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };
  const first = await serve({ env });
  await sendSample(first.otlpUrl, RUN);
  await first.finished(traceId);
  expect(await first.stop()).toBe(0);
  const next = await serve();
  await serve({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: next.otlpUrl }, dataFolder: first.dataFolder });
  const passthrough = join(next.dataFolder, 'foreign', '00000001.otlp.jsonl');
  await until('every span', () => spansIn(passthrough) >= countSpans());
});

test('ends with 0 after SIGTERM although a destination hangs', async () => {
  const bridge = await serve({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: await blackHole() } });
  await sendSample(bridge.otlpUrl, RUN);
  await bridge.finished(traceId);
  expect(await bridge.stop('SIGTERM')).toBe(0);
});

test('ends at once, with the code of a shell, at a second signal', async () => {
  const bridge = await serve({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: await blackHole() } });
  await sendSample(bridge.otlpUrl, RUN);
  await bridge.finished(traceId);
  bridge.child.kill('SIGINT');
  await until('the first signal', () => bridge.stderr.includes('stopping'));
  // Somebody who goes on pressing Ctrl+C: what comes within half a second of the first is taken for the same.
  await until('the end', () => {
    bridge.child.kill('SIGINT');
    return bridge.child.exitCode !== null;
  });
  expect(bridge.child.exitCode).toBe(130);
});

test("OpenTelemetry's exporter sends every span, also what a receiver that was down has missed, and says what was not taken", async () => {
  const receiver = await OtlpReceiver.listen();
  try {
    receiver.answer = () => ({ status: 503 });
    const first = await serve();
    await first.stop();
    const config = join(first.dataFolder, 'run-bridge.yaml');
    writeFileSync(config, `destinations: { sdk: { protocol: sdk, endpoint: "${receiver.url}", timeout: 500ms } }\n`);
    const whileDown = await serve({ args: ['--config', config], dataFolder: first.dataFolder });
    expect(whileDown.stderr).toContain(`exports   sdk (${receiver.url})\n`);
    await sendSample(whileDown.otlpUrl, RUN);
    await until('an attempt', () => receiver.requests.length > 0);
    await whileDown.stop();
    expect(receiver.spanIds).toEqual([]);
    const body = JSON.stringify({ partialSuccess: { rejectedSpans: 1, errorMessage: 'too old' } });
    receiver.answer = () => ({ body, headers: { 'content-type': 'application/json' } });
    const again = await serve({ args: ['--config', config], dataFolder: first.dataFolder });
    await until('every span', () => new Set(receiver.spanIds).size >= countSpans());
    await until('the report', () => again.stderr.includes('an OpenTelemetry exporter reported a problem'));
    expect(again.stderr).toContain('too old');
  } finally {
    receiver.close();
  }
});

test('an exporter of your own gets every span', async () => {
  const bridge = await serve();
  await bridge.stop();
  const output = join(bridge.dataFolder, 'spans.txt');
  const exporter = `import { appendFileSync } from 'node:fs';
export default {
  export(spans, done) {
    for (const span of spans) appendFileSync(${JSON.stringify(output)}, span.name + '\\n');
    done({ code: 0 });
  },
  async shutdown() {},
};`;
  writeFileSync(join(bridge.dataFolder, 'exporter.mjs'), exporter);
  const config = join(bridge.dataFolder, 'run-bridge.yaml');
  writeFileSync(config, 'destinations: { mine: { exporter: ./exporter.mjs } }\n');
  const again = await serve({ args: ['--config', config], dataFolder: bridge.dataFolder });
  await sendSample(again.otlpUrl, RUN);
  const count = () => (existsSync(output) ? readFileSync(output, 'utf8').trim().split('\n').length : 0);
  await until('every span', () => count() >= countSpans());
});
