import { isJsonObject, type JsonObject, type JsonValue } from './json.js';

/**
 * A record's attributes: one JSON object, kept as its text until someone needs a value. The text is what is written,
 * so a number's spelling (`1.0`, a 64-bit integer) survives, and most records are never parsed at all.
 */
export class Attributes {
  static readonly EMPTY = new Attributes('{}');

  /** @param json text of a JSON object, already known to be one (checked by a parser at the edge). */
  static fromJson(json: string): Attributes {
    return new Attributes(json);
  }

  /** A text and the object that it was just parsed to. */
  static parsed(json: string, value: JsonObject): Attributes {
    return new Attributes(json, value);
  }

  static of(value: JsonObject): Attributes {
    return new Attributes(undefined, value);
  }

  /** @param bytes holds the text of a JSON object in UTF-8, from `start` to `end`; not to be written to any more. */
  static fromBytes(bytes: Buffer, start: number, end: number): Attributes {
    return new Attributes(undefined, undefined, bytes, start, end);
  }

  private constructor(
    private jsonText?: string,
    private parsed?: JsonObject,
    private readonly bytes?: Buffer,
    private readonly start = 0,
    private readonly end = 0,
  ) {}

  /** The object's text, on one line. */
  get json(): string {
    this.jsonText ??= this.bytes?.toString('utf8', this.start, this.end) ?? JSON.stringify(this.parsed);
    return this.jsonText;
  }

  /** The object itself, parsed on first use. */
  get value(): JsonObject {
    this.parsed ??= JSON.parse(
      this.jsonText ?? this.bytes?.toString('utf8', this.start, this.end) ?? '{}',
    ) as JsonObject;
    return this.parsed;
  }

  get(name: string): JsonValue | undefined {
    return Object.hasOwn(this.value, name) ? this.value[name] : undefined;
  }

  /** The attribute if it is a string. */
  text(name: string): string | undefined {
    const value = this.get(name);
    return typeof value === 'string' ? value : undefined;
  }

  /** The attribute if it is a whole number, spelt as a number or (64-bit) as a string of digits. */
  integer(name: string): number | undefined {
    const value = this.get(name);
    if (typeof value === 'number') return Number.isSafeInteger(value) ? value : undefined;
    return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : undefined;
  }

  /** The attribute if it is an object. */
  object(name: string): JsonObject | undefined {
    const value = this.get(name);
    return isJsonObject(value) ? value : undefined;
  }
}

/**
 * A text's characters in memory of their own. What is cut out of a line (by `JSON.parse`, `slice` or a pattern) may be a
 * reference into it that keeps the whole line in memory; whoever holds such a text for long holds a copy instead.
 */
export function ownText(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}
