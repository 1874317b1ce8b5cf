// What .ci/run runs, in which order, and what it says at the end. Two suites run side by side: those in `working` keep processors busy,
// those in `waiting` wait for other programs more than they work.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'run-bridge-gate-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
mkdirSync(process.env.RUN_BRIDGE_CACHE, { recursive: true });

/** How many of a suite's files are named with their seconds. */
const SLOWEST = 10;
/** What a suite came to: its name, wall-clock seconds, how many passed, failed and were skipped, the names of those that failed, seconds by file. */
const results = [];

// README's test command is "npm ci && npm test". What other suites need is installed meanwhile.
await check('install', 'npm', 'ci');
if (failedCount() === 0) {
  const installed = suite('installs');
  await tests('test', 'npm', 'test');
  const working = async () => {
    for (const name of ['lint', 'types', 'layers', 'dead']) await check(name, 'npm', 'run', '--silent', name);
    for (const name of ['commands', 'long', 'fuzz', 'browser', 'crash']) await suite(name);
    await tests('newest', 'npm', 'run', '--silent', 'newest');
  };
  const waiting = async () => {
    await installed;
    for (const name of ['peers', 'engine']) await suite(name);
  };
  await Promise.all([working(), waiting()]);
}
report();

/** A command that counts as one. */
async function check(name, ...command) {
  const { status, seconds } = await run(name, command);
  const isPassed = status === 0;
  results.push({
    name,
    seconds,
    passed: +isPassed,
    failed: +!isPassed,
    skipped: 0,
    faults: isPassed ? [] : [name],
    files: [],
  });
}

/** A project of Vitest. */
function suite(name) {
  return tests(name, 'npm', 'run', '--silent', 'suite', name);
}

/** A script of npm that runs Vitest; one that broke before it could count is one failure. */
async function tests(name, ...script) {
  const output = join(folder, `${name}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${output}`];
  const { status, seconds } = await run(name, [...script, '--', ...reporters]);
  const { testResults, numPassedTests, numFailedTests, numPendingTests } = read(output);
  const faults = testResults.flatMap((file) => faultsOf(file).map((fault) => `${name}: ${fault}`));
  const isBroken = status !== 0 && numFailedTests === 0;
  if (isBroken && faults.length === 0) faults.push(`${name}: ended with ${status}`);
  const files = testResults.map(({ name: path, startTime, endTime }) => ({
    path,
    seconds: (endTime - startTime) / 1_000,
  }));
  const failed = numFailedTests + +isBroken;
  results.push({ name, seconds, passed: numPassedTests, failed, skipped: numPendingTests, faults, files });
}

/** What failed in a file of tests, each with what it said: a long output may be cut before one gets to read it. */
function faultsOf({ name, assertionResults, status, message }) {
  const failed = assertionResults.filter(({ status }) => status === 'failed');
  // A file whose hooks or imports fail has no failed test.
  if (failed.length === 0) return status === 'failed' ? [`${name}\n${message}`] : [];
  return failed.map(({ fullName, failureMessages }) => `${fullName}\n${failureMessages.join('\n')}`);
}

function read(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return { testResults: [], numPassedTests: 0, numFailedTests: 0, numPendingTests: 0 };
  }
}

/** Runs a command and prints what it said when it has ended, so that what runs side by side is told apart. */
async function run(name, [program, ...args]) {
  const log = join(folder, `output-${name}`);
  const file = openSync(log, 'w');
  const startedMs = performance.now();
  console.log(`── ${name} begins`);
  const child = spawn(program, args, { stdio: ['ignore', file, file] });
  const status = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
  const seconds = (performance.now() - startedMs) / 1_000;
  process.stdout.write(`\n── ${name}, ${seconds.toFixed(0)} s\n${readFileSync(log, 'utf8')}\n`);
  return { status, seconds };
}

function failedCount() {
  return results.reduce((sum, { failed }) => sum + failed, 0);
}

function report() {
  console.log(`\n${'suite'.padEnd(16)}seconds  passed  failed  skipped`);
  for (const { name, seconds, passed, failed, skipped } of results) {
    const numbers = [seconds.toFixed(0), passed, failed, skipped].map((value) => String(value).padStart(7));
    console.log(`${name.padEnd(16)}${numbers.join(' ')}`);
  }
  console.log(`${'all'.padEnd(16)}${(performance.now() / 1_000).toFixed(0).padStart(7)}`);
  for (const { name, files } of results.filter(({ files }) => files.length > 1)) {
    console.log(`\n${name}: the slowest files`);
    for (const { path, seconds } of files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST)) {
      console.log(`${seconds.toFixed(1).padStart(8)} s  ${path.slice(process.cwd().length + 1)}`);
    }
  }
  const faults = results.flatMap(({ faults }) => faults);
  if (faults.length > 0)
    console.log(`\nFailed:\n${faults.map((fault) => `  ${fault.replaceAll('\n', '\n    ')}`).join('\n')}`);
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  console.log(`\n${passed} passed, ${failedCount()} failed`);
  process.exitCode = failedCount() === 0 ? 0 : 1;
}
