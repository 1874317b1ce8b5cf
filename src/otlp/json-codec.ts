import { reasonOf } from '../component/reason-of.js';
import type { JsonValue } from '../record/json.js';
import type { Signal } from '../record/record-batch.js';
import type { ExportRequest } from './export-request.js';
import { logsFromJson, tracesFromJson } from './from-json.js';
import { checkJsonFieldCount, type OtlpCodec, OtlpDecodeError } from './otlp-codec.js';
import { requestToWire, type WireSpelling } from './to-wire.js';

/**
 * OTLP's JSON encoding: protobuf's JSON mapping with ids in hexadecimal and enums as integers. Read generously
 * (64-bit numbers as strings or numbers, names in either case, unknown keys passed over); written on one line.
 */
export class JsonCodec implements OtlpCodec {
  readonly encoding = 'json';
  private readonly decoder = new TextDecoder();
  private readonly encoder = new TextEncoder();

  decode(signal: Signal, body: Uint8Array): ExportRequest {
    checkJsonFieldCount(body);
    const document = this.parse(signal, body);
    return signal === 'traces' ? tracesFromJson(document) : logsFromJson(document);
  }

  encode(request: ExportRequest): Uint8Array {
    return this.write(requestToWire(request, JSON_SPELLING));
  }

  encodeResponse(signal: Signal, rejectedCount: number, message: string): Uint8Array {
    if (rejectedCount === 0 && message === '') return this.write({});
    const rejected = String(rejectedCount);
    return this.write({
      partialSuccess:
        signal === 'traces'
          ? { rejectedSpans: rejected, errorMessage: message }
          : { rejectedLogRecords: rejected, errorMessage: message },
    });
  }

  encodeStatus(code: number, message: string): Uint8Array {
    return this.write({ code, message });
  }

  private parse(signal: Signal, body: Uint8Array): JsonValue {
    try {
      return JSON.parse(quoteLongIntegers(this.decoder.decode(body)));
    } catch (cause) {
      // A SyntaxError, or a RangeError for nesting that exhausts the parser's stack.
      const reason = reasonOf(cause);
      throw new OtlpDecodeError(`The body is not an OTLP ${signal} request in JSON: ${reason}.`, { cause });
    }
  }

  private write(message: unknown): Uint8Array {
    return this.encoder.encode(JSON.stringify(message));
  }
}

const JSON_SPELLING: WireSpelling = {
  id: (hex) => hex,
  int64: (value) => value.toString(),
  // JSON has no spelling for these, and `JSON.stringify` drops the sign of -0.
  double: (value) =>
    Number.isFinite(value) && !Object.is(value, -0) ? value : Object.is(value, -0) ? '-0' : String(value),
  bytes: (value) => Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64'),
};

const LONG_INTEGER_LIKELY = /[[:,\s]-?\d{16}/;
const STRING_OR_NUMBER = /"|-?\d[\d.eE+-]*/g;
const LONG_INTEGER = /^-?\d{16,}$/;

/**
 * Puts quotes round every integer of 16 or more digits in a JSON text, so that `JSON.parse` does not round it: OTLP's
 * 64-bit numbers may come as JSON numbers, and times exceed 2^53. A reviver sees a number's text only from Node 21 on,
 * and a parser in JavaScript is several times slower than `JSON.parse`; this pass runs only where such a number seems
 * to be there, in time linear in the text.
 */
export function quoteLongIntegers(json: string): string {
  if (!LONG_INTEGER_LIKELY.test(json)) return json;
  let quoted = '';
  let copiedTo = 0;
  STRING_OR_NUMBER.lastIndex = 0;
  for (let match = STRING_OR_NUMBER.exec(json); match !== null; match = STRING_OR_NUMBER.exec(json)) {
    const token = match[0];
    if (token === '"') {
      STRING_OR_NUMBER.lastIndex = endOfString(json, match.index + 1);
    } else if (LONG_INTEGER.test(token)) {
      quoted += `${json.slice(copiedTo, match.index)}"${token}"`;
      copiedTo = match.index + token.length;
    }
  }
  return quoted + json.slice(copiedTo);
}

/** Index after the quote that closes the string; the text's length when none does. */
function endOfString(json: string, start: number): number {
  for (let quote = json.indexOf('"', start); quote !== -1; quote = json.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (quote - backslashes > start && json[quote - backslashes - 1] === '\\') backslashes++;
    if (backslashes % 2 === 0) return quote + 1;
  }
  return json.length;
}
