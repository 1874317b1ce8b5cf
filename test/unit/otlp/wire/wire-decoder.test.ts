import { expect, it } from 'vitest';
import { PageBatch } from '../../../../src/record/record-page.js';
import { decodeBody } from '../../../fake/decode-at-once.js';
import { allTracesBodies } from '../../../fake/sample-run.js';
import { misreading } from '../../../tool/protobufjs-reading.js';

it.each(allTracesBodies())('decoding %s straight from the wire gives what protobufjs reads', (_name, body) => {
  // The second time it has seen the names.
  for (let round = 0; round < 2; round++)
    expect(misreading('traces', body, (bytes) => decodeBody('traces', bytes))).toBeUndefined();
  const { delivery } = decodeBody('traces', body);
  expect(delivery.batches.some((batch) => batch instanceof PageBatch)).toBe(true);
});
