import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { type QueryAnswer, QueryEngine } from '../../../src/query/engine.js';
import { listQueryFiles } from '../../../src/query/files.js';
import { QueryError } from '../../../src/query/protocol.js';
import { API_QUERY_LIMITS } from '../../../src/query/routes.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import { queryFolder } from '../../fake/query-folder.js';
import { compileSource } from '../../tool/compiled-source.js';

const { dataFolder, traceIds } = queryFolder(['build-mixed', 'fail-fast'], afterAll);
const engine = new QueryEngine({
  entry: new URL('../../../dist/query-process.js', import.meta.url),
  clock: systemClock,
  stopping: new AbortController().signal,
});
const forever = new AbortController().signal;

async function ask(sql: string, limits = {}, ids: readonly TraceId[] = traceIds, signal = forever) {
  const files = () => listQueryFiles(dataFolder, ids);
  const answers: QueryAnswer[] = [];
  for await (const answer of engine.run({ sql, files, limits: { ...API_QUERY_LIMITS, ...limits } }, signal)) {
    answers.push(answer);
  }
  return {
    columns: answers.flatMap((answer) => (answer.type === 'columns' ? answer.columns : [])),
    rows: answers.flatMap((answer) => (answer.type === 'rows' ? answer.rows : [])),
    isTruncated: answers.some((answer) => answer.type === 'end' && answer.isTruncated),
  };
}

/** Writes an answer as Parquet, and reads it with another reader than DuckDB. */
async function written(sql: string, limits = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-answer-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const parquetPath = join(folder, "an answer, it's.parquet");
  const files = () => listQueryFiles(dataFolder, traceIds);
  const answers: QueryAnswer[] = [];
  const request = { sql, files, limits: { ...API_QUERY_LIMITS, ...limits }, parquetPath };
  for await (const answer of engine.run(request, forever)) answers.push(answer);
  const file = await asyncBufferFromFile(parquetPath);
  return { answers, rows: await parquetReadObjects({ file }) };
}

async function codeOf(asked: Promise<unknown>): Promise<string | undefined> {
  const error = await asked.catch((reason: unknown) => reason);
  return error instanceof QueryError ? error.code : undefined;
}

/** Asks where no more files can be opened, and says what came of it once the time of the query is over. */
const WITHOUT_FILES = `
import { openSync } from 'node:fs';
import { QueryEngine } from './engine.js';
const after = (delayMs, callback) => ({ cancel: clearTimeout.bind(null, setTimeout(callback, delayMs)) });
const engine = new QueryEngine({ entry: import.meta.url, clock: { after }, stopping: new AbortController().signal });
try { for (;;) openSync('/dev/null'); } catch {}
const limits = { timeoutMs: 100, maxRows: 1, memoryMegabytes: 1 };
const files = async () => ({ runsFolder: '.', parquet: [], summaries: [] });
let reason;
try { for await (const _ of engine.run({ sql: '', files, limits }, new AbortController().signal)); } catch (error) { reason = error; }
setTimeout(() => process.stdout.write(reason.message), 300);
`;

