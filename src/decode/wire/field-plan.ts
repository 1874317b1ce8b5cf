import { CELL } from '../../record/record-page.js';
import { isSame } from '../../record/same-bytes.js';
import type { Severity } from '../../record/severity.js';
import type { AttributeField, AttributeSchema, FieldKind } from '../attribute-schema.js';
import { shortEventType } from '../event-type.js';
import { startRuleOf } from '../span-start.js';
import { UNUSUAL } from './wire-cursor.js';

/** An attribute name that came: its bytes, and how it is written. */
export interface KnownKey {
  readonly name: string;
  readonly bytes: Buffer;
  /** `"name":` */
  readonly quoted: Buffer;
}

/** A value that came, and the JSON that it becomes. */
export interface KnownText {
  readonly bytes: Buffer;
  readonly json: Buffer;
}

/** How one attribute of one event type is written. */
export interface FieldPlan {
  readonly key: KnownKey;
  readonly kind: FieldKind | 'unknown';
  readonly field: AttributeField | undefined;
  /** Values of an enum that came, and how each is written: most spans of a run have the same few. */
  readonly knownTexts: KnownText[];
  /** Whether a span's start lacks it. */
  readonly isEndOnly: boolean;
  /** The one value that a start has although it lacks others, as JSON; `null` where there is none. */
  readonly knownValue: Buffer | null;
  /** What the engine writes at the start instead, as JSON; `null` for the same. */
  readonly atStart: Buffer | null;
  /** JSON of its values with which the start has all that the end has. */
  readonly wholeWith: readonly Buffer[];
  /** Whether the page has to know of it. */
  readonly isWatched: boolean;
  /** The page's cell for where its value begins; -1 where it makes the span special. */
  readonly watchedAs: number;
}

/** Attributes that tell how a node ended, and the page's cells for them; see `CELL`. */
const WATCHED: ReadonlyMap<string, number> = new Map([
  ['unique_id', CELL.uniqueIdStart],
  ['node_outcome', CELL.outcomeStart],
  ['query_outcome', CELL.outcomeStart],
  ['phase', CELL.phaseStart],
  ['last_phase', CELL.phaseStart],
  ['node_test_detail', CELL.detailStart],
  ['test_outcome', CELL.detailStart],
  ['node_freshness_outcome', CELL.detailStart],
  ['node_outcome_detail', CELL.detailStart],
]);

/** Names and plans that are remembered; when a sender of ever new ones has filled the list, it begins anew. */
const MAX_KEYS = 2048;
/** A longer name is left to the general decoder, and a longer value of an enum is not remembered: in bytes. */
export const MAX_REMEMBERED_BYTES = 256;
export const MAX_TYPES = 256;
const MAX_FIELDS = 512;

/** How the spans or log records of one event type are written. */
export class TypePlan {
  /** `"event_type":"…","attributes":` */
  readonly eventTypeHead: Buffer;
  readonly shortType: string;
  /** Starts of such spans need the general rules. */
  readonly hasSpecialStart: boolean;
  private readonly fields = new Map<KnownKey, FieldPlan>();
  /** By severity, of which there are a few constant ones. */
  private readonly tails = new Map<Severity, Buffer>();

  constructor(
    readonly eventType: string,
    private readonly schema: AttributeSchema,
  ) {
    this.eventTypeHead = Buffer.from(`"event_type":${JSON.stringify(eventType)},"attributes":`);
    this.shortType = shortEventType(eventType);
    this.hasSpecialStart = startRuleOf(this.shortType).isSpecial;
  }

  /** `","severity_number":…,"severity_text":"…","event_type":"…","attributes":` */
  tail(severity: Severity): Buffer {
    let tail = this.tails.get(severity);
    if (tail === undefined) {
      const head = `","severity_number":${severity.number},"severity_text":"${severity.text}",`;
      tail = Buffer.concat([Buffer.from(head), this.eventTypeHead]);
      this.tails.set(severity, tail);
    }
    return tail;
  }

  field(key: KnownKey): FieldPlan {
    const known = this.fields.get(key);
    if (known !== undefined) return known;
    if (this.fields.size >= MAX_FIELDS) this.fields.clear();
    const field = this.schema.field(this.eventType, key.name);
    const { endOnly, knownValues, atStart, wholeWith } = startRuleOf(this.shortType);
    const json = atStart?.get(key.name);
    const knownValue = knownValues?.get(key.name);
    const plan: FieldPlan = {
      key,
      kind: field?.kind ?? 'unknown',
      field,
      knownTexts: [],
      isEndOnly: endOnly?.has(key.name) === true,
      knownValue: knownValue === undefined ? null : Buffer.from(knownValue),
      atStart: json === undefined ? null : Buffer.from(json),
      wholeWith: wholeWith?.name === key.name ? [...wholeWith.values].map((json) => Buffer.from(json)) : [],
      isWatched: WATCHED.has(key.name),
      watchedAs: WATCHED.get(key.name) ?? -1,
    };
    this.fields.set(key, plan);
    return plan;
  }
}

/** Remembers attribute names by their bytes, and event types by name. */
export class FieldPlans {
  private readonly keys = new Map<number, KnownKey[]>();
  private readonly types = new Map<string, TypePlan>();
  private keyCount = 0;

  constructor(private readonly schema: AttributeSchema) {}

  type(eventType: string): TypePlan {
    const known = this.types.get(eventType);
    if (known !== undefined) return known;
    if (this.types.size >= MAX_TYPES) this.types.clear();
    const plan = new TypePlan(eventType, this.schema);
    this.types.set(eventType, plan);
    return plan;
  }

  /** The attribute name that stands at `start`. @throws UNUSUAL when it is long */
  key(from: Buffer, start: number, end: number): KnownKey {
    if (end - start > MAX_REMEMBERED_BYTES) throw UNUSUAL;
    let hash = end - start;
    for (let index = start; index < end; index++) hash = (Math.imul(hash, 31) + (from[index] as number)) | 0;
    const list = this.keys.get(hash);
    if (list !== undefined) for (const key of list) if (isSame(key.bytes, from, start, end)) return key;
    return this.add(hash, ownBytes(from.subarray(start, end)));
  }

  private add(hash: number, bytes: Buffer): KnownKey {
    if (this.keyCount++ >= MAX_KEYS) this.forget();
    const name = bytes.toString('utf8');
    const key = { name, bytes, quoted: ownBytes(Buffer.from(`${JSON.stringify(name)}:`)) };
    const list = this.keys.get(hash);
    if (list === undefined) this.keys.set(hash, [key]);
    else list.push(key);
    return key;
  }

  /** The types' plans go with the names that they are by. */
  private forget(): void {
    this.keys.clear();
    this.types.clear();
    this.keyCount = 1;
  }
}

/** A copy for long: one of `Buffer.from` may be part of a pool's 8 KiB, all of which stay in memory for its sake. */
export function ownBytes(bytes: Uint8Array): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  own.set(bytes);
  return own;
}
