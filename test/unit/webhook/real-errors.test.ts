import { describe, expect, it } from 'vitest';
import type { RedactionLevel } from '../../../src/redaction/known-names.js';
import type { RunDetails } from '../../../src/webhook/run-details.js';
import { detailsOfLog } from '../../fake/run-details.js';
import { ERROR_MARKERS, type ErrorCase, type ErrorDatabase } from '../../tool/error-cases.js';
import { casesOf, recordedErrors, traceOfCase } from '../../tool/error-runs.js';
import { loggedLines } from '../export/mapping/read-sample.js';

/** As many as a message names of a kind. */
const CASES_OF_A_RUN = 10;

const nodeOf = ({ uniqueId, name }: ErrorCase) => uniqueId ?? `model.shop.${name}`;

/**
 * Stories of runs in which only some of the recorded mistakes were made: a message would not name all of them. The
 * statements of the others stay, as those of nodes that went well would.
 */
async function storiesOf(database: ErrorDatabase, redaction: RedactionLevel) {
  const all = loggedLines(recordedErrors(database));
  const cases = casesOf(database);
  const ofBuild = cases.filter(({ command }) => command === undefined);
  const groups: (readonly ErrorCase[])[] = cases.filter(({ command }) => command !== undefined).map((one) => [one]);
  for (let at = 0; at < ofBuild.length; at += CASES_OF_A_RUN) groups.push(ofBuild.slice(at, at + CASES_OF_A_RUN));
  const stories: { readonly one: ErrorCase; readonly story: RunDetails }[] = [];
  for (const group of groups) {
    const [first] = group;
    if (first === undefined) continue;
    const own = new Set(group.map(nodeOf));
    const others = new Set(ofBuild.map(nodeOf).filter((node) => !own.has(node)));
    const log = all.filter(
      ({ record: { traceId, eventType, attributes } }) =>
        traceId === traceOfCase(first) &&
        (eventType.endsWith('.QueryExecuted') || !others.has(attributes.text('unique_id') ?? '')),
    );
    const story = await detailsOfLog(log, { redaction }).read(10_001, 1_001, null);
    stories.push(...group.map((one) => ({ one, story })));
  }
  return stories;
}

/** What a message says of a case. */
function textsOf(one: ErrorCase, { errors, failedTests, otherErrors }: RunDetails): readonly string[] {
  const nodes = [...errors, ...failedTests].filter(
    ({ uniqueId }) => one.command !== undefined || uniqueId === nodeOf(one),
  );
  return [...nodes.map(({ reason }) => reason), ...(one.command === undefined ? [] : otherErrors)];
}

describe.each(['duckdb', 'postgres'] as const)('errors that the engine reported of %s', (database) => {
  it('show their cause in messages', async () => {
    const stories = await storiesOf(database, 'literals');
    expect(stories.length).toBeGreaterThan(50);
    const hidden = stories.flatMap(({ one, story }) => {
      const wanted = one.shown[database] ?? [];
      const texts = textsOf(one, story);
      return texts.some((text) => wanted.every((part) => text.includes(part)))
        ? []
        : [{ name: one.name, wanted, texts }];
    });
    expect(hidden).toEqual([]);
  });

  it.each(['literals', 'statements'] as const)(
    'show no value of the project in messages at level %s',
    async (level) => {
      const runDetails = (await storiesOf(database, level)).map(({ story }) => story);
      expect(JSON.stringify(runDetails).match(ERROR_MARKERS)).toBeNull();
    },
  );
});

describe('why a run did not end well', () => {
  const log = loggedLines(recordedErrors('duckdb'));
  const message = 'Stopped by fail-fast after model.shop.contract_types failed: 3 nodes canceled';

  it('names the nodes of the run, also where it is said alone', async () => {
    expect(await detailsOfLog(log, { redaction: 'literals' }).statusMessage(10_001, 1_001, message)).toBe(message);
    expect(await detailsOfLog(log, { redaction: 'statements' }).statusMessage(10_001, 1_001, message)).toBe(message);
  });

  it('shows no other word, nor fails where the records cannot be read', async () => {
    const value = "Value 'zqone' of zqtwo is wrong";
    expect(await detailsOfLog(log, { redaction: 'literals' }).statusMessage(10_001, 1_001, value)).toBe(
      "Value '?' of ? is wrong",
    );
    const gone = detailsOfLog(log, { redaction: 'literals', fault: new Error('the log is gone') });
    expect(await gone.statusMessage(10_001, 1_001, message)).toContain('Stopped by fail-fast after model.');
  });
});
