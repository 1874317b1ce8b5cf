import { expect, it } from 'vitest';
import { withCauseFirst, withoutStatement } from '../../../../src/record/error-statement.js';
import { causeFirst, readableLines } from '../../../../src/run/measures/troubles.js';

const STATEMENT = `/* {"app": "dbt"} */\n  create table x as (\n${'    select 1 as one union all\n'.repeat(300)})`;

it('the cause of an error stands before the statement that the driver repeats, however long that is', () => {
  const text = `Database Error in model out_of_range (target/run/x.sql)\n  [libpq] Failed to execute query '${STATEMENT}': ERROR:  smallint out of range\n  \n  (in run/x.sql:1:4)`;
  const shown = withCauseFirst(text);
  expect(readableLines(shown)).toEqual(['smallint out of range']);
  expect(causeFirst(shown).slice(0, 30)).toMatch(/^smallint out of range/);
});

it('what cannot be told from the statement is its last part, and nothing where it may not be shown', () => {
  const text = `[libpq] Failed to execute query '${STATEMENT}': server closed the connection unexpectedly`;
  expect(withCauseFirst(text)).toBe("Failed to execute query '…': server closed the connection unexpectedly");
  expect(withoutStatement(text)).toBe("Failed to execute query '?'");
});

it('an error with its cause first keeps all else behind it', () => {
  const text =
    'Database Error in model a (target/run/a.sql)\n  Binder Error: no b\n  LINE 3: select b\n  --> models/a.sql:3:1';
  expect(causeFirst(text)).toBe('Binder Error: no b\n  LINE 3: select b\n  --> models/a.sql:3:1');
});