describe('a query in a process of its own', () => {
  it('is refused where no more files can be opened, and nothing is killed for it', async () => {
    const folder = join(await compileSource('query/engine'), 'query');
    onTestFinished(() => rmSync(join(folder, '..'), { recursive: true }));
    writeFileSync(join(folder, 'without-files.js'), WITHOUT_FILES);
    // In a process group of its own, which is what would be killed.
    const command = `ulimit -n 200; exec '${process.execPath}' '${join(folder, 'without-files.js')}' 2>&1`;
    const child = spawn('sh', ['-c', command], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
    let said = '';
    child.stdout.on('data', (text: Buffer) => {
      said += text.toString();
    });
    const [exitCode, signal] = await once(child, 'close');
    expect({ exitCode, signal, said }).toEqual({ exitCode: 0, signal: null, said: expect.stringContaining('EMFILE') });
  });

  it('gives columns with their types, and rows with numbers', async () => {
    const asked = await ask('SELECT outcome, count(*) AS n FROM nodes GROUP BY 1 ORDER BY 1', {}, traceIds.slice(0, 1));
    expect(asked).toEqual({
      columns: [
        { name: 'outcome', type: 'VARCHAR' },
        { name: 'n', type: 'BIGINT' },
      ],
      rows: [
        ['error', 1],
        ['skipped', 4],
        ['success', 16],
      ],
      isTruncated: false,
    });
  });

  it('writes its rows as Parquet, with numbers as numbers', async () => {
    const { answers, rows } = await written(
      'SELECT outcome, count(*) AS n, sum(query_count) AS "a ""sum"" b" FROM nodes GROUP BY 1 ORDER BY 1 LIMIT 2; -- the most',
    );
    expect(answers).toEqual([{ type: 'end', isTruncated: false }]);
    expect(rows.map(({ outcome }) => outcome)).toEqual(['error', 'skipped']);
    for (const row of rows) expect([typeof row.n, typeof row['a "sum" b']]).toEqual(['bigint', 'bigint']);
  });

  it('writes as many rows as it may, and says whether there are more', async () => {
    const two = await written('FROM range(2) t(i)', { maxRows: 2 });
    expect([two.answers, two.rows.length]).toEqual([[{ type: 'end', isTruncated: false }], 2]);
    const three = await written('FROM range(3) t(i)', { maxRows: 2 });
    expect([three.answers, three.rows.length]).toEqual([[{ type: 'end', isTruncated: true }], 2]);
    expect((await written('DESCRIBE nodes')).rows.length).toBeGreaterThan(10);
    expect((await written('SELECT 1 AS a, 2 AS a WHERE false')).rows).toEqual([]);
  });

  it('writes no larger file than it may, and says what Parquet has no type for', async () => {
    const random = 'SELECT uuid() AS id FROM range(10000)';
    expect(await codeOf(written(random, { maxResultBytes: 10_000 }))).toBe('tooLarge');
    await expect(
      written('SELECT 2::HUGEINT ** 100 + i AS huge, sum(i) AS s FROM range(2) t(i) GROUP BY 1'),
    ).resolves.toBeDefined();
    const wide = written('SELECT 170141183460469231731687303715884105727::HUGEINT AS huge');
    await expect(wide).rejects.toThrow(/^Conversion Error: (?!.*LINE).*\n.*cast it, for example to VARCHAR/s);
    expect(await codeOf(wide)).toBe('invalid');
    for (const sql of ["SELECT * FROM read_text('/etc/passwd')", "COPY (SELECT 1) TO '/tmp/x.csv'"]) {
      expect(await codeOf(written(sql)), sql).toBe('refused');
    }
  });

  it('is killed when its time is over, and says what to do', async () => {
    const asked = ask('SELECT count(*) FROM range(1000000000) a, range(1000000) b', { timeoutMs: 700 });
    await expect(asked).rejects.toThrow('longer than 0.7 s; ask for less');
    await expect(codeOf(asked)).resolves.toBe('timeout');
  });

  it('ends when it needs more memory than it may have', async () => {
    const asked = ask('SELECT list(a.range) FROM range(30000000) a, range(20) b', { memoryMegabytes: 100 });
    await expect(asked).rejects.toThrow('more than 100 MB of memory');
  });

  it('gives as many rows as the limit, and says that there are more', async () => {
    const asked = await ask('FROM range(10)', { maxRows: 4 });
    expect([asked.rows.length, asked.isTruncated]).toEqual([4, true]);
  });

  it('ends when its client has gone', async () => {
    const gone = new AbortController();
    const asked = ask('SELECT count(*) FROM range(1000000000) a, range(1000000) b', {}, traceIds, gone.signal);
    gone.abort();
    await expect(codeOf(asked)).resolves.toBe('stopped');
  });

  it('is begun again where a file was removed between listing and reading it', async () => {
    const moving = queryFolder(['build-clean', 'parse'], onTestFinished);
    let count = 0;
    const files = async () => {
      const listed = await listQueryFiles(moving.dataFolder, moving.traceIds);
      if (count === 0) rmSync(join(moving.dataFolder, 'runs', moving.traceIds[1] ?? '', 'telemetry.parquet'));
      count += 1;
      return listed;
    };
    const request = { sql: 'SELECT count(DISTINCT trace_id) FROM records', files, limits: API_QUERY_LIMITS };
    const answers: QueryAnswer[] = [];
    for await (const answer of engine.run(request, forever)) answers.push(answer);
    expect(count).toBe(2);
    expect(answers[1]).toEqual({ type: 'rows', rows: [[1]] });
  });

  it('answers with no rows where no run has a file yet', async () => {
    const asked = await ask('SELECT * FROM nodes', {}, []);
    expect([asked.columns.length, asked.rows]).toEqual([33, []]);
  });

  it('fails alone where a file is damaged', async () => {
    const damaged = queryFolder(['parse'], onTestFinished);
    writeFileSync(join(damaged.dataFolder, 'runs', damaged.traceIds[0] ?? '', 'telemetry.parquet'), 'no parquet');
    const files = () => listQueryFiles(damaged.dataFolder, damaged.traceIds);
    const request = { sql: 'FROM records', files, limits: API_QUERY_LIMITS };
    await expect(codeOf(engine.run(request, forever).next())).resolves.toBe('failed');
  });

  it('is refused where as many wait as may', async () => {
    const gone = new AbortController();
    const slow = () => ask('SELECT count(*) FROM range(1000000000) a, range(1000000) b', {}, traceIds, gone.signal);
    const asked = Array.from({ length: 11 }, slow).map(codeOf);
    await expect(Promise.race(asked)).resolves.toBe('busy');
    gone.abort();
    expect((await Promise.all(asked)).filter((code) => code === 'stopped').length).toBe(10);
  });
});
