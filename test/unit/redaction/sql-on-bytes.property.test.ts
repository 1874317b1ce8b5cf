import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { REGION, textAt } from '../../../src/record/arena.js';
import { MAX_SQL_LENGTH, type SqlDialect, sanitizeSql, sqlDialectOf } from '../../../src/redaction/sanitize-sql.js';
import { SqlOnBytes } from '../../../src/redaction/sql-on-bytes.js';
import { isCommonWord } from '../../../src/redaction/vocabulary.js';
import { currentWords, Words } from '../../../src/redaction/words.js';
import { propertyRuns } from '../../tool/property-runs.js';
import { ADAPTERS, mutatedStatements, ODD_STATEMENTS, putInArena, realStatements } from '../../tool/statements.js';

const sanitizer = new SqlOnBytes();
const real = realStatements();
const TO = REGION.scratch;
const VALUE = REGION.scratch + 1024 * 1024;

/** What is found on bytes; `undefined` where it is left to `sanitizeSql`. @param behind the character behind the statement */
function onBytes(sql: string, dialect: SqlDialect, behind?: string) {
  const words = currentWords();
  if (!sanitizer.sanitize(REGION.bodies, putInArena(sql, behind), dialect, words, TO)) return undefined;
  const { hasOperation, collection, identifiers } = sanitizer;
  return {
    text: textAt(TO, sanitizer.textEnd),
    operation: hasOperation ? textAt(VALUE, sanitizer.putOperation(VALUE)) : undefined,
    summary: hasOperation ? textAt(VALUE, sanitizer.putSummary(VALUE)) : undefined,
    collection: collection === 0 ? undefined : words.textOf(collection),
    identifiers: identifiers.map((word) => words.textOf(word)),
  };
}

/** What `sanitizeSql` finds; identifiers as far as a run learns them. */
function asText(sql: string, dialect: SqlDialect) {
  const { identifiers, ...found } = sanitizeSql(sql, dialect);
  return {
    ...found,
    identifiers: [...identifiers].filter((word) => !isCommonWord(word.toLowerCase()) && word.length <= 300),
  };
}

describe('a statement made safe on bytes', () => {
  it('is what it is as a text, in every dialect, for statements of real runs', () => {
    expect(real.length).toBeGreaterThan(100);
    for (const adapter of ADAPTERS) {
      const dialect = sqlDialectOf(adapter);
      let declined = 0;
      for (const sql of real) {
        const found = onBytes(sql, dialect);
        if (found === undefined) declined += 1;
        else expect(found).toEqual(asText(sql, dialect));
      }
      // Strings between dollars and quotes that do not pair, which `test/fixture/redaction` has on purpose.
      if (adapter === 'duckdb') expect(declined).toBeLessThan(6);
    }
  });

  it.each(ODD_STATEMENTS)('is what it is as a text, or declined: %s', (sql) => {
    const found = ADAPTERS.map((adapter) => ({ adapter, found: onBytes(sql, sqlDialectOf(adapter)) }));
    for (const { adapter, found: one } of found)
      if (one !== undefined) expect(one).toEqual(asText(sql, sqlDialectOf(adapter)));
    const isDeclinable = /\$\$| ü /.test(sql);
    expect(found.some((one) => one.found !== undefined)).toBe(!isDeclinable);
  });

  it('is what it is as a text, or declined, whatever was cut out and put in, and whatever stands behind it', () => {
    const behind = fc.constantFrom("'", '"', '*', '/', '-', '$', '.', '1', 'a', '\n', ']');
    let taken = 0;
    const runs = propertyRuns(12_000);
    fc.assert(
      fc.property(mutatedStatements(real), fc.constantFrom(...ADAPTERS), behind, (sql, adapter, next) => {
        // Half a character is no UTF-8.
        const text = sql.toWellFormed();
        const dialect = sqlDialectOf(adapter);
        const found = onBytes(text, dialect, next);
        if (found === undefined) return;
        taken += 1;
        expect(found).toEqual(asText(text, dialect));
      }),
      { numRuns: runs },
    );
    expect(taken / runs).toBeGreaterThan(0.4);
  });

  it('is declined where it is longer than what is read, and what it is as a text where it is as long', () => {
    const dialect = sqlDialectOf('duckdb');
    const longest = `${'select a, 1 from t '.repeat(MAX_SQL_LENGTH)}`.slice(0, MAX_SQL_LENGTH);
    expect(onBytes(longest, dialect)).toEqual(asText(longest, dialect));
    expect(onBytes(`${longest} `, dialect)).toBeUndefined();
    const name = `select 1 from "${'n'.repeat(MAX_SQL_LENGTH - 25)}__dbt_tmp"`;
    expect(name.length).toBe(MAX_SQL_LENGTH);
    expect(onBytes(name, dialect)).toEqual(asText(name, dialect));
  });

  it('is declined by a table of words that has no room for all of it', () => {
    const words = new Words();
    const sql = `select a from t${' '.repeat(16_000)}`;
    const sanitize = () => sanitizer.sanitize(REGION.bodies, putInArena(sql), sqlDialectOf('duckdb'), words, TO);
    expect(sanitize()).toBe(true);
    for (let index = 0; words.hasRoomFor(sql.length); index++) words.numberOf(`${index}`.padEnd(16_000, 'x'));
    expect(sanitize()).toBe(false);
  });
});
