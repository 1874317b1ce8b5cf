import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import pg from 'pg';

/** The user and group `nobody`: PostgreSQL refuses to run as root. */
const NOBODY = 65_534;
const PASSWORD = 'a:p@ss/word';

/** Who the server runs as. */
interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/**
 * A real PostgreSQL server for tests, in a folder of its own. Its program is copied there from the package that has it: so
 * links to its libraries can be made without the package's install script, and `nobody` can read it, where the tests run as root.
 */
export class PostgresServer {
  /**
   * @param nativeFolder with `bin`, `lib` and `share`
   * @param settings of the server, as `name=value`, beside what all tests have
   */
  static async start(nativeFolder: string, settings: readonly string[] = []): Promise<PostgresServer> {
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-postgres-'));
    const isRoot = process.getuid?.() === 0;
    const identity = isRoot ? { uid: NOBODY, gid: NOBODY } : undefined;
    chmodSync(folder, 0o755);
    cpSync(nativeFolder, folder, { recursive: true });
    linkLibraries(folder);
    for (const name of readdirSync(join(folder, 'bin'))) chmodSync(join(folder, 'bin', name), 0o755);
    if (identity !== undefined) chownSync(folder, identity.uid, identity.gid);
    const server = new PostgresServer(folder, await freePort(), identity, settings);
    try {
      await server.createCluster();
      await server.resume();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  private process: ChildProcess | undefined;

  private constructor(
    private readonly folder: string,
    readonly port: number,
    private readonly identity: Identity | undefined,
    private readonly settings: readonly string[],
  ) {}

  /** Of its first process, which starts the others; `undefined` while it does not run. */
  get pid(): number | undefined {
    return this.process?.pid;
  }

  /** Of a database as the server's own user. @param port of a proxy in front of it, where there is one */
  url(database = 'postgres', port = this.port): string {
    return `postgresql://bridge:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/${database}`;
  }

  /** Starts it again after `halt`. */
  async resume(): Promise<void> {
    const settings = [
      ...['fsync=off', 'max_connections=60', `unix_socket_directories=${this.folder}`],
      // Of two values the later one counts.
      ...this.settings,
    ];
    const child = this.spawn('postgres', [
      '-D',
      join(this.folder, 'data'),
      '-h',
      '127.0.0.1',
      '-p',
      `${this.port}`,
      ...settings.flatMap((setting) => ['-c', setting]),
    ]);
    this.process = child;
    const log = await ready(child);
    if (log !== null) throw new Error(`the server did not start:\n${log}`);
  }

  /** Ends it, whoever is connected. */
  async halt(): Promise<void> {
    const child = this.process;
    this.process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    await ended;
  }

  /** Ends it and removes its folder. */
  async stop(): Promise<void> {
    await this.halt();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Says something to the server. */
  async tell(sql: string, database?: string): Promise<void> {
    const client = new pg.Client({ connectionString: this.url(database) });
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  }

  private async createCluster(): Promise<void> {
    const passwordFile = join(this.folder, 'password');
    writeFileSync(passwordFile, `${PASSWORD}\n`);
    const child = this.spawn('initdb', [
      '-D',
      join(this.folder, 'data'),
      '--username=bridge',
      '--auth=scram-sha-256',
      `--pwfile=${passwordFile}`,
      '--encoding=UTF8',
      '--no-locale',
      '--no-sync',
    ]);
    let said = '';
    child.stderr?.on('data', (chunk) => {
      said += String(chunk);
    });
    const exitCode = await new Promise((resolve) => child.once('close', resolve));
    if (exitCode !== 0) throw new Error(`initdb ended with ${exitCode}:\n${said}`);
  }

  private spawn(program: string, args: readonly string[]): ChildProcess {
    const env = { PATH: process.env.PATH, LC_ALL: 'C', LD_LIBRARY_PATH: join(this.folder, 'lib') };
    return spawn(join(this.folder, 'bin', program), args, { cwd: this.folder, env, ...this.identity });
  }
}

/** The package leaves the libraries' short names to an install script. */
function linkLibraries(folder: string): void {
  const links: readonly { source: string; target: string }[] = JSON.parse(
    readFileSync(join(folder, 'pg-symlinks.json'), 'utf8'),
  );
  for (const { source, target } of links) {
    const path = join(folder, target.replace(/^native\//, ''));
    rmSync(path, { force: true });
    symlinkSync(basename(source), path);
  }
}

/** Resolves with `null` once it takes connections, or with what it said where it ended before. */
function ready(child: ChildProcess): Promise<string | null> {
  let said = '';
  return new Promise((resolve) => {
    child.stderr?.on('data', (chunk) => {
      said += String(chunk);
      if (said.includes('ready to accept connections')) resolve(null);
    });
    child.once('error', (error) => resolve(error.message));
    child.once('close', () => resolve(said));
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
