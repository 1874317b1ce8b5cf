import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { splitRequest } from '../src/otlp/wire/wire-decoder.js';
import { SentRun } from '../test/tool/sent-run.js';
import { subscribe } from '../test/tool/subscribe.js';
import { until } from '../test/tool/until.js';
import { PORTS } from './ports.js';

/** Spans of a real run, one a request. */
const REQUESTS = 'test/fixture/samples/build-clean/otlp';
const HTTP_URL = `http://127.0.0.1:${PORTS.http}`;
const WEB_URL = `http://127.0.0.1:${PORTS.web}`;

/** Something that the program does many times; what only the larger of two measurements does is what it takes. */
interface Walk {
  /** What is counted, for example `span`. */
  readonly noun: string;
  /** How often it is done in the smaller and in the larger measurement. */
  readonly counts: readonly [number, number];
  /** Further arguments of `serve`. */
  readonly flags: readonly string[];
  /** Environment of the program. */
  environment(receiver: CountingReceiver): Readonly<Record<string, string>>;
  /** Has the program do it so often, one after the other. */
  drive(count: number, receiver: CountingReceiver, dataFolder: string): Promise<void>;
}

/** Between its socket and the answered export; each is sent when the one before has been exported. */
const span: Walk = {
  noun: 'span',
  counts: [20, 60],
  flags: ['--parquet', 'off', '--event-hold', '1ms'],
  environment: (receiver) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }),
  async drive(count, receiver) {
    for (const body of singleSpans(count)) {
      const before = receiver.requestCount();
      const headers = { 'content-type': 'application/x-protobuf' };
      await fetch(`${HTTP_URL}/v1/traces`, { method: 'POST', headers, body });
      await until('the export of a span', () => receiver.requestCount() > before);
    }
  },
};

/** Runs of the measurement of webhooks: as many with a subscription and without. */
const RUNS = 12;
/** More than a run takes with its webhook on a busy machine, in milliseconds. */
const RUN_MS = 3_000;

/** From the change of a run that makes an event to the answered webhook: what the same runs do not need without a subscription. */
const webhook: Walk = {
  noun: 'webhook',
  counts: [0, RUNS],
  flags: ['--parquet', 'off', '--webhook-allow', 'loopback'],
  environment: () => ({}),
  async drive(count, receiver, dataFolder) {
    const tokenFile = join(dataFolder, 'admin-token');
    await until('the first token', () => isReadable(tokenFile));
    const token = readFileSync(tokenFile, 'utf8').trim();
    // The API is loaded when it is first asked; that belongs to no webhook.
    await fetch(`${WEB_URL}/api/v3/accounts/10001/webhooks/subscriptions/`, {
      headers: { authorization: `Token ${token}` },
    });
    if (count > 0) await subscribe({ webUrl: WEB_URL }, token, 'walk', receiver.url, ['job.run.completed']);
    for (let index = 0; index < RUNS; index += 1) {
      // As long for each run with a subscription and without: what the program does by the clock is then the same.
      const isOver = setTimeout(RUN_MS);
      const run = new SentRun();
      await run.send(HTTP_URL);
      const summary = join(dataFolder, 'runs', run.traceId, 'run.json');
      await until(
        'the end of a run',
        () => isReadable(summary) && receiver.requestCount() === (count > 0 ? index + 1 : 0),
      );
      await isOver;
    }
  },
};

/** One request for the address that `pathOf` makes of a run's number. */
function reading(noun: string, pathOf: (runId: number) => string): Walk {
  return {
    noun,
    // What is loaded for the first answer belongs to no other.
    counts: [5, 45],
    flags: ['--parquet', 'off'],
    environment: () => ({}),
    async drive(count, _receiver, dataFolder) {
      const tokenFile = join(dataFolder, 'admin-token');
      await until('the first token', () => isReadable(tokenFile));
      const headers = { authorization: `Token ${readFileSync(tokenFile, 'utf8').trim()}` };
      const run = new SentRun();
      await run.send(HTTP_URL);
      await until('the end of a run', () => isReadable(join(dataFolder, 'runs', run.traceId, 'run.json')));
      const url = `${WEB_URL}${pathOf(await onlyRunId(headers))}`;
      for (let index = 0; index < count; index += 1) {
        const answer = await fetch(url, { headers });
        if (!answer.ok) throw new Error(`${url} is answered ${answer.status}`);
        await answer.arrayBuffer();
      }
    },
  };
}

async function onlyRunId(headers: Readonly<Record<string, string>>): Promise<number> {
  const answer = await fetch(`${WEB_URL}/api/v2/accounts/10001/runs/`, { headers });
  const { data } = (await answer.json()) as { readonly data: readonly { readonly id: number }[] };
  const [run] = data;
  if (run === undefined) throw new Error('there is no run');
  return run.id;
}

