import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { traceIdsIn } from './trace-ids.js';
import { until, WAIT_MS } from './until.js';

/** What `run.json` says, as far as tests look at it. */
export interface RunFile {
  readonly state: string;
  readonly steps: readonly {
    readonly verdict: string | null;
    readonly parquet_file: string;
    readonly node_counts: Readonly<Record<string, number>>;
  }[];
}

/** The built program, run as a user runs it, on free ports and a data folder of its own. */
export class BridgeProcess {
  /**
   * Starts `run-bridge serve` and waits until it says where it listens.
   * @param options `env` is added to a clean environment; `args` to the command line; `user` is the id of the user to
   * run as, for a test that is run by root.
   */
  static async start(
    options: {
      readonly args?: readonly string[];
      readonly env?: Readonly<Record<string, string>>;
      dataFolder?: string;
      readonly user?: number | undefined;
      /** Leaves the address of gRPC at its default. */
      readonly usesDefaultGrpc?: boolean;
      /** Path of an installed program; default: the built one. */
      readonly program?: string;
    } = {},
  ): Promise<BridgeProcess> {
    const dataFolder = options.dataFolder ?? mkdtempSync(join(tmpdir(), 'run-bridge-data-'));
    const grpc = options.usesDefaultGrpc === true ? [] : ['--grpc', '127.0.0.1:0'];
    const addresses = ['--http', '127.0.0.1:0', ...grpc, '--web', '127.0.0.1:0'];
    const args = [options.program ?? 'dist/main.js', 'serve', ...addresses, '--data-dir', dataFolder];
    const child = spawn(process.execPath, [...args, ...(options.args ?? [])], {
      env: { PATH: process.env.PATH ?? '', HOME: dataFolder, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(options.user === undefined ? {} : { uid: options.user, gid: options.user }),
    });
    const bridge = new BridgeProcess(child, dataFolder);
    await until('the start lines', () => {
      if (child.exitCode !== null) throw new Error(`run-bridge ended with ${child.exitCode}: ${bridge.stderr}`);
      // Its last line; one that only builds runs takes nothing that could be sent there.
      return /--export-to-otlp\n|^builds [\s\S]*^exports .*\n/m.test(bridge.stderr);
    });
    return bridge;
  }

  stderr = '';
  stdout = '';

  private constructor(
    readonly child: ChildProcess,
    readonly dataFolder: string,
  ) {
    child.stderr?.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    child.stdout?.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString();
    });
  }

  /** Base address of the OTLP service. */
  get otlpUrl(): string {
    return this.find(/OTLP over HTTP at (http:\S+)/);
  }

  /** Address of the OTLP service over gRPC. */
  get grpcUrl(): string {
    return this.find(/OTLP over gRPC at (http:\S+)/);
  }

  /** Base address of the web service. */
  get webUrl(): string {
    return this.find(/(http:\S+)\/readyz/);
  }

  runFolder(traceId: string): string {
    return join(this.dataFolder, 'runs', traceId);
  }

  /** Trace ids of the runs so far. */
  traceIds(): readonly string[] {
    return traceIdsIn(this.dataFolder);
  }

  /** Waits until the run is finished and its Parquet is written. */
  finished(traceId: string, timeoutMs = WAIT_MS): Promise<RunFile> {
    return until(`the end of run ${traceId}`, () => this.finishedRun(traceId), timeoutMs);
  }

  /** Sends a signal and waits for the end. Returns the exit code, `null` after a signal. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const ended = new Promise((resolve) => this.child.once('exit', resolve));
      this.child.kill(signal);
      await ended;
    }
    return this.child.exitCode;
  }

  /** Stops it and removes its data. */
  async remove(): Promise<void> {
    await this.stop('SIGKILL');
    rmSync(this.dataFolder, { recursive: true, force: true });
  }

  private finishedRun(traceId: string): RunFile | undefined {
    const path = join(this.runFolder(traceId), 'run.json');
    if (!existsSync(path)) return undefined;
    const run = JSON.parse(readFileSync(path, 'utf8')) as RunFile;
    const isWritten = run.steps.every(({ parquet_file }) => existsSync(join(this.runFolder(traceId), parquet_file)));
    return run.state === 'finished' && isWritten ? run : undefined;
  }

  private find(pattern: RegExp): string {
    const found = pattern.exec(this.stderr)?.[1];
    if (found === undefined) throw new Error(`not in the start lines: ${pattern} in ${this.stderr}`);
    return found;
  }
}
