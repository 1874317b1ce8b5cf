import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KnownNames } from '../../../src/redaction/known-names.js';
import { sanitizeCommand } from '../../../src/redaction/redactor.js';
import {
  firstSafeWords,
  MAX_PROSE_LENGTH,
  sanitizeDiffTable,
  sanitizeProse,
  sanitizeUnknownText,
} from '../../../src/redaction/sanitize-prose.js';

const names = new KnownNames();
names.learn('model.shop.stg_orders');
names.learn('models/marts/orders.sql');
const clean = (text: string) => sanitizeProse(text, names);

describe('a message', () => {
  it.each([
    // PostgreSQL, Snowflake, BigQuery and DuckDB, each with a value in the place where it shows one.
    ['invalid input syntax for type integer: "Ann"', 'invalid input syntax for type integer: "?"'],
    ['Key (email)=(ann@example.com) already exists.', 'Key (email)=(?) already exists.'],
    ["Numeric value 'Ann' is not recognized", "Numeric value '?' is not recognized"],
    ['Could not cast literal "Ann" to type INT64 at [3:14]', 'Could not cast literal "?" to type INT64 at [?]'],
    ["Could not convert string 'it's Ann' to INT32", "Could not convert string '?'s ?' to INT32"],
    ["Could not convert string 'open' to INT32", "Could not convert string '?' to INT32"],
    ["macro 'stg_orders' doesn't exist in \"orders\"", "macro 'stg_orders' doesn't exist in \"orders\""],
    ['Duplicate key "id: 1" violates unique constraint.', 'Duplicate key "?" violates unique constraint.'],
    ['Referenced column "amount" not found', 'Referenced column "amount" not found'],
    ['Candidate bindings: "status", "amount"', 'Candidate bindings: "status", "amount"'],
    ['in model stg_orders (models/marts/orders.sql:12:3)', 'in model stg_orders (models/marts/orders.sql:12:3)'],
    ['3 nodes errored', '3 nodes errored'],
    ['Interrupted: 2 nodes canceled', 'Interrupted: 2 nodes canceled'],
    ['Interrupted: no node was running', 'Interrupted: no node was running'],
    ['Interrupted: 1 node canceled, 3 not finished', 'Interrupted: 1 node canceled, 3 not finished'],
    [
      'Stopped by fail-fast after model.shop.stg_orders failed: 1 node canceled',
      'Stopped by fail-fast after model.shop.stg_orders failed: 1 node canceled',
    ],
    [
      'Stopped by fail-fast after model.shop.Ann failed: 12 nodes canceled',
      'Stopped by fail-fast after model.shop.? failed: 12 nodes canceled',
    ],
    [
      'The process ended without the end of its invocation span: 3 error messages',
      'The process ended without the end of its invocation span: 3 error messages',
    ],
    [
      'No end was seen: the engine was killed, or its last telemetry was lost',
      'No end was seen: the engine was killed, or its last telemetry was lost',
    ],
    ['The process ended before any command began', 'The process ended before any command began'],
    ['got 42 rows', 'got ? rows'],
    ['Python models are not supported for duckdb adapter', 'Python models are not supported for duckdb adapter'],
    ["Failed to eval the compiled Jinja expression 'Ann'", "Failed to eval the compiled Jinja expression '?'"],
    ['naïve Ünïcode 名前', '?'],
  ])('keeps its words and loses its values: %s', (text, expected) => {
    expect(clean(text)).toBe(expected);
  });

  it('loses the excerpt of the statement, which may be cut in the middle of a value', () => {
    expect(clean("Parser Error: syntax error\nLINE 3: ...nn' as name, 'Bob' as...\n            ^")).toBe(
      'Parser Error: syntax error\nLINE 3: ?',
    );
  });

  it.each([
    [
      // The statement that libpq repeats in front of the error.
      `NotFound: [libpq] Failed to execute query '/* {"app": "dbt"} */\nselect 'Ann': ERROR:  division by zero' from t': ERROR:  relation "orders_x" does not exist\n`,
      'NotFound: ERROR:  relation "orders_x" does not exist',
    ],
    [
      'Failed to prepare query: ERROR:  column "no_such" does not exist\nLINE 2: select no_such\n               ^\n\nQuery was: select no_such,\n \'Ann\' (SQLSTATE: 42703)\n(in models/marts/new.sql:1:15)\n  --> models/marts/new.sql:1:15',
      'ERROR:  column "no_such" does not exist\nLINE 2: select no_such\n (SQLSTATE: 42703)\n(in models/marts/new.sql:1:15)\n  --> models/marts/new.sql:1:15',
    ],
    ["[libpq] Failed to execute query 'select 'Ann' from", "Failed to execute query '?'"],
    ['ERROR:  could not create unique index "p_dup_pkey"', 'ERROR:  could not create unique index "p_dup_pkey"'],
    [
      'Catalog Error: Table with name orders_x does not exist!',
      'Catalog Error: Table with name orders_x does not exist!',
    ],
    ["Could not convert string 'Table with name Ann does not exist' to INT32", "Could not convert string '?' to INT32"],
    ['LINE 3: select no_such_column', 'LINE 3: select no_such_column'],
    [
      "LINE 3: select no_such_column from t where s = 'An...\n               ^",
      'LINE 3: select no_such_column from t where s = ?',
    ],
    ["LINE 3: ...n''s cat', no_such_column from t\n                      ^", 'LINE 3: ?'],
    ['Failing row contains (1, open, Ann).', 'Failing row contains (?).'],
  ])('shows the cause of an error without the statement: %j', (text, expected) => {
    expect(clean(text)).toBe(expected);
  });

  it('shows no value of the statement in an excerpt, wherever its line begins and is cut', () => {
    const outside = fc.constantFrom('select', 'no_such', ',', '(', '"Col"', '"it\'s"', ' ', '\n', '=', '::', '...');
    const value = fc.constantFrom(
      "'zqsecret'",
      "'zq''secret'",
      "'zqsecret\nzqsecret, x '",
      "'say \"zqsecret'",
      "'it''s zqsecret \n zqsecret'",
      '/* zqsecret\n zqsecret */',
      "/* zqsecret ' \n zqsecret */",
      '-- zqsecret\n',
      "-- it's zqsecret\n",
      '$$zqsecret\nzqsecret$$',
      "E'zq\\'secret\nzqsecret'",
    );
    const statement = fc.array(fc.tuple(fc.oneof(outside, value), fc.boolean()), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(statement, fc.nat(), fc.nat(30), fc.nat(30), (parts, pick, before, after) => {
        const sql = parts.map(([part, hasBlank]) => part + (hasBlank ? ' ' : '')).join('');
        // What is wrong is what a token begins with.
        const starts = parts.map(
          (_, index) =>
            parts
              .slice(0, index)
              .map(([part, has]) => part + (has ? ' ' : ''))
              .join('').length,
        );
        const at = starts[pick % starts.length] ?? 0;
        const lineStart = sql.lastIndexOf('\n', at - 1) + 1;
        const end = sql.indexOf('\n', at);
        const from = Math.max(lineStart, at - before);
        const to = Math.min(end === -1 ? sql.length : end, at + after);
        const cut = from > lineStart ? '...' : '';
        const line = `LINE 2: ${cut}${sql.slice(from, to)}${to < (end === -1 ? sql.length : end) ? '...' : ''}`;
        const caret = `${' '.repeat(8 + cut.length + at - from)}^`;
        if (sql.slice(from, at).includes('zqsecr') && !/zqsecret/.test(sql.slice(from, at))) return;
        expect(clean(`${line}\n${caret}`)).not.toContain('zqsecret');
      }),
      { numRuns: 2_000 },
    );
  });

  it('loses stack frames', () => {
    expect(clean('error\n   0: <unknown>\n   1: start\n             at ./nptl/x.c:442:8')).toBe('error');
  });

  it('is cut off when it is very long', () => {
    expect(clean('error '.repeat(MAX_PROSE_LENGTH)).length).toBeLessThanOrEqual(MAX_PROSE_LENGTH + 1);
  });

  it('never shows a word that is neither common nor a name, whatever stands around it', () => {
    const piece = fc.constantFrom(
      "'",
      '"',
      ' ',
      '\n',
      'error',
      'column ',
      'LINE 3: ',
      '--',
      '$',
      '\\',
      '(',
      '.',
      ':',
      '1',
      'table "',
      'sql:',
      '_',
      'é',
    );
    fc.assert(
      fc.property(fc.array(piece), fc.array(piece), (before, after) => {
        const text = `${before.join('')} 'zqsecret1' ${after.join('')} zqsecret2`;
        for (const shown of [clean(text), firstSafeWords(text, names), sanitizeDiffTable(text, names)]) {
          expect(shown).not.toMatch(/zqsecret/);
        }
      }),
    );
  });

  it('is reduced to its first safe words where no SQL may be shown', () => {
    expect(firstSafeWords("Conversion Error: Could not convert string 'Ann' to INT32", names)).toBe(
      'Conversion Error: Could not convert string',
    );
    expect(firstSafeWords('Ann failed', names)).toBe('?');
  });
});