const WALKS: Readonly<Record<string, Walk>> = {
  span,
  webhook,
  api: reading('answer to GET /api/v2/accounts/{id}/runs/{id}/', (id) => `/api/v2/accounts/10001/runs/${id}/`),
  page: reading('page of a run', (id) => `/runs/${id}`),
};

// Prints the files of src/ that run for one span, webhook, answer or page, as Node's coverage counts calls of functions: those
// that are called oftener, for nearly each of the further ones, where more of them are done.
const name = process.argv[2] ?? 'span';
const walk = WALKS[name];
if (walk === undefined) throw new Error(`${name} is none of ${Object.keys(WALKS).join(', ')}`);
const folder = mkdtempSync(join(tmpdir(), 'run-bridge-walk-'));
try {
  await build(join(folder, 'package'));
  const [fewCount, manyCount] = walk.counts;
  const few = await callsOf(walk, fewCount);
  const many = await callsOf(walk, manyCount);
  const files = new Map<string, number>();
  for (const [key, count] of many) {
    const more = count - (few.get(key) ?? 0);
    if (more < 0.9 * (manyCount - fewCount)) continue;
    const file = key.split(' ')[0] ?? '';
    files.set(file, (files.get(file) ?? 0) + more / (manyCount - fewCount));
  }
  for (const [file, calls] of [...files].sort()) console.log(`${file.padEnd(60)} ${calls.toFixed(1)} calls a ${name}`);
  console.log(`${files.size} files run for one ${walk.noun}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The program as its package, but for one file of JavaScript for each of src/. */
async function build(to: string): Promise<void> {
  mkdirSync(to);
  for (const one of ['package.json', 'proto', 'pages']) cpSync(one, join(to, one), { recursive: true });
  symlinkSync(resolve('node_modules'), join(to, 'node_modules'));
  const bundle = await rolldown({
    input: { main: 'src/main.ts', 'exporter-thread': 'src/export/exporter-thread-main.ts' },
    platform: 'node',
    tsconfig: 'tsconfig.json',
    external: [/^[^./]/],
  });
  await bundle.write({
    dir: join(to, 'dist'),
    format: 'esm',
    preserveModules: true,
    preserveModulesRoot: 'src',
    entryFileNames: '[name].js',
  });
}

/** @returns calls of each function, by file and place */
async function callsOf({ flags, environment, drive }: Walk, count: number): Promise<ReadonlyMap<string, number>> {
  const coverage = join(folder, `coverage-${count}`);
  const dataFolder = join(folder, `data-${count}`);
  const receiver = await countingReceiver();
  const address = (port: number) => `127.0.0.1:${port}`;
  const listeners = ['--http', address(PORTS.http), '--web', address(PORTS.web), '--grpc', 'off'];
  const args = ['serve', ...listeners, '--data-dir', dataFolder, ...flags];
  const child = spawn(process.execPath, [join(folder, 'package/dist/main.js'), ...args], {
    env: { ...process.env, NODE_V8_COVERAGE: coverage, ...environment(receiver) },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  try {
    await until('the server', async () => (await fetch(`${HTTP_URL}/readyz`).catch(() => undefined))?.ok === true);
    await drive(count, receiver, dataFolder);
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
    receiver.close();
  }
  return readCoverage(coverage);
}

/** Requests of one span each, which have ended and are not their run's root. */
function singleSpans(count: number): readonly Uint8Array<ArrayBuffer>[] {
  const traces = readdirSync(REQUESTS).filter((one) => one.includes('traces'));
  const single = traces.flatMap((one) => [...splitRequest(readFileSync(join(REQUESTS, one)), 1)]);
  if (single.length < count) throw new Error(`there are ${single.length} spans, not ${count}`);
  return single.slice(0, count).map((body) => new Uint8Array(body));
}

interface CoverageFile {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
    }[];
  }[];
}

/** Of all threads. */
function readCoverage(from: string): ReadonlyMap<string, number> {
  const calls = new Map<string, number>();
  const dist = `${join(folder, 'package/dist')}/`;
  for (const one of readdirSync(from)) {
    const { result } = JSON.parse(readFileSync(join(from, one), 'utf8')) as CoverageFile;
    for (const { url, functions } of result) {
      if (!url.startsWith('file:')) continue;
      const path = fileURLToPath(url);
      if (!path.startsWith(dist)) continue;
      for (const { functionName, ranges } of functions) {
        const key = `${path.slice(dist.length).replace(/js$/, 'ts')} ${functionName} ${ranges[0]?.startOffset}`;
        calls.set(key, (calls.get(key) ?? 0) + (ranges[0]?.count ?? 0));
      }
    }
  }
  return calls;
}

type CountingReceiver = Awaited<ReturnType<typeof countingReceiver>>;

/** Answers 200 to whatever comes. */
async function countingReceiver() {
  let count = 0;
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => {
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end(() => {
        count += 1;
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requestCount: () => count,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function isReadable(path: string): boolean {
  try {
    return readFileSync(path).byteLength > 0;
  } catch {
    return false;
  }
}
