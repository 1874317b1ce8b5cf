import { readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RecordLogFiles } from '../../../src/log/record-log-files.js';
import { FIRST_ACCOUNT_ID } from '../../../src/storage/account-store.js';
import { PageServer } from '../../fake/page-server.js';

let pages: PageServer;
let admin: string;
let reader: string;
beforeAll(async () => {
  // The last one is under way, up to its seventh node.
  pages = await PageServer.open(['build-mixed', 'build-mixed-fusion'], null, true);
  const { dataFolder, traceIds, server, measuring } = pages.api;
  const [measured, traceId] = traceIds;
  if (measured === undefined || traceId === undefined) throw new Error('no run');
  const summary = readFileSync(join(dataFolder, 'runs', measured, 'run.json'), 'utf8');
  const row = { firstSeenUnixMs: 1_000, lastSeenUnixMs: 2_000, logBytes: 7, parquetBytes: 7 };
  await server.state.runs.save([{ ...row, traceId: measured, state: 'finished', summary }]);
  await measuring.measures.ofSteps(await measuring.catalog.stepsOf(FIRST_ACCOUNT_ID, [1001]));
  let doneCount = 0;
  for await (const chunk of new RecordLogFiles(dataFolder, () => {}).read(traceId, { fromOffset: 0 })) {
    for (const { record, endOffset } of chunk) {
      const isNode = record.recordType === 'SpanEnd' && record.eventType.endsWith('.NodeProcessed');
      if (!isNode || ++doneCount !== 7) continue;
      truncateSync(join(dataFolder, 'runs', traceId, 'telemetry.jsonl'), endOffset);
      // 41 s later.
      server.clock.advance(Number(record.endTimeUnixNano / 1_000_000n) + 41_000 - server.clock.nowUnixMs());
      admin = await server.token('admin');
      reader = await server.token('read_only');
      return;
    }
  }
});
afterAll(() => pages.close());

/** The text of a page, or of one of its elements. */
const textOf = (html: string) =>
  html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();

it('says on the page of a run how far it has come, what runs and since when, and not how it ended', async () => {
  const { html } = await pages.get('/runs/1002', admin);
  const box = /<section class="outcome live"[\s\S]*?<\/section>/.exec(html)?.[0] ?? '';
  expect(textOf(box)).toMatch(
    /^7 of 21 nodes .*· about \d+ (?:s|min) left · usually 2 s in all Phase: run for 4\d s \(usually \d s\) .* for 4\d s \(usually \d s\)/,
  );
  expect(box).toMatch(/<ul class="running-now" aria-label="Running now">.*?<a href="\/runs\/1002\/nodes\?node=/);
  expect(box).toContain('aria-label="7 of 21 nodes: ');
  expect(html).not.toContain('How it ended');
  // The bar fills up: what is done is a third of it.
  const widths = Array.from(box.matchAll(/<rect [^>]*width="([\d.]+)"/g), ([, width]) => Number(width));
  expect(widths.reduce((sum, width) => sum + width)).toBeLessThan(450);
  expect((await pages.get('/runs/1001', admin)).html).toContain('How it ended');
});

it.each(['/', '/jobs/4001'])('says it in a line in the row of %s', async (path) => {
  const { html } = await pages.get(path, admin);
  const row = /<tr id="run-1002">[\s\S]*?<\/tr>/.exec(html)?.[0] ?? '';
  expect(textOf(row)).toMatch(
    /7 of 21 nodes, (?:\d failed, )?running \w+ for 4\d s \(usually \d s\).*, about \d+ (?:s|min) left/,
  );
  expect(row).toContain('<svg class="counts filling"');
  expect(/<tr id="run-1001">[\s\S]*?<\/tr>/.exec(html)?.[0]).not.toContain('live-line');
});

it('offers to cancel no run whose telemetry comes straight from the engine', async () => {
  for (const path of ['/', '/jobs/4001', '/runs/1002']) {
    expect((await pages.get(path, admin)).html, path).not.toContain('/cancel');
  }
});

it('offers to cancel a run that is queued here, to those who may', async () => {
  const { state } = pages.api.server;
  const step = {
    ...{ stepId: 'waiting', runKey: 'between', job: 'nightly', environment: null, project: null, reason: null },
    ...{ command: ['dbt', 'build'], isLast: false, startedUnixMs: 1_900_000_000_000 },
  };
  const { runId } = await state.executions.register(step, 'local');
  const form = `action="/runs/${runId}/cancel"`;
  for (const path of ['/', '/jobs/4001', `/runs/${runId}`]) {
    expect((await pages.get(path, admin)).html, path).toContain(form);
    expect((await pages.get(path, reader)).html, path).not.toContain(form);
  }
  expect((await pages.post(`/runs/${runId}/cancel`, admin)).status).toBe(303);
  const { html } = await pages.get(`/runs/${runId}`, admin);
  expect(html).toContain('It is being canceled.');
  expect(html).not.toContain(form);
});
