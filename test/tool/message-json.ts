import { readdirSync } from 'node:fs';
import type protobuf from 'protobufjs';
import { loadProtoFiles, PROTO_FOLDER } from '../../src/otlp/proto-files.js';
import type { JsonObject } from '../../src/record/attributes.js';

const PUBLIC = 'dbtlabs/proto/public/';
/** The one enum field that the engine writes as a number. */
const ENUM_AS_NUMBER = 'original_severity_number';

const paths = readdirSync(PROTO_FOLDER + PUBLIC, { recursive: true, encoding: 'utf8' });
const root = loadProtoFiles(
  paths.filter((path) => path.endsWith('.proto')).map((path) => PUBLIC + path),
  { keepCase: true },
);

/** protobufjs's type of a message of the public schema. @throws Error for one that it does not know */
export function messageType(name: string): protobuf.Type {
  return root.lookupType(name);
}

/** A message's bytes, as protobufjs makes them of the engine's JSON. What the message does not know is left out. */
export function messageBytes(name: string, json: JsonObject): Uint8Array {
  const type = messageType(name);
  return type.encode(type.fromObject(json)).finish();
}

/** The engine's JSON of a message's bytes, as protobufjs reads them. */
export function messageJson(name: string, bytes: Uint8Array): JsonObject {
  const type = messageType(name);
  const message = type.decode(bytes);
  const json = type.toObject(message, { longs: String, enums: String, bytes: String, json: true });
  if (ENUM_AS_NUMBER in json) json[ENUM_AS_NUMBER] = Reflect.get(message, ENUM_AS_NUMBER);
  return json;
}
