import { describe, expect, it } from 'vitest';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import { RUN_STATUS } from '../../../src/storage/state-tables.js';
import type { RunFacts } from '../../../src/webhook/event.js';
import { CHAT_MESSAGES, mailMessage, type RunMessage, runMessage } from '../../../src/webhook/messages.js';
import { CHAT_KINDS } from '../../../src/webhook/subscription.js';
import { detailsOfLog, summaryOfLog } from '../../fake/run-details.js';
import { sampleLines } from '../../fake/sample-run.js';
import { casesOf, recordedErrors, traceOfCase } from '../../tool/error-runs.js';
import { loggedLines } from '../export/mapping/read-sample.js';

const lines = {
  /** A case that ends its command, alone. */
  ofError: (name: string) => {
    const found = casesOf('postgres').find((one) => one.name === name);
    if (found === undefined) throw new Error(`there is no case ${name}`);
    return recordedErrors('postgres').filter((line) => line.includes(traceOfCase(found)));
  },
  ofBuild: () => recordedErrors('postgres').filter((line) => line.includes(traceOfCase({ name: 'build' }))),
};

/** Runs that failed, as the engine reported them. */
const RUNS: Readonly<Record<string, () => readonly string[]>> = {
  'build-mixed': () => sampleLines('build-mixed'),
  'fail-fast': () => sampleLines('fail-fast'),
  'test-command': () => sampleLines('test-command'),
  'stale-source': () => sampleLines('stale-source'),
  'preview-120-failed': () => sampleLines('preview-120-failed'),
  'many-errors': lines.ofBuild,
  'undefined-macro': () => lines.ofError('undefined_macro'),
  'big-build': () => sampleLines('big-build'),
};

async function messageOfRun(log: readonly LoggedRecord[]): Promise<RunMessage> {
  const run = summaryOfLog(log);
  const isFailed = run.invocations.some(({ verdict }) => verdict !== 'success');
  const statusMessage = run.invocations.find(({ verdict }) => verdict !== 'success')?.statusMessage ?? null;
  const starts = run.invocations.map((one) => Number(one.startTimeUnixNano / 1_000_000n));
  const ends = run.invocations.map((one) => Number(one.endTimeUnixNano / 1_000_000n));
  const facts: RunFacts = {
    ...{ jobId: 4_001, jobName: 'nightly', runId: 1_001, environmentId: 3_001, environmentName: 'prod' },
    ...{ projectId: 2_001, projectName: 'shop', engineVersion: '2.0.0', statusMessage, reason: 'scheduled' },
    status: isFailed ? RUN_STATUS.error : RUN_STATUS.success,
    ...{ startedUnixMs: Math.min(...starts), finishedUnixMs: Math.max(...ends), erroredUnixMs: null },
  };
  const reader = detailsOfLog(log, { redaction: 'literals', webUrl: 'https://runs.example.com' });
  return runMessage({ eventType: 'job.run.completed', facts }, await reader.read(10_001, 1_001, statusMessage));
}

describe('the message of a real run that failed', () => {
  it.each(Object.keys(RUNS))('%s reads as written in its golden files', async (name) => {
    const message = await messageOfRun(loggedLines(RUNS[name]?.() ?? []));
    const { subject, text } = mailMessage(message);
    const folder = '../../fixture/messages';
    await expect(`Subject: ${subject}\n\n${text}`).toMatchFileSnapshot(`${folder}/${name}.mail.txt`);
    for (const kind of CHAT_KINDS) {
      const json = `${JSON.stringify(CHAT_MESSAGES[kind](message), undefined, 2)}\n`;
      await expect(json).toMatchFileSnapshot(`${folder}/${name}.${kind}.json`);
    }
  });
});
