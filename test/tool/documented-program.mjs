// Stands in the documentation's sandbox for the programs that its commands name, by the name that it is called by. What goes on until
// it is stopped is stopped when it has said that it works; what needs another machine is checked as far as it can be.
// Environment: REPOSITORY, the folder of this repository; SAMPLE, that of a recorded run.
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const [, , called, ...args] = process.argv;
const { REPOSITORY, SAMPLE } = process.env;
const main = join(REPOSITORY, 'dist/main.js');

const programs = {
  'run-bridge': runBridge,
  dbt: engine,
  make: () => engine([]),
  npm,
  docker,
  duckdb,
  createdb: () => 0,
  open: openPage,
};
process.exitCode = await programs[basename(called)](args);

function run(...words) {
  const { status } = spawnSync(process.execPath, words, { stdio: 'inherit' });
  return status ?? 1;
}

async function runBridge(words) {
  const [command] = words;
  const text = words.join(' ');
  if (command === 'serve' && /s3:\/\/|--processes|--role/.test(text + (process.env.DATABASE_URL ?? '')))
    return config(words.slice(1));
  if (command === 'serve' && process.env.DATABASE_URL !== undefined) return config(words.slice(1));
  if (command === 'serve') return await untilItWorks(serving(words), /now run/);
  if (command === 'demo' && words.includes('--serve')) return await untilItWorks(words, /until Ctrl\+C/);
  if (command === 'follow') return await untilItWorks(words, /follows/);
  if (command === 'pull' && words.includes('--watch')) return await untilItWorks(words, /watches/);
  // It would go on until it is stopped, and says on standard output what it has to say.
  if (command === 'top') return run(main, ...words, ...(words.includes('--once') ? [] : ['--once']));
  // The bridge of the sandbox has the data folder.
  if (command === 'retain' && !words.includes('--dry-run'))
    return run(main, ...words, '--data-dir', mkdtempSync(join(tmpdir(), 'empty-')));
  // Pages name the same folders.
  if (command === 'backup') rmSync(words[1], { recursive: true, force: true });
  if (command === 'restore') rmSync(words.at(-1), { recursive: true, force: true });
  return run(main, ...words);
}

/** The settings are right; the database or the bucket is nowhere. */
function config(words) {
  return run(main, 'config', ...words);
}

/** On free ports, and on a folder of its own where none is named. */
function serving(words) {
  const own = words.filter((word, at) => !/^--(http|web)$/.test(word) && !/^--(http|web)$/.test(words[at - 1] ?? ''));
  const folder = words.includes('--data-dir') ? [] : ['--data-dir', mkdtempSync(join(tmpdir(), 'served-'))];
  return [...own, ...folder, '--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--web', '127.0.0.1:0'];
}

/** Stops it once it has said that it works, on whichever output. */
function untilItWorks(words, sign) {
  const child = spawn(process.execPath, [main, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const listen = (chunk) => {
    const before = sign.test(said);
    said += chunk;
    if (!before && sign.test(said)) child.kill('SIGTERM');
  };
  child.stdout.pipe(process.stdout);
  for (const output of [child.stdout, child.stderr]) output.on('data', listen);
  return new Promise((resolve) => {
    child.on('close', (exitCode) => {
      if (exitCode !== 0 || !sign.test(said)) process.stderr.write(said);
      resolve(sign.test(said) ? (exitCode ?? 1) : 1);
    });
  });
}

/** Leaves an artifact, and telemetry where it was asked for. */
async function engine(words) {
  mkdirSync('target', { recursive: true });
  copyFileSync(join(REPOSITORY, 'package.json'), 'target/run_results.json');
  if (words.join(' ').includes('--log-format otel')) process.stdout.write(readFileSync(join(SAMPLE, 'otel.jsonl')));
  return run(join(REPOSITORY, 'test/tool/stand-in-engine.mjs'), SAMPLE);
}

/** Scripts that are named are there. */
function npm(words) {
  const { scripts, name } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8'));
  const [command, what] = words;
  if (command === 'install') return new RegExp(`(^| )${name}(@latest)?( |$)`).test(words.join(' ')) ? 0 : 1;
  if (command === 'ci') return 0;
  return (command === 'run' ? what : command) in scripts ? 0 : 1;
}

function docker(words) {
  const known = ['compose up --build --detach --wait', 'compose logs run-bridge'];
  readFileSync(join(REPOSITORY, 'docker-compose.yml'));
  return known.includes(words.join(' ')) ? 0 : 1;
}

function openPage([url]) {
  return URL.canParse(url) ? 0 : 1;
}

async function duckdb([, sql]) {
  const { DuckDBInstance } = createRequire(join(REPOSITORY, 'package.json'))('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create()).connect();
  const rows = (await connection.runAndReadAll(sql)).getRows();
  console.log(`${rows.length} rows`);
  return rows.length > 0 ? 0 : 1;
}
