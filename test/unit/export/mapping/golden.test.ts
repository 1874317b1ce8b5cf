import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { RedactionLevel } from '../../../../src/redaction/known-names.js';
import { SMALL_SAMPLES, sampleFolder } from '../../../fake/sample-run.js';
import { LARGE_SAMPLES } from '../../../tool/large-samples.js';
import { mapBlankLines, mapLines } from './mapped-bytes.js';

const LEVELS: readonly RedactionLevel[] = ['literals', 'statements', 'off'];

// What is exported of a run is what people have stored of earlier ones. Whoever means to change it runs this with -u, and says it in the changelog.
it("each sample's items are to the byte what they were, at every level, however its lines are cut and laid out", async () => {
  const digests: Record<string, string> = {};
  for (const name of [...SMALL_SAMPLES, ...LARGE_SAMPLES]) {
    const log = readFileSync(join(sampleFolder(name), 'otel.jsonl'));
    for (const redaction of LEVELS) {
      const hash = createHash('sha256');
      const items = mapLines(log, { redaction });
      if (SMALL_SAMPLES.includes(name)) {
        expect(mapLines(log, { redaction }, [3, 1, 40])).toEqual(items);
        expect(mapBlankLines(log, { redaction })).toEqual(items);
      }
      for (const item of items) hash.update(item, 'latin1').update('\n');
      digests[`${name} ${redaction}`] = `${items.length} items ${hash.digest('hex').slice(0, 32)}`;
    }
  }
  await expect(`${JSON.stringify(digests, null, 2)}\n`).toMatchFileSnapshot('../../../fixture/exported-items.json');
});
