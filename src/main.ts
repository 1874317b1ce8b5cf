#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import type { CommandExit, ProcessTakeover } from './cli/command.js';

/** What a start opens at the same time, and some connections. */
const MIN_FILES = 128;

// The only file that touches argv, the environment, exit codes and signals. It imports nothing of the program before
// it has checked the version of Node.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `run-bridge: needs Node 20.19 or newer, this is ${process.versions.node}; see https://nodejs.org\n`,
  );
  process.exit(2);
}

// A process that may open very few files cannot even load the program.
const maxFiles = readMaxFiles();
if (maxFiles < MIN_FILES) {
  process.stderr.write(
    `run-bridge: this process may open ${maxFiles} files and needs ${MIN_FILES}; raise the limit, for example with ulimit -n 4096, or LimitNOFILE= of systemd\n`,
  );
  process.exit(2);
}

// How much a function has to run until V8 optimises it, in bytes of its bytecode: six times what Node 20 has, three times for a server. Most of
// what a command, or a server's first large runs, would have optimised does not run often enough to be worth it. Later versions of Node compile
// in more steps. And how much V8 copies of other functions into such a one: `exec` is over before most of that has earned what it took to compile.
const [, , command] = process.argv;
const isLong = command === 'serve' || command === 'exec';
if (major === 20) setFlagsFromString(`--interrupt-budget=${isLong ? 200_000 : 400_000}`);
if (command === 'exec') setFlagsFromString('--max-inlined-bytecode-size-cumulative=150');

// How much the heap grows until V8 marks all of it: as much again. V8 would let it grow by 8 MB while little is allocated, and count the
// buffers of requests into that: at a few thousand spans a second it then marked everything each second. `exec` is over before its heap is large.
setFlagsFromString(`--heap-growing-percent=${command === 'exec' ? 200 : 100}`);

const [
  { homedir, hostname, networkInterfaces, tmpdir },
  { fileURLToPath },
  { systemClock },
  { fileMask },
  { machineNames },
  { packageFile },
  { runCli },
] = await Promise.all([
  import('node:os'),
  import('node:url'),
  import('./core/clock.js'),
  import('./core/file-mask.js'),
  import('./core/http-listener.js'),
  import('./core/package-file.js'),
  import('./commands/run-cli.js'),
]);

fileMask.narrow();

/** How long the process may continue when its work is done, in milliseconds, because of open connections. */
const LINGER_MS = 500;
/** How long a signal to itself may take to end the process, in milliseconds. */
const DEATH_MS = 100;
const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

/**
 * A signal so soon after the first is the same one, in milliseconds: a terminal signals the whole group, and `npm start` or
 * `timeout` passes on to the program what it has got already.
 */
const SAME_SIGNAL_MS = 500;

const stop = new AbortController();
let stoppedAtMs = 0;
let takeover: ProcessTakeover | undefined;
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (takeover !== undefined) return;
    const nowMs = performance.now();
    if (!stop.signal.aborted) stoppedAtMs = nowMs;
    else if (nowMs - stoppedAtMs > SAME_SIGNAL_MS) process.exit(128 + SIGNAL_NUMBERS[signal]);
    stop.abort();
  });
}
// A reader that has gone (`run-bridge config | head`) is not a failure.
process.stdout.on('error', () => {});
process.stderr.on('error', () => {});
for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    if (takeover !== undefined) {
      reportFault(takeover, error);
      return;
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.stderr.write(`run-bridge: internal error; please report it with this: ${text}\n`);
    process.exit(1);
  });
}

const ending = await runCli(process.argv.slice(2), {
  environment: process.env,
  workingDir: process.cwd(),
  homeDir: homedir(),
  tempDir: tmpdir(),
  pid: process.pid,
  nodeVersion: process.versions.node,
  nodePath: process.execPath,
  packageDir: fileURLToPath(packageFile('./')),
  // The getter opens the stream, so only commands that read it access it.
  get stdin() {
    return process.stdin;
  },
  get isStdinTerminal() {
    return process.stdin.isTTY === true;
  },
  stdout: process.stdout,
  stdoutColumns: process.stdout.isTTY === true ? process.stdout.columns : null,
  stderr: process.stderr,
  isStderrTerminal: process.stderr.isTTY === true,
  ownHosts: [
    ...machineNames(hostname(), readText('/etc/hosts'), readText('/etc/resolv.conf')),
    ...Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []),
  ],
  clock: systemClock,
  random: Math.random,
  stop: stop.signal,
  takeOver(taken) {
    takeover = taken;
    for (const signal of taken.signals) process.on(signal, () => taken.onSignal(signal));
    return (known) => {
      process.exitCode = known.exitCode;
      // Nothing keeps the process alive, and the promise below is not settled: Node would end it with 13.
      process.on('beforeExit', () => {
        reportFault(taken, new Error('it waits forever'));
        endAs(known);
      });
    };
  },
});
if (typeof ending === 'number') {
  process.exitCode = ending;
  setTimeout(() => process.exit(), LINGER_MS).unref();
} else {
  endAs(ending);
}

/** An exception here would end the process, and lose the exit code of the command. */
function reportFault({ onFault }: ProcessTakeover, error: unknown): void {
  try {
    onFault(error);
  } catch {
    // There is no place left to report it.
  }
}

/** The process's limit of open files, after Node has raised it as far as possible; unlimited if unknown. */
function readMaxFiles(): number {
  return Number(/^Max open files +(\d+)/m.exec(readText('/proc/self/limits'))?.[1] ?? Number.POSITIVE_INFINITY);
}

/** The content of a file of the system; empty if it does not exist. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Ends the process at once as a command did that it stood in for. */
function endAs({ exitCode, signal }: CommandExit): void {
  if (signal !== null) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    // The first process of a container does not die from its own signal; it exits shortly after.
    setTimeout(() => process.exit(exitCode), DEATH_MS);
    return;
  }
  process.exit(exitCode);
}
