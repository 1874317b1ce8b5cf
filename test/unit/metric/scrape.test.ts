import { expect, it } from 'vitest';
import { Scrape } from '../../../src/metric/routes.js';
import type { MetricSource, Sample } from '../../../src/metric/samples.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

const READY: Sample = { name: 'run_bridge_ready', value: 1, labels: {} };
const up = (source: string, value: number): Sample => ({ name: 'run_bridge_source_up', value, labels: { source } });

function scrapeOf(...sources: MetricSource[]) {
  const [clock, logger] = [new FakeClock(), new RecordingLogger()];
  return { scrape: new Scrape({ sources, clock, logger }), clock, logger };
}

it('reads every part, and says that it could', async () => {
  const { scrape } = scrapeOf({ name: 'a', read: () => [READY] }, { name: 'b', read: async () => [] });
  expect(await scrape.read()).toEqual([READY, up('a', 1), up('b', 1)]);
});

it('leaves out a part that fails, and logs it once until it answers again', async () => {
  let isBroken = true;
  const read = () => {
    if (isBroken) throw new Error('the database is away');
    return [READY];
  };
  const { scrape, logger } = scrapeOf({ name: 'a', read }, { name: 'b', read: () => [] });
  for (let count = 0; count < 2; count++) expect(await scrape.read()).toEqual([up('a', 0), up('b', 1)]);
  expect(logger.lines).toEqual([
    {
      level: 'warn',
      fields: { source: 'a', reason: 'the database is away' },
      message: 'failed to collect metrics',
    },
  ]);
  isBroken = false;
  expect(await scrape.read()).toEqual([READY, up('a', 1), up('b', 1)]);
  isBroken = true;
  await scrape.read();
  expect(logger.lines).toHaveLength(2);
});

it('waits 5 s for a part, and asks it once at a time', async () => {
  let askedCount = 0;
  let answer: (samples: readonly Sample[]) => void = () => {};
  const read = () => {
    askedCount += 1;
    return new Promise<readonly Sample[]>((resolve) => {
      answer = resolve;
    });
  };
  const { scrape, clock } = scrapeOf({ name: 'slow', read });
  const first = scrape.read();
  await Promise.resolve();
  clock.advance(4_999);
  const second = scrape.read();
  await Promise.resolve();
  clock.advance(1);
  expect(await first).toEqual([up('slow', 0)]);
  answer([READY]);
  expect(await second).toEqual([READY, up('slow', 1)]);
  expect(askedCount).toBe(1);
});
