import { expect, test } from 'vitest';
import { type LiveRun, liveLine } from '../../../src/api/live-runs.js';
import { countVerdicts } from '../../../src/run/verdict.js';

const NOTHING: LiveRun = {
  ...{ phase: null, phaseForMs: null, parsedCount: 0, doneCount: 0, counts: countVerdicts([]), totalCount: null },
  ...{ failedCount: 0, failed: [], running: [], waitingCount: 0, lastEnded: null, hasStarts: true, nodesForMs: null },
  ...{ stepIndex: 1, uploadingCount: null, leftMs: null, usualCount: null, usualPhaseMs: null, usualMs: null },
};
const node = (name: string, forMs: number, usualMs: number | null) => ({
  ...{ uniqueId: `model.shop.${name}`, name, label: `model ${name}`, forMs, usualMs },
});
const LAST = { ...node('orders', 0, null), agoMs: 3_000 };

test.each<[string, Partial<LiveRun>]>([
  ['no telemetry yet', {}],
  [
    'parse for 41 s (usually 85 s), 412 files so far',
    { phase: 'PARSE', phaseForMs: 41_000, usualPhaseMs: 85_000, parsedCount: 412 },
  ],
  // Over OTLP nobody knows since when.
  ['parse, 412 files so far, about 3 min left', { phase: 'PARSE', parsedCount: 412, leftMs: 170_000 }],
  ['step 2: 7 nodes so far', { stepIndex: 2, doneCount: 7 }],
  ['0 of 600 nodes', { phase: 'RUN', phaseForMs: 1_000, totalCount: 600 }],
  [
    '214 of 600 nodes, 2 failed, running mart_12 for 41 s (usually 12 s) and mart_13 for 3 s and 1 more, about 3 min left',
    {
      ...{ doneCount: 214, totalCount: 600, failedCount: 2, leftMs: 170_000, lastEnded: LAST },
      running: [node('mart_12', 41_000, 12_000), node('mart_13', 3_000, null), node('mart_14', 1_000, null)],
    },
  ],
  [
    '600 of 600 nodes, 2 failed, uploading 1,286 artifacts',
    { doneCount: 600, totalCount: 600, failedCount: 2, uploadingCount: 1_286, leftMs: 0 },
  ],
  // No time is left where it takes longer than usual.
  [
    '214 of usually 600 nodes, last ended orders 3 s ago',
    { doneCount: 214, usualCount: 600, lastEnded: LAST, hasStarts: false, leftMs: 0 },
  ],
  ['1,214 nodes so far, last ended orders 3 s ago', { doneCount: 1_214, lastEnded: LAST, hasStarts: false }],
])('says %j', (line, given) => {
  expect(liveLine({ ...NOTHING, ...given })).toBe(line);
});
