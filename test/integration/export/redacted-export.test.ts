import { describe, expect, it } from 'vitest';
import { DEFAULT_MAPPING_OPTIONS } from '../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../src/export/mapping/otel-run-mapper.js';
import { RequestEncoder } from '../../../src/export/wire/export-request.js';
import type { LoggedRecord } from '../../../src/log/record-log.js';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import type { OtlpEncoding } from '../../../src/otlp/otlp-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import type { RedactionLevel } from '../../../src/redaction/known-names.js';
import { decodeBody } from '../../fake/decode-at-once.js';
import { bodiesIn } from '../../fake/sample-run.js';
import { pushRecords } from '../../unit/export/mapping/mapped-run.js';

const FOLDER = 'test/fixture/redaction/otlp';
const MARKERS = /zq[a-z]+\d{3}|7700\d{5}|7700\.\d{5}|7\.7\d{6}e8|7700-\d\d-\d\d|0x7700\d?/gi;

/** The records that the engine's own request bodies brought, by trace. */
function received(): readonly (readonly LoggedRecord[])[] {
  const byTrace = new Map<string, LoggedRecord[]>();
  for (const { signal, body } of bodiesIn(FOLDER)) {
    const { delivery } = decodeBody(signal, body);
    for (const { traceId, resource, records } of delivery.batches) {
      const log = byTrace.get(traceId) ?? [];
      byTrace.set(traceId, log);
      for (const record of records) {
        log.push({ record, resource, offset: log.length, endOffset: log.length + 1 });
      }
    }
  }
  return [...byTrace.values()];
}

/** Every request body that would be sent, as text. */
async function exportedBytes(redaction: RedactionLevel, encoding: OtlpEncoding): Promise<string> {
  const codecs = { json: new JsonCodec(), protobuf: new ProtobufCodec() };
  const encoder = new RequestEncoder(encoding, async () => codecs, Infinity);
  const bodies: string[] = [];
  for (const log of received()) {
    const mapper = new OtelRunMapper({ ...DEFAULT_MAPPING_OPTIONS, redaction });
    pushRecords(mapper, log);
    const items = mapper.take(true);
    for (const signal of ['traces', 'logs'] as const) {
      const { body } = await encoder.encode({ signal, ranges: items[signal] });
      bodies.push(Buffer.from(body).toString('latin1'));
    }
  }
  return bodies.join('\n');
}

function markersIn(text: string): readonly string[] {
  return [...new Set(text.toLowerCase().match(MARKERS))].sort();
}

describe.each<OtlpEncoding>(['protobuf', 'json'])(
  'of a marked run, received over OTLP and exported as %s',
  (encoding) => {
    it.each<RedactionLevel>(['literals', 'statements'])('no byte shows a marked value at level %s', async (level) => {
      const text = await exportedBytes(level, encoding);
      expect(markersIn(text)).toEqual([]);
      expect(text).toContain('test_failed');
    });

    it('the bytes show every marked value that the engine sent at level off', async () => {
      const sent = bodiesIn(FOLDER).map(({ body }) => body.toString('latin1'));
      expect(markersIn(await exportedBytes('off', encoding))).toEqual(markersIn(sent.join('\n')));
    });
  },
);
