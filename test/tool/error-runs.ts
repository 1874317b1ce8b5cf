import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Engine } from './engine.js';
import { ERROR_CASES, ERROR_PROJECT, type ErrorCase, type ErrorDatabase } from './error-cases.js';
import type { PostgresServer } from './postgres-server.js';

/** The trace of the command that makes a case's mistake; most are made by one build. */
export function traceOfCase({ name, command }: Pick<ErrorCase, 'name' | 'command'>): string {
  return createHash('sha256')
    .update(command === undefined ? 'build' : name)
    .digest('hex')
    .slice(0, 32);
}

/** The cases that are made on a database. */
export function casesOf(database: ErrorDatabase): readonly ErrorCase[] {
  return ERROR_CASES.filter(({ shown }) => shown[database] !== undefined);
}

/** Lines of the recorded telemetry of all cases on a database. */
export function recordedErrors(database: ErrorDatabase): readonly string[] {
  return gunzipSync(readFileSync(fixtureOf(database)))
    .toString('utf8')
    .trimEnd()
    .split('\n');
}

/** Writes the fixture anew. */
export function saveRecordedErrors(database: ErrorDatabase, lines: readonly string[]): void {
  writeFileSync(fixtureOf(database), gzipSync(`${lines.join('\n')}\n`, { level: 9 }));
}

function fixtureOf(database: ErrorDatabase): string {
  return join('test', 'fixture', 'errors', `${database}.jsonl.gz`);
}

/** Who the project connects as, and what they may not touch. */
export async function prepareErrorDatabase(server: PostgresServer): Promise<void> {
  await server.tell("create role shop_user login password 'shop_password'");
  await server.tell('alter role shop_user set search_path = main, public');
  await server.tell('create database shop');
  await server.tell('grant create on database shop to shop_user', 'shop');
  await server.tell('create schema main authorization shop_user', 'shop');
  await server.tell('create schema vault', 'shop');
  await server.tell('create table vault.items (label text)', 'shop');
  await server.tell('create table public.vault_items (label text)', 'shop');
}

/**
 * Makes the mistakes with the real engine, those of nodes in one build. An engine that crashes or
 * hangs has made no mistakes to look at: it is started again, twice at most.
 * @param port of the PostgreSQL server, where the database is one
 * @returns the lines of telemetry, without this machine's paths
 * @throws an error with the engine's output, where it never comes to its end
 */
export async function makeErrors(
  engine: Engine,
  database: ErrorDatabase,
  cases: readonly ErrorCase[],
  port: number | undefined,
): Promise<readonly string[]> {
  const lines: string[] = [];
  const run = async (some: readonly ErrorCase[], command: readonly string[]) => {
    const [first] = some;
    if (first === undefined) return;
    writeProject(engine.project, some);
    const traceId = traceOfCase(first);
    const env = {
      SHOP_TARGET: database,
      SHOP_PASSWORD: 'shop_password',
      DBT_ALLOW_EXPERIMENTAL_ADAPTERS: 'true',
      ...(port !== undefined && { SHOP_PORT: String(port) }),
      ...first.env,
    };
    const id = traceId.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    const written = await completeRun(
      engine,
      [...command, '--otel-file-name', 'otel.jsonl', '--invocation-id', id],
      env,
    );
    for (const line of written) {
      lines.push(line.replaceAll(engine.project, '/project/shop').replaceAll(engine.home, '/opt/engine'));
    }
  };
  await run(
    cases.filter(({ command }) => command === undefined),
    ['build'],
  );
  for (const one of cases) if (one.command !== undefined) await run([one], one.command);
  return lines;
}

/** The lines of a run that came to its end, as the last of them says. */
async function completeRun(
  engine: Engine,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const crashes: string[] = [];
  while (crashes.length < ATTEMPTS) {
    rmSync(engine.jsonl, { force: true });
    let timer: NodeJS.Timeout | undefined;
    const { exitCode, signal, output } = await engine.run(args, env, (kill) => {
      timer = setTimeout(() => kill('SIGKILL'), LONGEST_RUN_MS);
    });
    clearTimeout(timer);
    const lines = existsSync(engine.jsonl) ? engine.jsonlLines() : [];
    if (lines.some((line) => line.includes('"SpanEnd"') && line.includes('.Invocation"'))) return lines;
    crashes.push(`exit code ${exitCode}, signal ${signal}, ${lines.length} lines of telemetry:\n${output}`);
    console.warn(`the engine did not come to its end: ${crashes.at(-1)}`);
  }
  throw new Error(`the engine did not come to its end in ${ATTEMPTS} attempts: ${crashes.join('\n')}`);
}

const ATTEMPTS = 3;
/** Such a run takes one or two seconds. */
const LONGEST_RUN_MS = 80_000;

function writeProject(folder: string, cases: readonly ErrorCase[]): void {
  rmSync(folder, { recursive: true, force: true });
  const files = new Map(Object.entries(ERROR_PROJECT));
  for (const { name, path, text, files: others } of cases) {
    if (path === PROJECT_FILE) files.set(path, `${files.get(path) ?? ''}${text}\n`);
    else files.set(path ?? `models/${name}.sql`, text);
    for (const [other, content] of Object.entries(others ?? {})) files.set(other, content);
  }
  for (const [path, text] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

const PROJECT_FILE = 'dbt_project.yml';
