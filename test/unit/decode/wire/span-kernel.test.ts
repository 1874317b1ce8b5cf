import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OtlpRequestDecoder } from '../../../../src/decode/otlp-request-decoder.js';
import { PublicAttributeSchema } from '../../../../src/decode/public-attribute-schema.js';
import { loadSpanKernel } from '../../../../src/decode/wire/span-kernel.js';
import { WireTracesDecoder } from '../../../../src/decode/wire/wire-traces-decoder.js';
import { JsonCodec } from '../../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../../src/otlp/protobuf-codec.js';
import { PublicSchema } from '../../../../src/schema/public-schema.js';
import { SAMPLES } from '../../../fake/sample-run.js';

const body = readFileSync(join(SAMPLES, 'build-mixed', 'otlp', '002-traces.bin'));

/** A kernel that knows the sample's spans. */
function taughtKernel() {
  const kernel = loadSpanKernel();
  if (kernel === undefined) throw new Error('the kernel is not compiled: npm run build');
  const schema = new PublicAttributeSchema(PublicSchema.load());
  const general = { codec: new ProtobufCodec(), decoder: new OtlpRequestDecoder(schema, new JsonCodec()) };
  const decoder = new WireTracesDecoder(schema, general, kernel);
  for (let round = 0; round < 2; round++) decoder.decode(body).delivery.release?.();
  return kernel;
}

const kernel = taughtKernel();

/** Where fields begin that may be spans: tag 2, length-delimited. */
const starts = [...body.keys()].filter((at) => body[at] === 0x12);

describe('the compiled kernel', () => {
  it('reads and writes nothing but its own regions, whatever stands there', () => {
    const { memory, templates, templatesEnd, bodyEnd, out } = kernel;
    const taught = Buffer.from(memory.subarray(templates, templatesEnd));
    const change = fc.record({ at: fc.nat(3000), byte: fc.nat(255) });
    const damage = fc.record({
      start: fc.constantFrom(...starts),
      length: fc.integer({ min: 1, max: 3000 }),
      changes: fc.array(change, { maxLength: 4 }),
      lines: fc.nat(2 ** 20),
    });
    let spanCount = 0;
    fc.assert(
      fc.property(damage, ({ start, length, changes, lines }) => {
        const bytes = Uint8Array.from(body.subarray(start, start + length));
        for (const { at, byte } of changes) bytes[at % bytes.length] = byte;
        // At the region's very end, so that what is read beyond would be the lines of the span before.
        const at = bodyEnd - bytes.length;
        memory.set(bytes, at);
        const count = kernel.run(at, bodyEnd, lines);
        spanCount += count;
        expect(kernel.stoppedAt()).toBeLessThanOrEqual(bodyEnd);
        expect(kernel.outEnd()).toBeLessThanOrEqual(memory.length);
        expect(kernel.outEnd() > out).toBe(count > 0);
        expect(Buffer.compare(memory.subarray(at, bodyEnd), bytes)).toBe(0);
        expect(Buffer.compare(memory.subarray(templates, templatesEnd), taught)).toBe(0);
      }),
      { numRuns: 3000 },
    );
    expect(spanCount).toBeGreaterThan(0);
  });
});
