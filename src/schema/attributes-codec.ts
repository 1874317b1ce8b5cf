import { reasonOf } from '../component/reason-of.js';
import type { JsonObject } from '../record/json.js';
import { messageFromJson } from './message-from-json.js';
import { messageToJson } from './message-to-json.js';
import type { PublicSchema } from './public-schema.js';
import { SchemaError } from './schema-error.js';

/**
 * Turns a record's attributes (the engine's JSON: snake_case names, enums by name, 64-bit integers as strings) into the
 * protobuf bytes of its message and back. What JSON cannot tell from its absence (a plain zero) is left out both ways.
 */
export class AttributesCodec {
  constructor(private readonly schema: PublicSchema) {}

  /**
   * @throws SchemaError for an event type, field or enum name that the schema does not know, and for a value that does
   * not fit its field: bytes cannot carry it, and nothing is dropped in silence.
   */
  encode(eventType: string, attributes: JsonObject): Uint8Array {
    const { message, wireType } = this.typesOf(eventType);
    return wireType.encode(messageFromJson(attributes, message)).finish();
  }

  /** @throws SchemaError for an event type that the schema does not know, and for bytes that are not its message. */
  decode(eventType: string, bytes: Uint8Array): JsonObject {
    const { message, wireType } = this.typesOf(eventType);
    try {
      const decoded: unknown = wireType.decode(bytes);
      return messageToJson(decoded as Readonly<Record<string, unknown>>, message);
    } catch (cause) {
      const reason = reasonOf(cause);
      throw new SchemaError(`These ${bytes.byteLength} bytes are not a ${eventType}: ${reason}.`, { cause });
    }
  }

  private typesOf(eventType: string) {
    const message = this.schema.message(eventType);
    const wireType = this.schema.wireType(eventType);
    if (message !== undefined && wireType !== undefined) return { message, wireType };
    throw new SchemaError(`The public schema does not know the message ${eventType}; a newer schema may.`);
  }
}
