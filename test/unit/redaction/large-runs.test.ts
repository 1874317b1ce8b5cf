import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LARGE_SAMPLES, largeSampleFolder } from '../../tool/large-samples.js';
import { mapLines } from '../export/mapping/mapped-bytes.js';

/** Models of both runs whose statements name a column that is not there. */
const BROKEN_MODELS = ['mart_43', 'mart_118'];
const FAILED_TESTS = 20;

describe.each(LARGE_SAMPLES)('of the large run %s', (name) => {
  const log = readFileSync(join(largeSampleFolder(name), 'otel.jsonl'));
  const exported = mapLines(log).join('\n');

  it('no quoted literal of its statements is exported', () => {
    const literals = literalsIn(log);
    expect(literals.length).toBeGreaterThan(150);
    // What is one word may be a model's name as well, or an ordinary word; in quotes it may not stand.
    expect(literals.filter((literal) => exported.includes(`'${literal}'`))).toEqual([]);
    const values = literals.filter((literal) => /\s|^[\d-]+$|\//.test(literal));
    expect(values.length).toBeGreaterThan(130);
    expect(values.filter((value) => exported.includes(value))).toEqual([]);
  });

  it('the causes of its failures are', () => {
    const missing = 'Binder Error: Referenced column "no_such_column" not found in FROM clause!';
    const shown = [
      `Internal: ${missing} Candidate bindings: "ordered_on"`,
      ...BROKEN_MODELS.map(
        (model) => `Database Error in model ${model} (target/run/retail/models/marts/${model}.sql)\n  ${missing}\n`,
      ),
      'LINE 11: select id, sum(no_such_column) as amount, max(status) as status',
      '12 nodes errored',
    ];
    expect(shown.filter((cause) => !exported.includes(cause))).toEqual([]);
    expect(exported.split('test failed: 1 failing row').length - 1).toBeGreaterThanOrEqual(FAILED_TESTS);
  });
});

/** What stands in single quotes in its statements, by a reading of its own; these have no quotes in quotes. */
function literalsIn(log: Buffer): readonly string[] {
  const literals = new Set<string>();
  const statements = new Set(log.toString().match(/"sql":"(?:[^"\\]|\\.)*"/g));
  for (const statement of statements)
    for (const [, literal = ''] of statement.matchAll(/'([^'\\]+)'/g)) if (/\w/.test(literal)) literals.add(literal);
  return [...literals];
}
