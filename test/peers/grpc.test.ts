import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { formatRecordLine } from '../../src/record/record-line.js';
import { sampleRecords, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { buildPeer, PeerProcess, runPeer } from '../tool/peer-process.js';
import { sendSample } from '../tool/send-sample.js';
import { spanEnds } from '../tool/span-ends.js';
import { until } from '../tool/until.js';

const RUN = 'build-mixed';
const PORT = 14_338;
const ended: (() => Promise<void>)[] = [];

beforeAll(() => {
  buildPeer('otelcol');
  buildPeer('telemetrygen');
});
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

async function startBridge(args: readonly string[] = [], dataFolder?: string): Promise<BridgeProcess> {
  const bridge = await BridgeProcess.start({ args, ...(dataFolder && { dataFolder }) });
  ended.push(() => bridge.remove());
  return bridge;
}

/** Telemetry of other services that the bridge has, as text. */
function passthroughText(bridge: BridgeProcess): string {
  const folder = join(bridge.dataFolder, 'foreign');
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('');
}

const verboseHealth = async (bridge: BridgeProcess) => (await fetch(`${bridge.webUrl}/readyz?verbose`)).text();
const count = (text: string, part: string) => text.split(part).length - 1;
describe('over gRPC', () => {
  it("the Collector's telemetrygen brings every span and log record", async () => {
    const bridge = await startBridge();
    const where = ['--otlp-endpoint', new URL(bridge.grpcUrl).host, '--otlp-insecure'];
    runPeer('telemetrygen', [
      'traces',
      ...where,
      '--rate',
      '0',
      '--traces',
      '100',
      '--child-spans',
      '3',
      '--workers',
      '2',
    ]);
    expect(count(passthroughText(bridge), '"spanId"')).toBe(2 * 100 * 4);
    const ids = ['--trace-id', '0af7651916cd43dd8448eb211c80319c', '--span-id', 'b7ad6b7169203331'];
    runPeer('telemetrygen', ['logs', ...where, ...ids, '--rate', '0', '--logs', '100', '--body', 'from telemetrygen']);
    expect(count(passthroughText(bridge), 'from telemetrygen')).toBe(100);
  });

  it('the Collector brings a run as if the engine had sent it, and again what found no room', async () => {
    // Nothing is taken while the data folder may hold no more than a byte.
    const full = await startBridge(['--max-disk', '1']);
    const { port } = new URL(full.grpcUrl);
    const collector = await PeerProcess.start('otelcol', 'test/peers/conf/collector-to-grpc.yaml', PORT, {
      OTLP_HTTP_PORT: String(PORT),
      BRIDGE_URL: `127.0.0.1:${port}`,
    });
    ended.push(() => collector.stop());
    const sent = sendSample(`http://127.0.0.1:${PORT}`, RUN);
    await until('a refusal', async () => /"refusedCount":[1-9]/.test(await verboseHealth(full)));
    await full.stop();
    rmSync(full.dataFolder, { recursive: true, force: true });

    const bridge = await startBridge(['--grpc', port]);
    await sent;
    const traceId = sampleTraceId(RUN);
    await bridge.finished(traceId);
    const ours = readFileSync(join(bridge.runFolder(traceId), 'telemetry.jsonl'), 'utf8')
      .trimEnd()
      .split('\n');
    expect(spanEnds(ours)).toEqual(spanEnds(sampleRecords(RUN).map(formatRecordLine)));
  });
});
