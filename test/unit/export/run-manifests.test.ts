import { expect, it } from 'vitest';
import { RunManifests } from '../../../src/export/run-manifests.js';
import type { Manifest, ManifestRun } from '../../../src/storage/manifest.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

const MINE: Manifest = new Map();
const EARLIER: Manifest = new Map();
const runOf = (runId: number, jobId = 1): ManifestRun => ({ accountId: 1, runId, jobId, environmentId: 1 });

function open(ofRun: (run: Pick<ManifestRun, 'runId'>) => Promise<Manifest | undefined>) {
  const asked: ManifestRun[] = [];
  const [clock, logger] = [new FakeClock(), new RecordingLogger()];
  const ofEarlier = async (run: ManifestRun) => {
    asked.push(run);
    return EARLIER;
  };
  return { asked, clock, logger, manifests: new RunManifests({ reader: { ofRun, ofEarlier }, clock, logger }) };
}

it("a run's own manifest counts before that of an earlier one, which jobs ask for once in ten minutes", async () => {
  const { asked, clock, manifests } = open(async ({ runId }) => (runId === 3 ? MINE : undefined));
  expect(await manifests.of(runOf(3))).toBe(MINE);
  expect(asked).toEqual([]);
  expect(await Promise.all([manifests.of(runOf(4)), manifests.of(runOf(4)), manifests.of(runOf(5))])).toEqual([
    EARLIER,
    EARLIER,
    EARLIER,
  ]);
  expect(asked).toEqual([runOf(4)]);
  clock.advance(599_999);
  await manifests.of(runOf(6));
  expect(asked).toHaveLength(1);
  clock.advance(1);
  await manifests.of(runOf(7));
  expect(asked).toEqual([runOf(4), runOf(7)]);
  // Four jobs are kept, the latest.
  for (const jobId of [2, 3, 4, 5]) await manifests.of(runOf(8, jobId));
  await manifests.of(runOf(9));
  expect(asked.at(-1)).toEqual(runOf(9));
});

it('that no earlier run left one is looked up again after ten seconds', async () => {
  const found: (Manifest | undefined)[] = [undefined, EARLIER];
  const clock = new FakeClock();
  const reader = { ofRun: async () => undefined, ofEarlier: async () => found.shift() };
  const manifests = new RunManifests({ reader, clock, logger: new RecordingLogger() });
  expect(await manifests.of(runOf(4))).toBeUndefined();
  clock.advance(9_999);
  expect(await manifests.of(runOf(5))).toBeUndefined();
  clock.advance(1);
  expect(await manifests.of(runOf(6))).toBe(EARLIER);
});

it('one that cannot be read leaves the links out, and the log says so', async () => {
  const { manifests, logger } = open(async () => {
    throw new Error('the bucket is away');
  });
  expect(await manifests.of(runOf(3))).toBeUndefined();
  expect(logger.lines).toContainEqual(
    expect.objectContaining({ level: 'warn', fields: { error: 'the bucket is away' } }),
  );
});
