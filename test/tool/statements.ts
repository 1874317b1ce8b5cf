import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { putText, REGION, view } from '../../src/record/arena.js';
import { type KnownText, texts } from '../../src/record/texts.js';

/** An adapter of each dialect, and one that nobody knows. */
export const ADAPTERS = [
  'duckdb',
  'redshift',
  'snowflake',
  'clickhouse',
  'bigquery',
  'databricks',
  'mysql',
  'sqlserver',
  'unheard_of',
] as const;

/** Statements that have what real ones seldom have. */
export const ODD_STATEMENTS: readonly string[] = [
  "select 'it''s', 1.5e-3, .5, 0x1F, x'00', E'a\\'b', $1, $$a$$, $t$ b $t$, N'n', date '2020-01-01', U&'x' from a.b.c -- end",
  "select N'n', 1e+5, 0x1e-5, 1.e5, date '2020-01-01', U&'x', b'1' && E'a\\'b' from a.b.c -- end",
  'with x as (select * from "My ""Table"""), y(a) as (select 1) select extract(day from d), trim(both from s) from x join y using (id), lateral f(1)',
  'create or replace transient table "db"."s"."orders__dbt_tmp" as (select `a`, [b], "c" from orders__dbt_backup2 where a in (1, 2, \'x\',  3) /* c /* n */ */)',
  "insert into s.t (a, b) values (1, 'a'), (2, 'b')\n\n delete from t where x = '\\\\' and y = \"q\" # hash",
  'select 1 from a join b using (i) join c using (i) join d using (i) join e.e2 using (i) join "f" using (i) join a using (i)',
  `select 1 from a join ${'a_rather_long_name_of_a_relation_'.repeat(9)} using (i)`,
  'merge into tgt using src on tgt.id = src.id when matched then update set a = 1; truncate orders',
  'drop table if exists only.s cascade',
  "copy t from 's3://x' credentials 'k'",
  'SELECT \'\'\'triple\'\'\', """t"""',
  'select 1 -- no\r\n , 2',
  'alter table only a.b rename to c',
  'select \'ä\', "ö", ü /* ß */ from t',
  "select 'ä' /* ß 中 */ from t",
  'with a as (select 1), b as (select 2) insert into t select * from a, b join a on extract(day from b.x) > 1',
  'show tables',
  'start transaction',
  'refresh materialized view v',
  'explain',
  "'no verb' from t",
  'delete from a.t__dbt_tmp where exists (select 1 from a.t__dbt_tmp20240101)',
  '',
  ' \n-- only a comment',
];

/** The statements of the engine's runs in `test/fixture`, each once. */
export function realStatements(): readonly string[] {
  const statements = new Set<string>();
  const samples = 'test/fixture/samples';
  for (const run of readdirSync(samples)) if (run !== 'README.md') addStatements(join(samples, run), statements);
  addStatements('test/fixture/redaction', statements);
  return [...statements];
}

function addStatements(folder: string, statements: Set<string>): void {
  for (const line of readFileSync(join(folder, 'otel.jsonl'), 'utf8').split('\n')) {
    if (!line.includes('"sql":')) continue;
    const { sql } = JSON.parse(line).attributes;
    if (typeof sql === 'string') statements.add(sql);
  }
}

const PIECES =
  "' '' ''' \" \"\" \"\"\" ` [ ] \\ $ $$ $a$ -- /* */ # , ( ) . 1 1e- 0x E' r' N\" & é 中 \u00a0 \u2028 \u0085 \0 😀 \ud83d ; ? ?, x__dbt_tmp 'a', \u017felect union"
    .split(' ')
    .concat([
      ' ',
      '  ',
      '\n',
      '\r\n',
      '\t',
      '\f',
      'from ',
      ' into ',
      ' as ',
      'TABLE ',
      'delete ',
      'extract(',
      'with ',
      ', 2',
    ]);
const MAX_LENGTH = 3000;

/** Statements that were cut, and had parts put in and taken out. */
export function mutatedStatements(statements: readonly string[]): fc.Arbitrary<string> {
  const edit = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    skip: fc.oneof(fc.constant(0), fc.nat(6), fc.constant(Number.POSITIVE_INFINITY)),
    piece: fc.oneof(fc.constant(''), fc.constantFrom(...PIECES), fc.constantFrom(...statements)),
    pieceFrom: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const base = fc.oneof(fc.constantFrom(...ODD_STATEMENTS), fc.constantFrom(...statements));
  return fc.tuple(base, fc.array(edit, { minLength: 1, maxLength: 4 })).map(([sql, edits]) => {
    let text = sql.slice(0, MAX_LENGTH);
    for (const { at, skip, piece, pieceFrom } of edits) {
      const place = Math.floor(at * text.length);
      const from = piece.length > 10 ? Math.floor(pieceFrom * piece.length) : 0;
      text = text.slice(0, place) + piece.slice(from, from + 60) + text.slice(place + skip);
    }
    return text;
  });
}

/** Puts a text into the arena. @param behind a character that is not of it @returns the place behind the text */
export function putInArena(text: string, behind = "'"): number {
  const end = putText(REGION.bodies, text);
  view.setUint8(end, behind.charCodeAt(0));
  return end;
}

/** The text as one that came. */
export function knownText(text: string): KnownText {
  return texts.find(REGION.bodies, putInArena(text));
}
