import { execFile } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { promisify } from 'node:util';
import { peerEnvironment, peerProgram } from './peer-programs.js';
import { PORTS } from './ports.js';
import type { Server } from './server.js';

/** How a server is loaded. */
export interface Load {
  readonly spanCount: number;
  /** Sent before anything is measured; default 0. */
  readonly warmUpSpanCount?: number;
  /** Default: as fast as it answers. */
  readonly spansPerSecond?: number;
  /** Folders with the requests of real runs, sent in copies; none for made-up spans. */
  readonly requestFolders?: readonly string[];
  /** How long neither output nor sink may move for the work to count as done, in milliseconds; default 2,500. */
  readonly quietMs?: number;
}

/** What one run of the load found. Everything is counted per span: log records are in the cost of their spans. */
export interface LoadRow {
  /** User and system time of the process tree, its shutdown included, in seconds for a million spans. */
  readonly cpu: number;
  /** From the first byte sent until the last span was at the sink, or in the file. */
  readonly spansPerSecond: number;
  /** Of answers, in milliseconds. */
  readonly p99: number;
  /** Most resident memory of the process tree, in MiB. */
  readonly memory: number;
  readonly acknowledgedCount: number;
  /** CPU seconds a second while the load lasted. */
  readonly coreShare: number;
  /** Spans that came to the sink more than once. */
  readonly repeatedCount: number;
  /** Why the figures do not count: spans missing or twice, requests given up. */
  readonly failures: readonly string[];
}

/** What `bench -json` prints, as far as it is read here (`test/tool/peers/load/cmd/bench`). */
interface BenchRow {
  readonly spans: number;
  readonly e2e_spans_s: number;
  readonly cpu_s: number;
  readonly cpu_s_shutdown: number;
  readonly peak_rss_mib: number;
  readonly file_unique_spans: number;
  readonly sink_unique_spans: number;
  readonly sink_dups: number;
  readonly note?: string;
  readonly load: {
    readonly p99_ms: number;
    readonly secs: number;
    readonly bodies_given_up: number;
    readonly partial_success_rejected: number;
    readonly first_error?: string;
  };
}

/** Starts a server on empty folders, loads it, waits until everything has arrived, stops it and counts. */
export async function runLoad(server: Server, load: Load): Promise<LoadRow> {
  for (const folder of server.folders) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }
  const variables = Object.entries(server.env).map(([name, value]) => `${name}=${value}`);
  const command = ['env', ...variables, ...server.command].map(quoted).join(' ');
  const args = ['-json', '-label', server.name, '-cmd', command, '-port', String(PORTS.http), '-out', server.output];
  args.push('-count', String(load.spanCount), '-warmup', String(load.warmUpSpanCount ?? 0));
  args.push('-rate', String(load.spansPerSecond ?? 0), '-idle', `${load.quietMs ?? 2500}ms`);
  args.push('-sink', '-sink-addr', `127.0.0.1:${PORTS.sink}`);
  const { requestFolders = [] } = load;
  if (requestFolders.length > 0) args.push('-corpus', requestFolders.join(','));
  const { stdout } = await promisify(execFile)(peerProgram('bench'), args, { env: peerEnvironment() });
  console.log(stdout.split('\n')[0]);
  return rowOf(JSON.parse(stdout.split('\n')[1] ?? '') as BenchRow, load);
}

function rowOf(row: BenchRow, load: Load): LoadRow {
  const cpuS = row.cpu_s + row.cpu_s_shutdown;
  return {
    cpu: (cpuS / row.spans) * 1e6,
    spansPerSecond: row.e2e_spans_s,
    p99: row.load.p99_ms,
    memory: row.peak_rss_mib,
    acknowledgedCount: row.spans,
    coreShare: row.cpu_s / row.load.secs,
    repeatedCount: row.sink_dups,
    failures: [...failuresOf(row, load)],
  };
}

function* failuresOf(row: BenchRow, load: Load): Generator<string> {
  const { spans } = row;
  if (row.note !== undefined && row.note !== '') yield row.note;
  if (spans < load.spanCount) yield `${spans} of ${load.spanCount} spans acknowledged: ${row.load.first_error}`;
  if (row.load.partial_success_rejected > 0) yield `${row.load.partial_success_rejected} spans rejected`;
  if (row.file_unique_spans !== spans) yield `${row.file_unique_spans} of ${spans} acknowledged spans in the file`;
  if (row.sink_unique_spans < spans) yield `${row.sink_unique_spans} of ${spans} spans at the sink`;
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
