import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { buildPeer, peersFolder } from '../tool/peer-process.js';
import { CountingSink } from './counting-sink.js';
import type { CrashRow } from './crash-table.js';
import { crashRepeatedly } from './crash-trial.js';
import { ExpectedRuns } from './expected-runs.js';
import { freePorts } from './free-ports.js';
import { Load } from './load.js';
import { RunPlan } from './run-plan.js';
import { SeededRandom } from './seeded-random.js';
import { tally } from './tally.js';
import type { TrialOptions } from './trial-options.js';
import { Victim } from './victim.js';

/** Nothing new at the sink for so long: it has sent what it has, in milliseconds. */
const SETTLED_MS = 10_000;
const MAX_GAP_MS = 20;

/**
 * The OpenTelemetry Collector under the same load, kills and destination. It keeps no files that could be looked at.
 * @param config one of test/tool/peers/conf, without its ending
 */
export async function tryCollector(config: string, { kills, seed, cleanUp }: TrialOptions): Promise<CrashRow> {
  buildPeer('otelcol');
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-crash-collector-'));
  cleanUp.folder(folder);
  const sink = await CountingSink.listen({ delayMs: 10, failureRate: 0.03, random: new SeededRandom(seed + 1) });
  cleanUp.add(() => sink.close());
  const [httpPort = 0, grpcPort = 0] = await freePorts(2, 25_000);
  const victim = new Victim({
    name: config,
    command: join(peersFolder(), 'bin', 'otelcol'),
    args: ['--config', `test/tool/peers/conf/${config}.yaml`],
    env: {
      PEERS: folder,
      OTLP_HTTP_PORT: String(httpPort),
      OTLP_GRPC_PORT: String(grpcPort),
      SINK_PORT: String(sink.port),
    },
    port: httpPort,
  });
  cleanUp.add(() => victim.end('SIGKILL'));
  const random = new SeededRandom(seed);
  const expected = new ExpectedRuns();
  const gaps = new SeededRandom(seed + 2);
  const load = new Load(new RunPlan(random), {
    port: httpPort,
    engines: 12,
    gapMs: () => gaps.between(0, MAX_GAP_MS),
    // Its configurations have no pipeline for logs.
    signals: ['traces'],
    onAcknowledged: (run, body) => expected.add(run, body),
  });
  await crashRepeatedly(kills, { victim, load, sink, random, moments: ['load', 'export', 'startUp', 'shutdown'] });
  if (load.refusals.length > 0) throw new Error(`${config} refused: ${load.refusals[0]}`);
  const { spans } = expected;
  await settle(() => tally(spans, sink.spans).missing);
  const { found, missing, excess } = tally(spans, sink.spans);
  return {
    name: config,
    kills,
    acknowledged: spans.size,
    inLog: null,
    twiceInLog: null,
    inParquet: null,
    atSink: found,
    missing,
    twiceAtSink: excess,
    recoveriesMs: victim.recoveriesMs,
  };
}

/** Waits until nothing is missing, or nothing has come for a while. */
async function settle(missing: () => number): Promise<void> {
  let last = missing();
  for (let sinceMs = performance.now(); last > 0 && performance.now() - sinceMs < SETTLED_MS; ) {
    await pause(100);
    const now = missing();
    if (now !== last) sinceMs = performance.now();
    last = now;
  }
}
