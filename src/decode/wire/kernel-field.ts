import { isSame } from '../../record/same-bytes.js';
import { type FieldPlan, ownBytes } from './field-plan.js';
import type { KernelHeap } from './kernel-heap.js';

/** Values of an attribute that the kernel is taught, and how long each, and its JSON, may be. */
const MAX_KNOWN = 64;
const MAX_KNOWN_BYTES = 256;
/** What a value takes that is no text: a number with quotes. */
const NUMBER_BYTES = 16;
/** Longer names take two bytes for their length. */
const MAX_KEY_BYTES = 127;
const COMMA = Buffer.from(',');
const NONE = Buffer.alloc(0);

// As in kernel/assembly/templates.ts.
const KIND = { text: 0, enum: 1, nested: 2, int64: 3 };
const START = { same: 0, absent: 1, constant: 2, ifConstant: 3 };
const SPECIAL = 0xff;
const KNOWN = 9;

/** An attribute of an event type, as the kernel knows it. */
export class KernelField {
  readonly address: number;
  private readonly known: Buffer[] = [];

  /** @throws RangeError when the kernel's memory is full */
  constructor(
    readonly plan: FieldPlan,
    private readonly heap: KernelHeap,
  ) {
    const { key, isWatched, watchedAs } = plan;
    const head = Buffer.concat([Buffer.from([0x0a, key.bytes.length]), key.bytes, Buffer.from([0x12])]);
    const quoted = Buffer.concat([COMMA, key.quoted]);
    const [start, json] = startOf(plan);
    this.address = heap.placeNumbers([
      heap.placeBytes(head),
      head.length,
      heap.placeBytes(quoted),
      quoted.length,
      kindOf(plan),
      start,
      heap.placeBytes(json),
      json.length,
      isWatched ? (watchedAs < 0 ? SPECIAL : watchedAs) : 0,
      0,
    ]);
  }

  static canHold({ key }: FieldPlan): boolean {
    return key.bytes.length <= MAX_KEY_BYTES;
  }

  /** Bytes that it takes at most in a line. */
  get lineBytes(): number {
    const value = this.takesKnown ? MAX_KNOWN_BYTES : NUMBER_BYTES;
    return this.plan.key.quoted.length + 1 + Math.max(value, startOf(this.plan)[1].length);
  }

  /** Whether the kernel writes texts of it (of nested JSON, those that begin like it) only if it was taught them. */
  get takesKnown(): boolean {
    const kind = kindOf(this.plan);
    return kind === KIND.enum || kind === KIND.nested;
  }

  /** Teaches a value and the JSON that it becomes. @throws RangeError when the kernel's memory is full */
  teach(text: Buffer, json: Buffer): void {
    if (text.length > MAX_KNOWN_BYTES || json.length > MAX_KNOWN_BYTES || this.known.length >= MAX_KNOWN) return;
    if (this.known.some((known) => isSame(known, text, 0, text.length))) return;
    const jsonAt = this.heap.placeBytes(json);
    // The text stands right behind the four numbers.
    const numbers = Buffer.alloc(16);
    const at = this.heap.placeBytes(Buffer.concat([numbers, text]));
    const next = this.heap.get(this.address, KNOWN);
    for (const [index, number] of [next, text.length, jsonAt, json.length].entries()) this.heap.set(at, index, number);
    this.heap.set(this.address, KNOWN, at);
    this.known.push(ownBytes(text));
  }
}

function kindOf({ kind }: FieldPlan): number {
  if (kind === 'enum' || kind === 'int64') return KIND[kind];
  return kind === 'nested' || kind === 'unknown' ? KIND.nested : KIND.text;
}

function startOf({ isEndOnly, knownValue, atStart }: FieldPlan): readonly [number, Buffer] {
  if (isEndOnly && knownValue === null) return [START.absent, NONE];
  if (atStart !== null) return [START.constant, atStart];
  return knownValue === null ? [START.same, NONE] : [START.ifConstant, knownValue];
}
