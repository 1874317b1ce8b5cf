import type { Signal } from '../record/record-batch.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import { mayNeedSpelling, modernSpelling, PublicAttributeSchema } from './attribute-schema.js';
import { EngineRecognition } from './engine-recognition.js';
import type { EngineSightings } from './engine-sightings.js';
import { JsonCodec } from './json-codec.js';
import type { OtlpCodec, OtlpEncoding } from './otlp-codec.js';
import { ProtobufCodec } from './protobuf-codec.js';
import { PublicSchema } from './public-schema.js';
import { splitJson } from './split-json.js';
import { type BodyDecoder, JsonDecoder, LargeBodyDecoder, splitProtobuf, WireDecoder } from './wire/wire-decoder.js';

/** What makes records of OTLP. */
export interface Decoding {
  readonly codecs: Readonly<Record<OtlpEncoding, OtlpCodec>>;
  /** Reads requests of any size. */
  readonly bodies: Readonly<Record<OtlpEncoding, Readonly<Record<Signal, BodyDecoder>>>>;
}

/** How the engine is told from other services. */
export interface DecodingOptions {
  /** What the engine is called beside its known names: the setting `engine-names`. */
  readonly engineNames: readonly string[];
  /** Is notified of what is not plain; left out where nobody asks. */
  readonly sightings?: EngineSightings | undefined;
}

/** One decoder for each signal, in protobuf and behind what makes protobuf of JSON. */
export function createDecoding({ engineNames, sightings }: DecodingOptions): Decoding {
  const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
  const recognition = new EngineRecognition(engineNames);
  const of = (signal: Signal) => {
    const wire = new WireDecoder(signal, codecs, recognition, sightings);
    return {
      protobuf: new LargeBodyDecoder(signal, wire, splitProtobuf),
      json: new LargeBodyDecoder(signal, new JsonDecoder(signal, wire, codecs), splitJson),
    };
  };
  const [traces, logs] = [of('traces'), of('logs')];
  return {
    codecs,
    bodies: {
      protobuf: { traces: traces.protobuf, logs: logs.protobuf },
      json: { traces: traces.json, logs: logs.json },
    },
  };
}

let schema: PublicAttributeSchema | undefined;

/** As `modernSpelling`, by the public schema, which is loaded for the first record that may not be in modern spelling. */
export function modernRecord<T extends TelemetryRecord>(record: T): T {
  if (!mayNeedSpelling(record)) return record;
  schema ??= new PublicAttributeSchema(PublicSchema.load());
  return modernSpelling(record, schema);
}
