import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KnownNames } from '../../../../src/exporter/redaction/known-names.js';
import { sanitizeCommand } from '../../../../src/exporter/redaction/sanitize-command.js';
import { sanitizeDiffTable } from '../../../../src/exporter/redaction/sanitize-diff-table.js';
import { firstSafeWords, MAX_PROSE_LENGTH, sanitizeProse } from '../../../../src/exporter/redaction/sanitize-prose.js';

const names = new KnownNames();
names.learn('model.shop.stg_orders');
names.learn('models/marts/orders.sql');
const clean = (text: string) => sanitizeProse(text, names);

describe('a message', () => {
  it.each([
    // PostgreSQL, Snowflake, BigQuery and DuckDB, each with a value in the place where it shows one.
    ['invalid input syntax for type integer: "Ann"', 'invalid input syntax for type integer: "?"'],
    ['Key (email)=(ann@example.com) already exists.', 'Key (?) already exists.'],
    ["Numeric value 'Ann' is not recognized", "Numeric value '?' is not ?"],
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
      'Parser Error: syntax error\n  LINE ?: ?',
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
