import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Engine } from '../tool/engine.js';
import { casesOf, makeErrors, prepareErrorDatabase, saveRecordedErrors } from '../tool/error-runs.js';
import { findCauses, markersShown } from '../tool/error-texts.js';
import { nativePostgres } from '../tool/native-postgres.js';
import { PostgresServer } from '../tool/postgres-server.js';

/** `RECORD_ERRORS=1` makes all of them and writes `test/fixture/errors` anew; else a few are made. */
const isRecording = process.env.RECORD_ERRORS === '1';
const FEW = new Set(['missing_relation', 'missing_column', 'cast_to_integer', 'unique_index', 'division_by_zero']);

let engine: Engine;
let server: PostgresServer;

beforeAll(async () => {
  engine = Engine.up('core');
  engine.addPostgresDriver();
  server = await PostgresServer.start(nativePostgres());
  await prepareErrorDatabase(server);
});
afterAll(async () => {
  engine?.remove();
  await server?.stop();
});

describe.each(['duckdb', 'postgres'] as const)('errors of %s, as the engine reports them now', (database) => {
  test('show their cause and no value when they are redacted', async () => {
    const cases = casesOf(database).filter(({ name }) => isRecording || FEW.has(name));
    const lines = await makeErrors(engine, database, cases, database === 'postgres' ? server.port : undefined);
    if (isRecording) saveRecordedErrors(database, lines);
    expect(findCauses(lines, database, cases)).toEqual([]);
    for (const level of ['literals', 'statements'] as const) expect(markersShown(lines, level)).toEqual([]);
  });
});
