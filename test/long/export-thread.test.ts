import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { checkDestinations } from '../../src/config/otlp-destinations.js';
import { RetryPolicy, systemClock } from '../../src/core/clock.js';
import type { Logger } from '../../src/core/logger.js';
import { type Exports, ExportThread } from '../../src/export/export-thread.js';
import type { ThreadSetup } from '../../src/export/thread-messages.js';
import { exportsContract } from '../contract/exports.contract.js';
import { DirectExports } from '../fake/direct-exports.js';
import { ExportsBench, type OpenExports } from '../fake/exports-bench.js';
import { sampleRecords, sampleTraceId } from '../fake/sample-run.js';
import { compileSource } from '../tool/compiled-source.js';
import { until } from '../tool/until.js';

let compiled = '';
beforeAll(async () => {
  compiled = await compileSource('app/export-thread-main');
});
afterAll(() => rmSync(compiled, { recursive: true }));

const inThread =
  (program = join(compiled, 'app', 'export-thread-main.js')): OpenExports =>
  async (setup, { logger }) => {
    const thread = makeThread(setup, logger, program);
    await thread.open();
    return thread;
  };

/** Not waited for where destinations are known without it. */
const late =
  (program = () => join(compiled, 'app', 'export-thread-main.js')): OpenExports =>
  async (setup, { logger }) => {
    const places = await checkDestinations(setup.configuration, setup.ownHosts);
    const thread = makeThread(setup, logger, program(), places);
    if (places === undefined) await thread.open();
    return thread;
  };

function makeThread(setup: ThreadSetup, logger: Logger, program: string, places?: Exports['destinations']) {
  const retryPolicy = new RetryPolicy({ baseMs: 50, maxMs: 200, maxRetryAfterMs: 200 }, () => 0.5);
  return new ExportThread(setup, { entry: pathToFileURL(program), clock: systemClock, logger, retryPolicy }, places);
}

exportsContract('exports in this thread', (setup, { state, foreign, logger }) =>
  DirectExports.open(setup, { cursors: state.cursors, foreign, logger }),
);
exportsContract('exports in a thread of their own', (...args) => inThread()(...args));

exportsContract('exports in a thread that is not waited for', (...args) => late()(...args));

describe('exports in a thread that comes late', () => {
  const RUN = sampleTraceId('build-mixed');
  const RECORDS = sampleRecords('build-mixed');
  const ENDED = RECORDS.flatMap((record) => (record.recordType === 'SpanEnd' ? [`${RUN} ${record.spanId}`] : []));
  let bench: ExportsBench;
  beforeEach(async () => {
    bench = await ExportsBench.open();
  });
  afterEach(() => bench.close());

  const untilDone = () =>
    until('the end of the run', async () => (await bench.state.cursors.listPending('jaeger')).length === 0);
  const missing = () => ENDED.filter((id) => !bench.receiver.spanIds.includes(id));

  /** The thread's program behind code of a test. */
  const programAfter = (code: string) => () => {
    const path = join(compiled, 'app', 'late.mjs');
    writeFileSync(path, `${code}\nawait import('./export-thread-main.js');\n`);
    return path;
  };

  it('send a run that came and ended before the thread was there', async () => {
    const gate = join(bench.folder, 'gate');
    const waiting = `import { existsSync } from 'node:fs';
      while (!existsSync(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 10));`;
    const exports = await bench.start(late(programAfter(waiting)));
    expect(exports.statuses()).toEqual([]);
    await bench.append(RUN, RECORDS);
    await bench.finish(RUN);
    writeFileSync(gate, '');
    await untilDone();
    expect(missing()).toEqual([]);
  });

  it('try again where the thread cannot be started, say so, and lose nothing', async () => {
    const failing = `import { existsSync, writeFileSync } from 'node:fs';
      for (const number of [1, 2]) {
        const path = ${JSON.stringify(join(bench.folder, 'failure'))} + number;
        if (existsSync(path)) continue;
        writeFileSync(path, '');
        throw new Error('failure ' + number);
      }`;
    await bench.start(late(programAfter(failing)));
    await bench.append(RUN, RECORDS);
    await bench.finish(RUN);
    await untilDone();
    expect(missing()).toEqual([]);
    const errors = bench.logger.lines.filter(({ level }) => level === 'error');
    expect(errors.map(({ fields }) => fields.error)).toEqual(['failure 1', 'failure 2']);
  });

  it('end in good order where the thread never came', async () => {
    const exports = await bench.start(late(programAfter("throw new Error('no luck');")));
    await bench.append(RUN, RECORDS);
    expect(await exports.flush(AbortSignal.timeout(50))).toBe(false);
    await bench.stop(exports);
  });
});

/** An exporter that takes its thread down with the first spans it gets, again and again until it has done so often enough. */
const MURDEROUS = (deaths: number, how: string) => `
import { existsSync, writeFileSync, appendFileSync } from 'node:fs';
const folder = new URL('.', import.meta.url);
let number = 1;
while (existsSync(new URL('death-' + number, folder))) number += 1;
export default {
  export(spans, done) {
    if (number <= ${deaths}) {
      writeFileSync(new URL('death-' + number, folder), '');
      ${how};
      return;
    }
    for (const span of spans) appendFileSync(new URL('spans', folder), span.spanContext().spanId + '\\n');
    done({ code: 0 });
  },
  async shutdown() {},
};`;

describe('an export thread that dies', () => {
  const RUN = sampleTraceId('build-mixed');
  const RECORDS = sampleRecords('build-mixed');
  let bench: ExportsBench;
  beforeEach(async () => {
    bench = await ExportsBench.open();
  });
  afterEach(() => bench.close());

  const deathLines = () => bench.logger.lines.filter((line) => line.message.includes('ended unexpectedly'));

  it.each([
    ['by itself', 'process.exit(3)', 'it ended by itself with code 3'],
    ['of a fault', "setTimeout(() => { throw new Error('no luck today'); })", 'no luck today'],
    ['of its memory', 'const all = []; for (;;) all.push(new Array(1000).fill(spans.length))', 'memory'],
  ])('%s is started anew, and nothing is lost', async (_, how, reason) => {
    writeFileSync(join(bench.folder, 'murderous.mjs'), MURDEROUS(2, how));
    const exports = await bench.start(
      inThread(),
      `{ jaeger: { endpoint: ${bench.receiver.url} }, mine: { exporter: ./murderous.mjs } }`,
    );
    for (let from = 0; from < RECORDS.length; from += 50) {
      await bench.append(RUN, RECORDS.slice(from, from + 50));
    }
    await until('two deaths', () => deathLines().length === 2);
    await bench.finish(RUN);
    for (const name of ['jaeger', 'mine']) {
      await until(
        `the end of the run at ${name}`,
        async () => (await bench.state.cursors.listPending(name)).length === 0,
      );
    }
    const ended = RECORDS.flatMap((record) => (record.recordType === 'SpanEnd' ? [`${RUN} ${record.spanId}`] : []));
    expect(ended.filter((id) => !bench.receiver.spanIds.includes(id))).toEqual([]);
    expect(String(deathLines()[0]?.fields.error)).toContain(reason);
    expect(await exports.flush(AbortSignal.timeout(10_000))).toBe(true);
    expect(bench.logger.lines.filter((line) => line.message.includes('is running again'))).toHaveLength(2);
  });
});
