import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, TestRunner } from 'vitest';
import { cacheFolder, installIntoCache } from './cache-folder.js';

/** The engine's builds: open source and commercial. */
export type EngineBuild = 'core' | 'fusion';

/** How one command of the engine ended. */
export interface EngineResult {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
}

/** In the environment of each command that is run, and of what that starts: whose it is. */
const MARK = 'TEST_COMMAND';

/** The real engine on a copy of the sample project; installed once into the cache. */
export class Engine {
  /** Installs the engine where it is not yet; about 20 seconds the first time. */
  static up(build: EngineBuild): Engine {
    const folder = join(cacheFolder(), `engine-${build}`);
    installIntoCache(['bash', 'test/tool/engine-up.sh', folder, build]);
    const project = mkdtempSync(join(tmpdir(), 'run-bridge-shop-'));
    cpSync(join('test', 'tool', 'shop-project'), project, { recursive: true });
    return new Engine(folder, project);
  }

  /** Of all of its commands. */
  private readonly mark = randomUUID();

  private constructor(
    private readonly folder: string,
    readonly project: string,
  ) {}

  /** Where it is installed. */
  get home(): string {
    return this.folder;
  }

  /** Installs the driver for PostgreSQL where the engine looks for it before it tries to download one. */
  addPostgresDriver(): void {
    const folder = join(this.folder, 'home', '.cache', 'com.getdbt', 'adbc', 'x86_64-manylinux_2_17-linux-gnu');
    const driver = join(folder, 'libadbc_driver_postgresql-0.21.0+dbt0.21.0.so');
    if (existsSync(driver)) return;
    const packages = join(this.folder, 'adbc');
    const pip = ['--quiet', '--disable-pip-version-check', 'install', '--no-deps', '--target', packages];
    installIntoCache([join(this.folder, 'venv', 'bin', 'pip'), ...pip, 'adbc-driver-postgresql==1.13.0']);
    mkdirSync(folder, { recursive: true });
    cpSync(join(packages, 'adbc_driver_postgresql', 'libadbc_driver_postgresql.so'), driver);
  }

  /** The engine's program. */
  get dbt(): string {
    return join(this.folder, 'venv', 'bin', 'dbt');
  }

  /** Runs `dbt` with these arguments in the project. `onStart` is given what ends it: a function that sends a signal. */
  run(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    onStart: (kill: (signal: NodeJS.Signals) => void) => void = () => {},
  ): Promise<EngineResult> {
    return this.runCommand([this.dbt, ...args], env, (child) => onStart((signal) => child.kill(signal)));
  }

  /** Runs a line of shell in the project, in which `dbt` is the engine. */
  runShell(line: string): Promise<EngineResult> {
    return this.runCommand(['bash', '-c', line], {});
  }

  /**
   * Runs any command in the project, with the engine on its path. What is left of it, and of what it started, is killed with
   * the end of the test, also where that failed: a slow engine would take the processors from the tests that follow.
   */
  runCommand(
    [program = '', ...args]: readonly string[],
    env: Readonly<Record<string, string>>,
    onStart: (child: ChildProcess) => void = () => {},
  ): Promise<EngineResult> {
    const mark = `${this.mark} ${randomUUID()}`;
    if (TestRunner.getCurrentTest() !== undefined) onTestFinished(() => killMarked(mark));
    const child = spawn(program, args, {
      cwd: this.project,
      env: {
        HOME: join(this.folder, 'home'),
        PATH: `${join(this.folder, 'venv', 'bin')}:${process.env.PATH ?? ''}`,
        DBT_PROFILES_DIR: this.project,
        DO_NOT_TRACK: '1',
        DBT_SEND_ANONYMOUS_USAGE_STATS: 'false',
        [MARK]: mark,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    onStart(child);
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (exitCode, signal) => resolve({ exitCode, signal, output }));
    });
  }

  /** The file of telemetry that the engine writes where it is told to name it `otel.jsonl`. */
  get jsonl(): string {
    return join(this.project, 'logs', 'otel.jsonl');
  }

  /** Lines of the JSONL that the engine wrote. */
  jsonlLines(): readonly string[] {
    return readFileSync(this.jsonl, 'utf8').trimEnd().split('\n');
  }

  /** Also ends what is left of commands that were run outside of tests. */
  remove(): void {
    killMarked(this.mark);
    rmSync(this.project, { recursive: true, force: true });
  }
}

/** Kills the processes whose mark begins so: a command's, or all of an engine's. */
function killMarked(mark: string): void {
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid) || !isMarked(pid, mark)) continue;
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  }
}

function isMarked(pid: string, mark: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`${MARK}=${mark}`);
  } catch {
    // It has ended, or is another user's.
    return false;
  }
}
