import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { apiRouter } from '../src/api/api-router.js';
import { Authenticator, hashOf, newSecret } from '../src/api/authenticator.js';
import { FailedTries } from '../src/api/failed-tries.js';
import { systemClock } from '../src/core/clock.js';
import { Health } from '../src/core/health.js';
import { FIRST_ACCOUNT_ID } from '../src/storage/account-store.js';
import { openPostgresState } from '../src/storage/postgres-state.js';
import { openSqliteState } from '../src/storage/sqlite-state.js';
import { WebServer } from '../src/web/web-server.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3000' },
    /** An empty database in PostgreSQL; SQLite where it is left out. */
    'database-url': { type: 'string' },
  },
});
const rounds = Number(values.rounds);
const folder = mkdtempSync(join(tmpdir(), 'run-bridge-tokens-'));
const url = values['database-url'];
const state =
  url === undefined ? await openSqliteState(join(folder, 'state.db')) : await openPostgresState(url, systemClock);
// Failed tries are limited by address: here a minute passes between any two looks at the clock.
let minutes = 0;
const clock = { ...systemClock, monotonicMs: () => 60_000 * minutes++ };
const logger = { debug() {}, info() {}, warn() {}, error() {} };
const authenticator = new Authenticator({ tokens: state.tokens, tries: new FailedTries(clock), clock, logger });
const routers = [apiRouter({ authenticator, isOpen: false, routers: [], logger })];
const web = new WebServer({ host: '127.0.0.1', port: 0 }, { logger, health: new Health(), routers });
await web.start();

/** Makes a token as it is kept. */
async function add(expiresUnixMs: number | null = null): Promise<{ readonly secret: string; readonly id: number }> {
  const secret = newSecret();
  const rest = {
    accountId: FIRST_ACCOUNT_ID,
    name: 'a',
    userName: null,
    permission: 'admin' as const,
    createdUnixMs: 0,
  };
  const { id } = await state.tokens.add({ ...rest, hash: hashOf(secret).toString('hex'), expiresUnixMs });
  return { secret, id };
}

/** Milliseconds until the answer to a request with that header was read. */
function ask(authorization: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const { port } = web.address;
    const sent = request({ port, path: '/api/v2/accounts', headers: { authorization }, agent }, (response) => {
      if (response.statusCode !== 401) reject(new Error(`answered ${response.statusCode}`));
      response.resume().on('end', () => resolve(performance.now() - startedMs));
    });
    sent.on('error', reject).end();
  });
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
try {
  for (let index = 0; index < 1_000; index++) await add();
  const revoked = await add();
  await state.tokens.revoke(revoked.id, 1);
  const expired = await add(1);
  const kinds: Readonly<Record<string, () => string>> = {
    unknown: () => `Token ${newSecret()}`,
    'unknown, again': () => `Token ${newSecret()}`,
    revoked: () => `Token ${revoked.secret}`,
    expired: () => `Token ${expired.secret}`,
    malformed: () => 'Token ?',
    'no scheme': () => expired.secret,
    'one letter off': () => `Token ${expired.secret.slice(0, -1)}`,
  };
  const times = new Map(Object.keys(kinds).map((kind) => [kind, [] as number[]]));
  // In turns, so that what else the machine does falls on all alike; the first ones warm the compiler up.
  for (let round = -500; round < rounds; round++) {
    for (const [kind, header] of Object.entries(kinds)) {
      const ms = await ask(header());
      if (round >= 0) times.get(kind)?.push(ms);
    }
  }
  console.log(
    `${url === undefined ? 'SQLite' : 'PostgreSQL'}, 1,002 tokens, ${rounds} requests of each kind; microseconds`,
  );
  for (const [kind, all] of times) {
    const sorted = all.toSorted((a, b) => a - b);
    const at = (share: number) => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 1_000);
    console.log(`${kind.padEnd(16)} median ${at(0.5)}  10 % ${at(0.1)}  90 % ${at(0.9)}  99 % ${at(0.99)}`);
  }
} finally {
  agent.destroy();
  await web.shutdown(AbortSignal.abort());
  await state.close();
  rmSync(folder, { recursive: true, force: true });
}