describe('a command line', () => {
  it.each([
    [
      '/usr/bin/dbt build --select stg_orders+ tag:x --target prod',
      'dbt build --select stg_orders+ tag:x --target prod',
    ],
    ["dbt show --inline select 'Ann' -- why --limit 5", 'dbt show --inline ?'],
    ['dbt run --vars {key: Ann, --select: x}', 'dbt run --vars ?'],
    ['dbt run --vars={key:Ann} --select x', 'dbt run --vars ?'],
    ['dbt run-operation my_op --args {x: 1}', 'dbt run-operation my_op --args ?'],
    ['dbt build --unknown-flag Ann Bob --fail-fast', 'dbt build --unknown-flag ? --fail-fast'],
    ['dbt build -- Ann', 'dbt build ?'],
    ["dbt build --select 'Ann'", 'dbt build --select ?'],
  ])('shows names but no free values: %s', (command, expected) => {
    expect(sanitizeCommand(command)).toBe(expected);
  });
});

describe("a unit test's differences", () => {
  it('keep the names of their columns', () => {
    const table = '+----+------+\n| id | name |\n+----+------+\n| 1  | a -> b |\n+----+------+\n1 row(s) differ.';
    expect(sanitizeDiffTable(table, names)).toBe('id | name\n1 differing row(s), values redacted');
  });

  it('are prose where they are drawn otherwise', () => {
    expect(sanitizeDiffTable('expected Ann\ngot Bob', names)).toBe('expected ?\ngot ?');
  });
});

describe('a text of which nothing is known', () => {
  const part = fc.constantFrom(
    ...['the gizmo', "doesn't spin", '(', ',', ':', '=', '\n', '--', '[3]', '{"a": 1}', '\u2019', '$', '$$', '#', '\\'],
    ...["'zqsecret'", '"zqsecret"', "'it''s zqsecret'", '"say \'zqsecret\'"', "E'zq\\'secret'", "'zqsecret\nzqsecret'"],
    ...['/* zqsecret */', '-- zqsecret\n', '$$zqsecret$$', 'zqsecret@example.com', 'zqsecret7', "N'zqsecret'"],
  );

  it('shows nothing of its literals, comments, codes and addresses, whatever stands between them', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 10 }), fc.constantFrom('', ' '), (parts, between) => {
        expect(sanitizeUnknownText(parts.join(between), names)).not.toContain('secret');
      }),
      { numRuns: 2_000 },
    );
  });
});
