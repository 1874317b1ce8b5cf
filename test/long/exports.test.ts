import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createKafkaProducer } from '../../src/cluster/feature.js';
import { checkDestinations } from '../../src/config/otlp-destinations.js';
import { systemClock } from '../../src/core/clock.js';
import { Exports } from '../../src/export/exports.js';
import type { CursorStore } from '../../src/storage/cursor-store.js';
import { exportsContract } from '../contract/exports.contract.js';
import { ExportsBench, type OpenExports } from '../fake/exports-bench.js';
import { OtlpReceiver } from '../fake/otlp-receiver.js';
import { sampleRecords, sampleTraceId } from '../fake/sample-run.js';
import { compileSource } from '../tool/compiled-source.js';
import { until } from '../tool/until.js';

let compiled = '';
beforeAll(async () => {
  compiled = await compileSource('export/exporter-thread-main');
});
afterAll(() => rmSync(compiled, { recursive: true }));

/** Not opened before the start where destinations are known without it, as in the program. */
const late: OpenExports = async (config, { logger }) => {
  const places = await checkDestinations(config.configuration, config.ownHosts);
  const exporterEntry = pathToFileURL(join(compiled, 'export', 'exporter-thread-main.js'));
  const deps = { clock: systemClock, logger, random: () => 0.5, createKafkaProducer, exporterEntry };
  const exports = new Exports(config, deps, places);
  if (places === undefined) await exports.open();
  return exports;
};

const opened: OpenExports = async (config, bench) => {
  const exports = await late(config, bench);
  await exports.open();
  return exports;
};

exportsContract('exports that are opened before their start', opened);

exportsContract('exports that a start does not wait for', late);

const RUN = sampleTraceId('build-mixed');
const RECORDS = sampleRecords('build-mixed');
const ENDED = RECORDS.flatMap((record) => (record.recordType === 'SpanEnd' ? [`${RUN} ${record.spanId}`] : []));

let bench: ExportsBench;
beforeEach(async () => {
  bench = await ExportsBench.open();
});
afterEach(() => bench.close());

const untilDone = (name: string) =>
  until(`the end of the run at ${name}`, async () => (await bench.state.cursors.listPending(name)).length === 0);
const missing = () => ENDED.filter((id) => !bench.receiver.spanIds.includes(id));
const errorLines = () => bench.logger.lines.filter(({ level }) => level === 'error');

describe('exports that begin late', () => {
  /** Cursors that cannot be listed so many times. */
  function failing(times: number): Partial<{ cursors: CursorStore }> {
    let count = 0;
    const cursors: CursorStore = Object.create(bench.state.cursors);
    cursors.listPending = async (name) => {
      count += 1;
      if (count <= times) throw new Error(`failure ${count}`);
      return bench.state.cursors.listPending(name);
    };
    return { cursors };
  }

  it('send a run that came and ended before they began', async () => {
    const exports = await bench.start(late, undefined, { isBegun: false });
    expect(exports.statuses()).toEqual([]);
    await bench.append(RUN, RECORDS);
    await bench.finish(RUN);
    exports.begin();
    await untilDone('jaeger');
    expect(missing()).toEqual([]);
  });

  it('try again where they cannot start, say so, and lose nothing', async () => {
    await bench.start(late, undefined, { changes: failing(2) });
    await bench.append(RUN, RECORDS);
    await bench.finish(RUN);
    await untilDone('jaeger');
    expect(missing()).toEqual([]);
    expect(errorLines().map(({ fields }) => fields.error)).toEqual(['failure 1', 'failure 2']);
  });

  it('end in good order where they never started', async () => {
    const exports = await bench.start(late, undefined, { changes: failing(Infinity) });
    await bench.append(RUN, RECORDS);
    expect(await exports.flush(AbortSignal.timeout(50))).toBe(false);
    await bench.stop(exports);
  });
});

