import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'libsql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BridgeProcess } from '../tool/bridge-process.js';
import { compileSource } from '../tool/compiled-source.js';
import { TestDatabase } from '../tool/test-database.js';
import { TRIAL, trialSize } from '../tool/trial.js';
import { CleanUp } from './clean-up.js';
import { SeededRandom } from './seeded-random.js';

/** In each of four ways. */
const KILLS = trialSize(2, 15);
const TIMEOUT_MS = 60_000 + KILLS * 20_000;
const THINGS = 5_000;

const random = new SeededRandom(TRIAL.seed);
const cleanUp = new CleanUp();
let folder: string;
let compiled: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-schema-'));
  cleanUp.folder(folder);
  compiled = await compileSource('storage/sqlite-state', 'storage/postgres-state', 'core/clock');
  cleanUp.folder(compiled);
});
afterAll(() => cleanUp.run());

/** Where a state is kept that a trial may spoil. */
interface Place {
  readonly dataFolder: string;
  readonly env: Readonly<Record<string, string>>;
  drop(): Promise<void>;
}

const DATABASES = ['SQLite', 'PostgreSQL'] as const;
type DatabaseName = (typeof DATABASES)[number];

async function freshPlace(kind: DatabaseName): Promise<Place> {
  const dataFolder = mkdtempSync(join(folder, 'data-'));
  if (kind === 'SQLite') return { dataFolder, env: {}, drop: async () => {} };
  const database = await TestDatabase.create();
  return { dataFolder, env: { DATABASE_URL: database.url }, drop: () => database.drop() };
}

describe(`SIGKILL at ${KILLS} moments`, () => {
  it.each(DATABASES)('of a fresh start on %s leaves what starts again', { timeout: TIMEOUT_MS }, async (kind) => {
    const whole = await freshPlace(kind);
    const startedMs = performance.now();
    const uninterrupted = await BridgeProcess.start(whole);
    const readyMs = performance.now() - startedMs;
    await uninterrupted.remove();
    await whole.drop();
    for (let kill = 0; kill < KILLS; kill += 1) {
      const place = await freshPlace(kind);
      const afterMs = random.between(0.2, 1.1) * readyMs;
      const child = startServe(place);
      await pause(afterMs);
      await killed(child);
      const bridge = await BridgeProcess.start(place);
      const token = readFileSync(join(place.dataFolder, 'admin-token'), 'utf8').trim();
      const headers = { authorization: `Token ${token}` };
      const answer = await fetch(`${bridge.webUrl}/api/v2/accounts/`, { headers });
      expect.soft(answer.status, `killed after ${afterMs} of ${readyMs} ms`).toBe(200);
      await bridge.remove();
      await place.drop();
    }
  });

  it('of new schema steps on SQLite leaves what the same steps bring forward', { timeout: TIMEOUT_MS }, async () => {
    const seed = join(folder, 'seed.db');
    await bringForward(seed, 'first');
    const database = new Database(seed);
    database.exec(SEEDING);
    database.close();
    mkdirSync(join(folder, 'steps'));
    const wholePath = join(folder, 'steps', 'whole.db');
    copyFileSync(seed, wholePath);
    const wholeMs = await bringForward(wholePath);
    for (let kill = 0; kill < KILLS; kill += 1) {
      const path = join(folder, 'steps', `${kill}.db`);
      copyFileSync(seed, path);
      await cutOff(path, random.between(0, 1.1) * wholeMs);
      await bringForward(path);
      const after = new Database(path);
      expect.soft(after.prepare(THINGS_AFTER).get()).toMatchObject(ALL_THINGS);
      after.close();
    }
  });

  it('of new schema steps on PostgreSQL leaves what they bring forward', { timeout: TIMEOUT_MS }, async () => {
    const make = async () => {
      const database = await TestDatabase.create();
      await bringForward(database.url, 'first');
      await database.tell(SEEDING);
      return database;
    };
    const whole = await make();
    const wholeMs = await bringForward(whole.url);
    await whole.drop();
    for (let kill = 0; kill < KILLS; kill += 1) {
      const database = await make();
      await cutOff(database.url, random.between(0, 1.1) * wholeMs);
      await bringForward(database.url);
      const { rows } = await database.tell(THINGS_AFTER);
      expect
        .soft(rows.map(({ count, total }) => ({ count: Number(count), total: Number(total) })))
        .toEqual([ALL_THINGS]);
      await database.drop();
    }
  });
});

const SEEDING = `insert into things (id, name)
  with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${THINGS})
  select n, 'a thing' from numbers`;
const THINGS_AFTER = `select count(*) as count, sum(first_count) as total from things where kind = 'known' and second_count = id`;
const ALL_THINGS = { count: THINGS, total: (THINGS * (THINGS + 1)) / 2 };

function startServe({ dataFolder, env }: Place): ChildProcess {
  const ports = ['http', 'grpc', 'web'].flatMap((name) => [`--${name}`, '127.0.0.1:0']);
  return spawn(process.execPath, ['dist/main.js', 'serve', ...ports, '--data-dir', dataFolder], {
    env: { PATH: process.env.PATH ?? '', HOME: dataFolder, ...env },
    stdio: 'ignore',
  });
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

/** Brings a schema forward and is cut off after so long; what it takes to begin is not counted. */
async function cutOff(where: string, afterMs: number): Promise<void> {
  const child = startSteps(where);
  await once(child.stdout, 'data');
  await pause(afterMs);
  await killed(child);
}

/** Brings a schema forward. @returns how long that took, in milliseconds */
async function bringForward(where: string, ...first: readonly 'first'[]): Promise<number> {
  const child = startSteps(where, ...first);
  const ended = once(child, 'exit');
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  let output = '';
  const timesMs: number[] = [];
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    timesMs.push(performance.now());
  });
  await ended;
  if (!output.includes('done')) throw new Error(`the schema was not brought forward: ${stderr}`);
  return (timesMs.at(-1) ?? 0) - (timesMs[0] ?? 0);
}

function startSteps(where: string, ...first: readonly 'first'[]) {
  const script = join('test', 'crash', 'bring-forward.mjs');
  return spawn(process.execPath, [script, compiled, where, ...first], { stdio: ['ignore', 'pipe', 'pipe'] });
}
