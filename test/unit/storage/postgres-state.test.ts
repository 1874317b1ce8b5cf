import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { parseTraceId, type TraceId } from '../../../src/record/telemetry-record.js';
import { openPostgresState } from '../../../src/storage/postgres-state.js';
import type { State } from '../../../src/storage/state.js';
import { StoreError } from '../../../src/storage/store-error.js';
import { WebhookOutbox } from '../../../src/webhook/outbox.js';
import { stateContract } from '../../contract/state.contract.js';
import { CutLine } from '../../fake/cut-line.js';
import { TestDatabase } from '../../tool/test-database.js';
import { until } from '../../tool/until.js';

let database: TestDatabase;
let state: State;
beforeAll(async () => {
  database = await TestDatabase.create();
  // Two programs that start at the same time: one makes the tables, the other waits for it.
  const [first, second] = await Promise.all([open(), open()]);
  await second.close();
  state = first;
});
afterAll(async () => {
  await state.close();
  await database.drop();
});

stateContract(async (body) => {
  await database.reset();
  await body(state);
});

describe('the PostgreSQL state', () => {
  it('keeps what was saved for the next program', async () => {
    await database.reset();
    await state.cursors.register('jaeger', 7);
    const other = await open();
    expect(await other.cursors.register('jaeger', 9)).toBe(7);
    await other.close();
  });

  it('changes nothing of a trace that another process has', async () => {
    await database.reset();
    const [mine, theirs] = [traceId(1), traceId(2)];
    const { journal } = state;
    for (const [partition, [name, id]] of [['me', mine] as const, ['them', theirs] as const].entries()) {
      await journal.claim(name, 1, new Set([partition]));
      await journal.open(id, partition);
    }
    const fenced = await openPostgresState(database.url, systemClock, undefined, undefined, {
      processId: 'me',
      folderId: 'here',
    });
    const row = (id: TraceId) => ({
      ...{ traceId: id, firstSeenUnixMs: 1, lastSeenUnixMs: 1, state: 'open' as const, logBytes: 9 },
      ...{ summary: '{}', parquetBytes: null },
    });
    await fenced.runs.save([row(mine), row(theirs)]);
    expect((await state.runs.list(9)).map((run) => run.traceId)).toEqual([mine]);
    await state.runs.save([row(theirs)]);
    await fenced.cursors.register('jaeger', 0);
    const cursor = (id: TraceId) => ({
      ...{ destination: 'jaeger', traceId: id, tracesOffset: 5, logsOffset: 5, finishedAtBytes: null },
    });
    await fenced.cursors.save([cursor(theirs), cursor(mine)]);
    expect(await state.cursors.find('jaeger', theirs)).toBeUndefined();
    expect(await state.cursors.find('jaeger', mine)).toMatchObject({ tracesOffset: 5 });
    expect((await fenced.cursors.listPending('jaeger')).map((run) => run.traceId)).toEqual([mine]);
    await fenced.invocations.note(
      [mine, theirs].map((id) => ({ traceId: id, invocations: [] })),
      1,
    );
    expect((await state.invocations.listUnnoted(9)).map((run) => run.traceId)).toEqual([theirs]);
    expect(await fenced.invocations.listUnnoted(9)).toEqual([]);
    await fenced.cursors.savePassthrough('jaeger', { segment: 'one', offset: 3 });
    expect(await fenced.cursors.findPassthrough('jaeger')).toEqual({ segment: 'one', offset: 3 });
    expect(await state.cursors.findPassthrough('jaeger')).toBeUndefined();
    await fenced.close();
  });

  it('registers a destination once, however many programs do so at the same time', async () => {
    await database.reset();
    const times = await Promise.all([1, 2, 3, 4, 5].map((nowUnixMs) => state.cursors.register('jaeger', nowUnixMs)));
    expect(new Set(times).size).toBe(1);
  });

  it('refuses a database of a newer version, also while it waits for its turn', async () => {
    const other = await TestDatabase.create();
    await (await open(other.url)).close();
    await other.tell(`insert into kysely_migration values ('9999-from-the-future', '2030-01-01')`);
    const error = await openError(other.url);
    expect(error).toMatchObject({ code: 'newer' });
    expect(error.message).toContain('9999-from-the-future');
    await other.drop();
  });

  it("leaves another program's database alone", async () => {
    const other = await TestDatabase.create();
    await other.tell('create table customers (id bigint)');
    const error = await openError(other.url);
    expect(error.code).toBe('refused');
    expect(error.message).toContain('holds tables of something else (customers)');
    await other.tell('create schema mine');
    const own = await open(`${other.url}?options=-c%20search_path%3Dmine`);
    await own.cursors.register('jaeger', 7);
    await own.close();
    expect((await other.tell('select name from mine.destinations')).rows).toEqual([{ name: 'jaeger' }]);
    await other.drop();
  });

  it('says what to do about a password, a database and a port that are wrong', async () => {
    const wrong = (change: (url: URL) => void) => {
      const url = new URL(database.url);
      change(url);
      return openError(url.href);
    };
    const password = await wrong((url) => {
      url.password = 'very-secret';
    });
    expect(password.code).toBe('refused');
    expect(password.message).toMatch(/does not let this user in; check user and password in DATABASE_URL/);
    expect(password.message).not.toContain('very-secret');
    const missing = await wrong((url) => {
      url.pathname = '/nothing';
    });
    expect(missing.code).toBe('refused');
    expect(missing.message).toMatch(/\/nothing: there is no such database; create it/);
    const line = await CutLine.open(0);
    await line.cut();
    const unreachable = await wrong((url) => {
      url.port = String(line.port);
    });
    expect(unreachable.code).toBe('unreachable');
    expect(unreachable.message).toContain(`127.0.0.1:${line.port}/`);
    expect(unreachable.message).toContain('check that it runs');
  });

  it('says what to do where it may not write', async () => {
    const other = await TestDatabase.create();
    await other.tell(`alter database ${other.name} set default_transaction_read_only = on`);
    const error = await openError(other.url);
    expect(error.code).toBe('readOnly');
    expect(error.message).toContain('give the address of the primary server');
    await other.drop();
  });

  it('goes on without notice where the server ends connections that nobody uses', async () => {
    await Promise.all([1, 2, 3, 4, 5].map(() => state.runs.list(1)));
    const others = `select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = '${database.name}' and pid <> pg_backend_pid()`;
    await database.tell(others);
    expect(await state.runs.list(1)).toBeDefined();
    expect(state.problem()).toBeNull();
  });

  it('says that the server is away, and goes on by itself when it is back', async () => {
    const url = new URL(database.url);
    const line = await CutLine.open(Number(url.port));
    url.port = String(line.port);
    const far = await open(url.href, 0);
    await line.cut();
    await expect(far.runs.find(TRACE)).rejects.toMatchObject({ name: 'StoreError', code: 'unreachable' });
    expect(far.problem()).toContain('cannot be reached');
    await expect(far.runs.find(TRACE)).rejects.toMatchObject({ code: 'unreachable' });
    await line.mend();
    await until('the server to be back', () => far.problem() === null);
    expect(await far.runs.find(TRACE)).toBeUndefined();
    await far.close();
    await line.cut();
  });

  it('waits for a server that is only restarted', async () => {
    const url = new URL(database.url);
    const line = await CutLine.open(Number(url.port));
    url.port = String(line.port);
    const far = await open(url.href);
    await line.cut();
    const answer = far.runs.find(TRACE);
    await line.mend();
    expect(await answer).toBeUndefined();
    await far.close();
    await line.cut();
  });
});

const TRACE = parseTraceId('0af7651916cd43dd8448eb211c80319c') as TraceId;

function open(url = database.url, patienceMs = 10_000): Promise<State> {
  return openPostgresState(url, systemClock, patienceMs, new WebhookOutbox());
}

async function openError(url: string): Promise<StoreError> {
  const error: unknown = await open(url, 0).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof StoreError)) throw new Error(`expected a StoreError, not ${String(error)}`);
  return error;
}

function traceId(number: number): TraceId {
  const id = parseTraceId(number.toString(16).padStart(32, '0'));
  if (id === undefined) throw new Error('no trace id');
  return id;
}