it('a destination that never answers holds up no other', async () => {
  const silent = await OtlpReceiver.listen();
  silent.answer = () => ({ isSilent: true });
  const exports = await bench.start(
    opened,
    `{ silent: { endpoint: ${silent.url} }, jaeger: { endpoint: ${bench.receiver.url} } }`,
  );
  await bench.append(RUN, RECORDS);
  await bench.finish(RUN);
  await untilDone('jaeger');
  expect(missing()).toEqual([]);
  expect(exports.statuses().find(({ name }) => name === 'silent')).toMatchObject({ pendingRuns: 1 });
  await bench.stop(exports);
  silent.close();
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

describe('an exporter in a thread of its own', () => {
  const write = (code: string) => {
    writeFileSync(join(bench.folder, 'own.mjs'), code);
    return `{ jaeger: { endpoint: ${bench.receiver.url} }, mine: { exporter: ./own.mjs } }`;
  };
  const deathLines = () => bench.logger.lines.filter((line) => line.message.includes('ended unexpectedly'));

  it.each([
    ['by itself', 'process.exit(3)', 'it ended by itself with code 3'],
    ['of a fault', "setTimeout(() => { throw new Error('no luck today'); })", 'no luck today'],
    ['of its memory', 'const all = []; for (;;) all.push(new Array(1000).fill(spans.length))', 'memory'],
  ])('that dies %s is started anew, and nothing is lost', async (_, how, reason) => {
    const exports = await bench.start(late, write(MURDEROUS(2, how)));
    for (let from = 0; from < RECORDS.length; from += 50) {
      await bench.append(RUN, RECORDS.slice(from, from + 50));
    }
    await until('two deaths', () => deathLines().length === 2);
    await bench.finish(RUN);
    for (const name of ['jaeger', 'mine']) await untilDone(name);
    expect(missing()).toEqual([]);
    const mine = readFileSync(join(bench.folder, 'spans'), 'utf8').split('\n');
    expect(ENDED.filter((id) => !mine.includes(id.split(' ')[1] ?? ''))).toEqual([]);
    expect(String(deathLines()[0]?.fields.error)).toContain(reason);
    expect(await exports.flush(AbortSignal.timeout(10_000))).toBe(true);
    expect(bench.logger.lines.filter((line) => line.message.includes('is running again'))).toHaveLength(2);
  });

  it('that never comes back from a loop holds up nobody, and is ended with the program', async () => {
    const place = JSON.stringify(join(bench.folder, 'stuck'));
    const exports = await bench.start(
      late,
      write(`import { writeFileSync } from 'node:fs';
        export default { export() { writeFileSync(${place}, ''); for (;;); }, async shutdown() {} };`),
    );
    await bench.append(RUN, RECORDS);
    await bench.finish(RUN);
    await untilDone('jaeger');
    expect(missing()).toEqual([]);
    await until('the loop', () => existsSync(join(bench.folder, 'stuck')));
    expect(await exports.flush(AbortSignal.timeout(100))).toBe(false);
    await exports.shutdown(AbortSignal.timeout(100));
    expect((await bench.state.cursors.find('mine', RUN))?.finishedAtBytes ?? null).toBeNull();
  });

  it('gets the environment and its own shutdown as in the program itself', async () => {
    process.env.RUN_BRIDGE_TEST_EXPORTER = 'seen';
    const place = JSON.stringify(join(bench.folder, 'said'));
    const exports = await bench.start(
      late,
      write(`import { appendFileSync } from 'node:fs';
        const say = (what) => appendFileSync(${place}, what + '\\n');
        export default () => {
          say(process.env.RUN_BRIDGE_TEST_EXPORTER);
          return { export(spans, done) { done({ code: 0 }); }, async shutdown() { say('shutdown'); } };
        };`),
    );
    delete process.env.RUN_BRIDGE_TEST_EXPORTER;
    await bench.stop(exports);
    expect(readFileSync(join(bench.folder, 'said'), 'utf8')).toBe('seen\nshutdown\n');
  });
});
