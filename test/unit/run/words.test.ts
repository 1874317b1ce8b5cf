import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { CommandReport } from '../../../src/report/content.js';
import { junitReport } from '../../../src/report/junit.js';
import { textReport } from '../../../src/report/text.js';
import { NODE_VERDICTS } from '../../../src/run/verdict.js';
import { COMMAND_WORDS, countsText, NO_OP_WORDS, NODE_WORDS, nodeWord, RUN_WORDS } from '../../../src/run/words.js';
import { runMessage } from '../../../src/webhook/messages.js';
import { traceIdOf } from '../../fake/memory-record-log.js';
import { QUIET } from '../../fake/run-details.js';
import { sampleMeasures } from './measures/sample-measures.js';

const WORDS = [
  ...Object.values(RUN_WORDS),
  ...Object.values(COMMAND_WORDS),
  ...Object.values(NODE_WORDS).map(([one]) => one),
  NO_OP_WORDS[0],
];
const SETTING = { columns: null, hasColor: false, projectPath: '', version: '' };

async function reportOf(sample: string): Promise<CommandReport> {
  return { command: await sampleMeasures(sample), traceId: traceIdOf(1), commandCount: 1, comparison: null };
}

describe('the words for outcomes', () => {
  it('stand in a table of the docs, each once and with what it says', () => {
    const docs = readFileSync('docs/reference/measures.md', 'utf8');
    const [, table = ''] = /makes: words -->\n([\s\S]*?)<!-- end -->/.exec(docs) ?? [];
    const rows = table
      .trim()
      .split('\n')
      .slice(2)
      .map((row) => row.split('|').map((cell) => cell.trim()));
    expect(rows.map(([, word]) => word).sort()).toEqual([...new Set(WORDS)].sort());
    for (const [, word, what] of rows) expect(what, word).toMatch(/\w+ \w+/);
  });

  it('are there for every verdict, and an outcome that is not known has the word of the engine', () => {
    expect(Object.keys(NODE_WORDS).sort()).toEqual([...NODE_VERDICTS].sort());
    expect(nodeWord('deferred')).toBe('deferred');
    expect(countsText({ ...QUIET.counts, error: 2, skipped: 3, success: 1_129, deferred: 1 }, 1)).toBe(
      '2 errors, 2 skipped, 1,129 success, 1 no-op, 1 deferred',
    );
  });

  it.each(['build-mixed', 'build-clean', 'interrupted', 'fail-fast'])(
    'are the same in a report and in a message about %s',
    async (sample) => {
      const report = await reportOf(sample);
      const { nodeCounts: counts, noOpCount } = report.command.totals;
      const words = countsText(counts, noOpCount);
      expect(textReport([report], SETTING)).toContain(`\nnodes: ${words}\n`);
      const facts = {
        ...{ runId: 1, jobName: 'nightly', environmentName: 'default', projectName: 'shop', reason: null, status: 20 },
        ...{ startedUnixMs: 0, finishedUnixMs: 1_000 },
      } as unknown as Parameters<typeof runMessage>[0]['facts'];
      const message = runMessage({ eventType: 'job.run.errored', facts }, { ...QUIET, counts, noOpCount });
      expect(message.facts).toContainEqual(['Nodes', words]);
    },
  );

  it('are those of JUnit, too', async () => {
    expect(junitReport([await reportOf('interrupted')])).toContain(`<skipped message="${nodeWord('canceled')}"`);
  });
});
