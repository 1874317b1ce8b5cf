import { expect, it } from 'vitest';
import { decodeBody } from '../../../fake/decode-at-once.js';
import { allTracesBodies } from '../../../fake/sample-run.js';
import { misreading } from '../../../tool/protobufjs-reading.js';

it.each(allTracesBodies())('decoding %s gives what protobufjs reads', (_name, body) => {
  // The second time it has seen the names.
  for (let round = 0; round < 2; round++)
    expect(misreading('traces', body, (bytes) => decodeBody('traces', bytes))).toBeUndefined();
});
