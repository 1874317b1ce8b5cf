import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KeyValue, ResourceGroup } from '../../src/otlp/export-request.js';
import { runBridge } from '../e2e/run-bridge.js';
import { OtlpReceiver } from '../fake/otlp-receiver.js';
import { SMALL_SAMPLES, sampleFolder, sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { LARGE_SAMPLES } from '../tool/large-samples.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';

const LEVELS = ['literals', 'off'] as const;
/** What depends on when a run was numbered, or came. */
const OF_THE_MOMENT =
  /^(?:cicd\.pipeline\.(?:name|run\..*)|run_bridge\.import\.began_unix_ms|(?:first|last)_seen_unix_ms)$/;

let bridge: BridgeProcess;
let home: string;
let receivers: readonly OtlpReceiver[];

beforeAll(async () => {
  receivers = await Promise.all(LEVELS.map(() => OtlpReceiver.listen()));
  const destinations = LEVELS.map(
    (redaction, index) => `  ${redaction}: { endpoint: ${receivers[index]?.url}, redaction: ${redaction} }\n`,
  );
  home = mkdtempSync(join(tmpdir(), 'run-bridge-goldens-'));
  const config = join(home, 'run-bridge.yaml');
  writeFileSync(config, `destinations:\n${destinations.join('')}`);
  // A busy machine is not to let spans go before their events are there.
  bridge = await BridgeProcess.start({ args: ['--config', config, '--event-hold', '20s'] });
});
afterAll(async () => {
  rmSync(home, { recursive: true, force: true });
  await bridge.remove();
  for (const receiver of receivers) receiver.close();
});

// Who means to change what becomes of a run runs this with -u, and says it in the changelog.
it.each([...SMALL_SAMPLES, ...LARGE_SAMPLES])('what becomes of %s is to the byte what it was', async (name) => {
  for (const { requests } of receivers) requests.splice(0);
  await send(name);
  const traceId = sampleTraceId(name);
  await bridge.finished(traceId);
  await until('its export', exported);
  const folder = bridge.runFolder(traceId);
  const lines = readFileSync(join(folder, 'telemetry.jsonl'), 'utf8').trimEnd().split('\n');
  const parquet = readdirSync(folder)
    .filter((file) => file.endsWith('.parquet'))
    .sort();
  const run = JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'), (key, value) =>
    OF_THE_MOMENT.test(key) ? undefined : value,
  );
  const rows: string[] = [];
  for (const file of parquet) rows.push(digest(await rowsOf(join(folder, file))));
  const found = {
    lines: digest(lines),
    ...Object.fromEntries(LEVELS.map((level, index) => [level, digest(itemsOf(receivers[index], traceId))])),
    run: digest([JSON.stringify(run)]),
    parquet: rows,
  };
  expect(found).toMatchSnapshot();
});

/** Those that the engine sent over OTLP come so, the others from their file. */
async function send(name: string): Promise<void> {
  if (existsSync(join(sampleFolder(name), 'otlp'))) return sendSample(bridge.otlpUrl, name);
  const file = join(process.cwd(), sampleFolder(name), 'otel.jsonl');
  const { exitCode, stderr } = await runBridge(['import', file, '--to', bridge.otlpUrl], { cwd: home });
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.any(String) });
}

/** The records of a Parquet file as lines. How they are cut into row groups depends on when they came. */
async function rowsOf(file: string): Promise<readonly string[]> {
  const path = join(home, 'rows.jsonl');
  expect((await runBridge(['convert', file, path], { cwd: home })).exitCode).toBe(0);
  return readFileSync(path, 'utf8').trimEnd().split('\n');
}

async function exported(): Promise<boolean> {
  const response = await fetch(`${bridge.webUrl}/readyz?verbose`);
  const { checks } = (await response.json()) as { checks: { name: string; details: Record<string, unknown> }[] };
  const exports = checks.filter(({ name }) => name.startsWith('export to '));
  return (
    exports.length === LEVELS.length &&
    exports.every(({ details }) => details.lagBytes === 0 && details.pendingRuns === 0)
  );
}

/** The spans and log records of a trace that came, each as a text. */
function itemsOf(receiver: OtlpReceiver | undefined, traceId: string): readonly string[] {
  return (receiver?.accepted('traces') ?? [])
    .concat(receiver?.accepted('logs') ?? [])
    .flatMap(({ resources }) =>
      (resources as readonly ResourceGroup<{ readonly traceId: string }>[]).flatMap(({ resource, scopes }) =>
        scopes.flatMap(({ scope, records }) =>
          records.filter((record) => record.traceId === traceId).map((record) => textOf({ resource, scope, record })),
        ),
      ),
    );
}

function textOf(item: unknown): string {
  return JSON.stringify(item, (key, value) => {
    if (typeof value === 'bigint') return `${value}n`;
    if (key !== 'attributes') return value;
    const attributes = (value as readonly KeyValue[]).filter((attribute) => !OF_THE_MOMENT.test(attribute.key));
    return attributes.sort((a, b) => (a.key < b.key ? -1 : 1));
  });
}

/** Of texts in any order. */
function digest(texts: readonly string[]): string {
  return `${texts.length} ${sha(texts.toSorted().join('\n'))}`;
}

function sha(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 32);
}
