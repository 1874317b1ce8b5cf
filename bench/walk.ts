import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { splitRequest } from '../src/decode/wire/request-piece.js';
import { PORTS } from './ports.js';

/** Spans of a real run, one a request. */
const REQUESTS = 'test/fixture/samples/build-clean/otlp';
/** Requests of the shorter and of the longer walk. What both do as often is not done for a span. */
const FEW = 20;
const MANY = 60;

// Prints the files of src/ that run for one span between its socket and the answered export, as Node's coverage counts
// calls of functions: those that are called oftener, by half of the further spans at least, where more are sent.
const folder = mkdtempSync(join(tmpdir(), 'run-bridge-walk-'));
try {
  await build(join(folder, 'package'));
  const few = await callsOf(FEW);
  const many = await callsOf(MANY);
  const files = new Map<string, number>();
  for (const [key, count] of many) {
    const more = count - (few.get(key) ?? 0);
    if (more < (MANY - FEW) / 2) continue;
    const file = key.split(' ')[0] ?? '';
    files.set(file, (files.get(file) ?? 0) + more / (MANY - FEW));
  }
  for (const [file, calls] of [...files].sort()) console.log(`${file.padEnd(60)} ${calls.toFixed(1)} calls a span`);
  console.log(`${files.size} files run for one span`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The program as its package, but for one file of JavaScript for each of src/. */
async function build(to: string): Promise<void> {
  mkdirSync(to);
  for (const name of ['package.json', 'proto', 'pages']) cpSync(name, join(to, name), { recursive: true });
  symlinkSync(resolve('node_modules'), join(to, 'node_modules'));
  const bundle = await rolldown({
    input: { main: 'src/main.ts', 'export-thread': 'src/export-thread/thread-main.ts' },
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

/** Sends spans one after the other, each when the one before has been exported. @returns calls of each function, by file and place */
async function callsOf(spanCount: number): Promise<ReadonlyMap<string, number>> {
  const coverage = join(folder, `coverage-${spanCount}`);
  const receiver = await countingReceiver();
  const address = (port: number) => `127.0.0.1:${port}`;
  const listeners = ['--http', address(PORTS.http), '--web', address(PORTS.web), '--grpc', 'off'];
  const data = ['--data-dir', join(folder, `data-${spanCount}`), '--parquet', 'off', '--event-hold', '1ms'];
  const child = spawn(process.execPath, [join(folder, 'package/dist/main.js'), 'serve', ...listeners, ...data], {
    env: { ...process.env, NODE_V8_COVERAGE: coverage, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  try {
    await until(async () => (await fetch(`http://${address(PORTS.http)}/readyz`).catch(() => undefined))?.ok === true);
    for (const body of bodies(spanCount)) {
      const before = receiver.requestCount();
      const url = `http://${address(PORTS.http)}/v1/traces`;
      await fetch(url, { method: 'POST', headers: { 'content-type': 'application/x-protobuf' }, body });
      await until(async () => receiver.requestCount() > before);
    }
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
    receiver.close();
  }
  return readCoverage(coverage);
}

/** Requests of one span each, which have ended and are not their run's root. */
function bodies(count: number): readonly Uint8Array<ArrayBuffer>[] {
  const traces = readdirSync(REQUESTS).filter((name) => name.includes('traces'));
  const single = traces.flatMap((name) => [...splitRequest(readFileSync(join(REQUESTS, name)), 1)]);
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
  for (const name of readdirSync(from)) {
    const { result } = JSON.parse(readFileSync(join(from, name), 'utf8')) as CoverageFile;
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

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    if (await isSo()) return;
    await new Promise((done) => setTimeout(done, 5));
  }
  throw new Error('it did not come to that within a minute');
}
