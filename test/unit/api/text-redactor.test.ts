import { expect, test } from 'vitest';
import type { Caller } from '../../../src/api/caller.js';
import { may, PERMISSIONS, textRedactor } from '../../../src/api/permissions.js';

const MESSAGE = "Conversion Error: Could not convert string 'Ann' to INT32";
const COMMAND = 'dbt build --vars {name: Ann}';
const sets = Object.keys(PERMISSIONS) as Caller['permission'][];

test.each(sets)('%s sees texts whole if, and only if, it may read artifacts', (permission) => {
  const redactor = textRedactor({ permission }, 'literals');
  const isWhole = may({ permission }, 'artifacts:read');
  expect(redactor.text(MESSAGE)).toBe(isWhole ? MESSAGE : "Conversion Error: Could not convert string '?' to INT32");
  expect(redactor.command(COMMAND)).toBe(isWhole ? COMMAND : 'dbt build --vars ?');
});

test('who may not read artifacts sees what the setting says', () => {
  const shown = (['off', 'statements'] as const).map((level) =>
    textRedactor({ permission: 'webhooks_only' }, level).text(MESSAGE),
  );
  expect(shown).toEqual([MESSAGE, 'Conversion Error: Could not convert string']);
});
