import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Statement, Statements } from '../../../../src/export/mapping/shared-mapping.js';
import { REGION, textAt } from '../../../../src/record/arena.js';
import { texts } from '../../../../src/record/texts.js';
import { KnownNames, type RedactionLevel } from '../../../../src/redaction/known-names.js';
import { Redactor } from '../../../../src/redaction/redactor.js';
import { propertyRuns } from '../../../tool/property-runs.js';
import { ADAPTERS, knownText, mutatedStatements, ODD_STATEMENTS, realStatements } from '../../../tool/statements.js';
import { attributesAt } from '../wire/otlp-attributes.js';

const LEVELS: readonly RedactionLevel[] = ['literals', 'statements', 'off'];
const real = realStatements();

/** What a redactor exports of a statement, and what its run learns from it. */
function expected(sql: string, adapter: string, level: RedactionLevel) {
  const names = new KnownNames();
  const redactor = new Redactor(level, names);
  redactor.useAdapter(adapter);
  const { text, sha256, operation, summary, collection } = redactor.sql(sql);
  const about = Object.entries({
    'db.operation.name': operation,
    'db.query.summary': summary,
    'db.collection.name': collection,
  });
  return {
    dialect: redactor.dialectOf(),
    shown: text ?? sha256,
    isHash: text === undefined,
    about: Object.fromEntries(about.filter(([, value]) => value !== undefined)),
    identifiers: [...names.lists().identifiers].sort(),
  };
}

function read({ text, isHash, about, identifiers, dialect }: Statement, level: RedactionLevel) {
  const names = new KnownNames();
  new Redactor(level, names).learnIdentifiers(identifiers);
  return {
    dialect,
    shown: textAt(text.at, text.at + text.length),
    isHash,
    about: attributesAt(about.at, about.at + about.length),
    identifiers: [...names.lists().identifiers].sort(),
  };
}

/** Every statement is asked for twice: what is remembered is what is made. */
function compare(statements: Statements, level: RedactionLevel, sql: string, adapter: string): void {
  const wanted = expected(sql, adapter, level);
  for (let round = 0; round < 2; round++)
    expect(read(statements.of(knownText(sql), wanted.dialect), level)).toEqual(wanted);
}

describe.each(LEVELS)('what is exported of a statement at level %s', (level) => {
  const statements = new Statements(level);

  it('is what the redactor exports, whatever it says and in every dialect', () => {
    const some = [...ODD_STATEMENTS, ...real.filter((_, index) => index % 4 === 0)];
    for (const sql of some) for (const adapter of ADAPTERS) compare(statements, level, sql, adapter);
    fc.assert(
      fc.property(mutatedStatements(real), fc.constantFrom(...ADAPTERS), (sql, adapter) =>
        compare(statements, level, sql.toWellFormed(), adapter),
      ),
      { numRuns: propertyRuns(1200) },
    );
  });

  it('is remembered for as long as the text is', () => {
    const text = () => knownText("select 'kept' from t");
    const sqlDialect = new Redactor(level).dialectOf();
    const first = statements.of(text(), sqlDialect);
    expect(statements.of(text(), sqlDialect)).toBe(first);
    texts.forgetAll();
    compare(statements, level, 'create table another as select 1', 'duckdb');
    expect(statements.of(text(), sqlDialect)).not.toBe(first);
    compare(statements, level, "select 'kept' from t", 'duckdb');
  });

  it('is the same of a text that is too long to be remembered, and of a very long one', () => {
    for (const length of [64 * 1024 + 1, 3 * 1024 * 1024])
      compare(statements, level, `insert into t values ${"('é'), ".repeat(length)}`.slice(0, length), 'duckdb');
  });

  it('is the same where there is no room to keep it', () => {
    texts.forgetAll();
    const sql = "create table t as select 'x' from a.b";
    knownText(sql);
    for (let size = 4 * 1024 * 1024; size > 0; size = Math.floor(size / 2))
      while (texts.keep(REGION.bodies, size) !== undefined);
    compare(statements, level, sql, 'duckdb');
    texts.forgetAll();
    compare(statements, level, sql, 'duckdb');
  });
});
