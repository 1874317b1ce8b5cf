import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { residentMiB } from './measured-process.js';
import { openPeers, peerEnvironment, peerProgram } from './peer-programs.js';
import { PORTS } from './ports.js';
import { bridgeServer } from './server.js';
import { requestFolders, WORKLOADS } from './workloads.js';

/*
 * Resident memory of run-bridge while it takes copies of a real run: as fast as it answers, then at the pace of a real engine. Prints the most of each
 * tenth, and ends with 1 where one is above the limit.
 */

const { values } = parseArgs({
  options: {
    spans: { type: 'string', default: '20000000' },
    'max-memory': { type: 'string', default: '256MiB' },
    limit: { type: 'string', default: '320' },
    pace: { type: 'string', default: '2000' },
    minutes: { type: 'string', default: '10' },
    parquet: { type: 'string', default: 'off' },
    dist: { type: 'string', default: 'dist' },
  },
});
const SAMPLE_MS = 250;
const PARTS = 10;
const limitMiB = Number(values.limit);

openPeers();
const [workload] = WORKLOADS;
if (workload === undefined) throw new Error('there is no workload');
const folders = requestFolders(workload).join(',');
const server = bridgeServer(values.dist, values.parquet === 'on' ? 'on' : 'off', [
  '--max-memory',
  values['max-memory'],
]);
for (const folder of server.folders) mkdirSync(folder, { recursive: true });

const sink = start(peerProgram('sink'), ['-addr', `127.0.0.1:${PORTS.sink}`, '-no-ids']);
const [node = '', ...args] = server.command;
const bridge = start(node, args, server.env);
try {
  await ready();
  const spans = Number(values.spans);
  await watch(`${spans} spans as fast as they are taken`, ['-count', String(spans)]);
  const seconds = Number(values.minutes) * 60;
  if (seconds > 0) {
    await watch(`${values.minutes} minutes at ${values.pace} spans/s`, ['-t', String(seconds), '-rate', values.pace]);
  }
} finally {
  for (const child of [bridge, sink]) await ended(child);
}

/** Sends, and prints the most resident memory of each tenth of what was seen. */
async function watch(what: string, load: readonly string[]): Promise<void> {
  const sender = start(peerProgram('load'), [
    '-url',
    `http://127.0.0.1:${PORTS.http}/v1/traces`,
    '-corpus',
    folders,
    ...load,
  ]);
  const samples: number[] = [];
  while (sender.exitCode === null && bridge.exitCode === null) {
    samples.push(residentMiB(bridge.pid ?? 0));
    await sleep(SAMPLE_MS);
  }
  const size = Math.ceil(samples.length / PARTS);
  const most = Array.from({ length: PARTS }, (_, part) => Math.max(...samples.slice(part * size, (part + 1) * size)));
  console.log(`${what}: MiB resident at most in each tenth: ${most.map((mib) => mib.toFixed(0)).join(' ')}`);
  if (sender.exitCode !== 0) process.exitCode = 1;
  if (Math.max(...samples) >= limitMiB) {
    console.log(`above the limit of ${limitMiB} MiB`);
    process.exitCode = 1;
  }
}

function start(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
  return spawn(program, args, { env: { ...peerEnvironment(), ...env }, stdio: 'ignore' });
}

async function ready(): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const response = await fetch(`http://127.0.0.1:${PORTS.web}/readyz`).catch(() => undefined);
    if (response?.ok === true) return;
    await sleep(50);
  }
  throw new Error('run-bridge is not ready');
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}
