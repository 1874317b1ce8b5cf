import { grown } from '../core/bytes.js';
import type { LoggedRecord } from '../log/record-log.js';
import { type CellBatch, FIELD, type ItemChunk, LOGGED } from '../otlp/wire/item-chunk.js';
import type { EventLayout, Layout } from '../otlp/wire/layouts.js';
import { itemReading } from '../otlp/wire/read-items.js';
import { resourceKey } from '../record/attributes.js';
import { Cell, cell } from '../record/cells.js';
import { SpanIdTable, spanIdHalves, spanIdOf } from '../record/span-id-table.js';
import type { LogRecord, SpanEnd, SpanId, SpanStart } from '../record/telemetry-record.js';
import { texts } from '../record/texts.js';
import { assignGroups } from './group-assignment.js';
import { areRolesPlain, type CellItem, eventName, ROW_KIND, type RowKind, rowKind } from './node-outcome.js';
import { CERTAIN, isInvocationName, parentEvidence, SpanGroup } from './span-group.js';
import type { InvocationParts } from './trace-steps.js';

/** Maximum number of spans of a trace that are distinguished, about 30 bytes each; beyond, a span follows its parent or is ambiguous. */
const MAX_SPANS = 4_000_000;
/** Log records without a span are assigned together with their neighbours in time. */
const SPANLESS_SLICE_NANO = 10_000_000n;
/** Slices of log records without a span; what goes beyond is assigned as one. */
const MAX_SPANLESS_SLICES = 10_000;
/** What the entry of a group takes, also of one that was merged into another. */
const GROUP_BYTES = 8;

/**
 * Assigns each record of a trace to an invocation. Records come in any order (over OTLP children come before their
 * parents, and some parents never): spans are joined with their parents and links as these become known, so a record
 * whose chain is not complete yet belongs to a group that finds its invocation later. The same records give the same
 * assignment in any order.
 *
 * Live: `add` each record, ask for `invocations`. To split a log: `add` everything, then ask `invocationIndexOf` of each.
 * Memory: about 30 bytes a span (at most 4,000,000 spans) and 200 bytes a node.
 */
export class InvocationAssigner {
  private readonly table: SpanTable;
  /** Groups by their number in the table, from 1 and in the order in which they came up; those that were merged into others left their entries empty. */
  private readonly groups: (SpanGroup | undefined)[] = [undefined];
  private readonly spanless = new Map<string, SpanGroup>();
  private readonly overflow = new SpanGroup();
  /** The one that is being added, of those that have cells. */
  private item: CellItem | undefined;
  private resolved: {
    readonly invocations: readonly InvocationParts[];
    readonly indices: Map<SpanGroup, number>;
  } | null = null;

  /** @param maxSpans default 4,000,000 */
  constructor(maxSpans = MAX_SPANS) {
    this.table = new SpanTable(maxSpans);
  }

  /** Memory that it takes, in bytes, about. */
  get memoryBytes(): number {
    let bytes = this.table.byteCount + GROUP_BYTES * this.groups.length;
    for (const group of this.groups) bytes += group?.memoryBytes ?? 0;
    for (const group of this.spanless.values()) bytes += group.memoryBytes;
    return bytes;
  }

  /** @param arrivalMs on a monotonic clock; a replay passes any constant */
  add(logged: LoggedRecord, arrivalMs: number): void {
    this.resolved = null;
    const { record } = logged;
    const group = record.recordType === 'LogRecord' ? this.groupOfLog(logged, record) : this.groupOfSpan(record);
    group.add(logged, arrivalMs);
  }

  /**
   * Like `add` for all records of each item, using its cells where they suffice.
   * @param offset of the batch's first line in the record log
   */
  addItems(batch: CellBatch, offset: number, arrivalMs: number): void {
    this.resolved = null;
    const { chunk } = batch;
    const { layouts } = itemReading();
    const base = offset - chunk.field(batch.from, FIELD.startLine);
    for (let index = batch.from; index < batch.to; index++) {
      texts.tidy();
      const isAdded =
        chunk.look(index) &&
        this.addCells(chunk, index, this.itemOf(batch, index, layouts.layout(cell(Cell.layout)), base, arrivalMs));
      if (!isAdded) this.addRecordsOf(batch, index, base, arrivalMs);
    }
  }

  /** Adds the item that is looked at. @returns whether its cells contained all; else nothing was added to a group */
  private addCells(chunk: ItemChunk, index: number, item: CellItem): boolean {
    if (item.kind === ROW_KIND.special || !areRolesPlain(item.layout)) return false;
    const group = item.parts === LOGGED ? this.groupOfLogCells(chunk, index) : this.groupOfSpanCells(item.kind);
    return group?.addItem(item) === true;
  }

  private itemOf(
    { chunk, resource }: CellBatch,
    index: number,
    layout: Layout,
    base: number,
    arrivalMs: number,
  ): CellItem {
    const kind = kindOf(layout.event);
    const parts = chunk.field(index, FIELD.parts);
    const startLine = base + chunk.field(index, FIELD.startLine);
    const endLine = base + chunk.field(index, FIELD.endLine);
    const lineEnd = base + chunk.field(index, FIELD.lineEnd);
    const { item } = this;
    if (item === undefined) {
      this.item = { layout, kind, parts, resource, startLine, endLine, lineEnd, arrivalMs };
      return this.item;
    }
    item.layout = layout;
    item.kind = kind;
    item.parts = parts;
    item.resource = resource;
    item.startLine = startLine;
    item.endLine = endLine;
    item.lineEnd = lineEnd;
    item.arrivalMs = arrivalMs;
    return item;
  }

  private addRecordsOf({ chunk, resource }: CellBatch, index: number, base: number, arrivalMs: number): void {
    let offset = base + chunk.field(index, FIELD.startLine);
    const records = chunk.recordsOf(index);
    for (const [at, record] of records.entries()) {
      const endOffset = base + chunk.field(index, at === records.length - 1 ? FIELD.lineEnd : FIELD.endLine);
      this.add({ record, resource, offset, endOffset }, arrivalMs);
      offset = endOffset;
    }
  }

  /** Returns the group of the log record that is looked at, as `groupOfLog` finds it; `undefined` where its record has to be asked. */
  private groupOfLogCells(chunk: ItemChunk, item: number): SpanGroup | undefined {
    const high = cell(Cell.idHigh);
    const low = cell(Cell.idLow);
    const index = this.table.indexOfHalves(high, low);
    if (index === undefined) return undefined;
    const group = this.groupAt(index);
    if (!this.table.hasRecord(index) && !chunk.lacksName(item) && isInvocationName(chunk.nameOf(item))) {
      this.noteCertain(index, high, low);
    }
    return group;
  }

  /** Joins the span that is looked at with its parent and link, as `groupOfSpan` does; `undefined` where its records have to be asked. */
  private groupOfSpanCells(kind: RowKind): SpanGroup | undefined {
    const index = this.table.indexOfHalves(cell(Cell.idHigh), cell(Cell.idLow));
    if (index === undefined) return undefined;
    if (!this.table.hasRecord(index)) {
      this.table.markRecord(index);
      if (this.table.isLikely(index)) {
        this.groupAt(index).forgetLikelyInvocation(spanIdOf(cell(Cell.idHigh), cell(Cell.idLow)));
      }
    }
    const parentHigh = cell(Cell.parentHigh);
    const parentLow = cell(Cell.parentLow);
    if (parentHigh !== 0 || parentLow !== 0) {
      const parent = this.table.indexOfHalves(parentHigh, parentLow);
      if (parent !== undefined) {
        if (kind === ROW_KIND.nodeProcessed && !this.table.hasRecord(parent)) {
          this.noteCertain(parent, parentHigh, parentLow);
        }
        this.joinIndices(index, parent);
      }
    }
    const linkHigh = cell(Cell.linkHigh);
    const linkLow = cell(Cell.linkLow);
    if (kind === ROW_KIND.nodeEvaluated && (linkHigh !== 0 || linkLow !== 0)) {
      const linked = this.table.indexOfHalves(linkHigh, linkLow);
      if (linked !== undefined) this.joinIndices(index, linked);
    }
    return this.groupAt(index);
  }

  /** Returns the invocations of the trace so far, in the order in which their first records arrived. */
  get invocations(): readonly InvocationParts[] {
    return this.resolve().invocations;
  }

  /** Position (from 1) of the record's invocation; `undefined` for a record that was never added. */
  invocationIndexOf({ record, resource }: Pick<LoggedRecord, 'record' | 'resource'>): number | undefined {
    const { indices } = this.resolve();
    const group =
      record.spanId === null
        ? this.spanless.get(this.sliceOf(resourceKey(resource), record))
        : this.knownGroup(record.spanId, record.recordType === 'LogRecord' ? null : record.parentSpanId);
    return indices.get(group ?? this.overflow);
  }

  /** Returns the part of the record log that holds all records of an invocation, by its position (from 1); others' may be there, too. */
  rangeOf(index: number): { readonly fromOffset: number; readonly toOffset: number } | undefined {
    const parts = this.resolve().invocations[index - 1];
    return parts === undefined ? undefined : { fromOffset: parts.firstOffset, toOffset: parts.endOffset };
  }

  /** Identifies the records of an invocation, by its position (from 1): the sum of their `recordDigest`, modulo 2^32. */
  digestOf(index: number): number {
    const groups = this.resolve().invocations[index - 1]?.groups ?? [];
    return groups.reduce((sum, { digest }) => (sum + digest) >>> 0, 0);
  }

  private resolve() {
    if (this.resolved !== null) return this.resolved;
    const invocations = assignGroups([
      ...this.groups.filter((group) => group !== undefined),
      ...this.spanless.values(),
      this.overflow,
    ]);
    const indices = new Map<SpanGroup, number>();
    for (const [index, parts] of invocations.entries()) {
      for (const group of parts.groups) indices.set(group, index + 1);
    }
    this.resolved = { invocations, indices };
    return this.resolved;
  }

  private groupOfSpan(record: SpanStart | SpanEnd): SpanGroup {
    const index = this.table.indexOf(record.spanId);
    if (index === undefined) return this.knownGroup(record.spanId, record.parentSpanId) ?? this.overflow;
    if (!this.table.hasRecord(index)) {
      this.table.markRecord(index);
      this.groupAt(index).forgetLikelyInvocation(record.spanId);
    }
    // The parent of both root spans is the orchestrator's: what hangs on it is not one invocation.
    const name = eventName(record.eventType);
    if (name === 'Invocation' || name === 'Process') return this.groupAt(index);
    if (record.parentSpanId !== null) {
      this.noteEvidence(record.parentSpanId, record);
      this.joinWith(index, record.parentSpanId);
    }
    if (name === 'NodeEvaluated') {
      // Links lead from a node's evaluation to its processing, which hangs on the invocation itself.
      for (const link of record.links ?? []) if (link.traceId === record.traceId) this.joinWith(index, link.spanId);
    }
    return this.groupAt(index);
  }

  private groupOfLog({ resource }: LoggedRecord, record: LogRecord): SpanGroup {
    if (record.spanId === null) return this.spanlessGroup(resourceKey(resource), record);
    const index = this.table.indexOf(record.spanId);
    if (index === undefined) return this.overflow;
    this.noteEvidence(record.spanId, record);
    return this.groupAt(index);
  }

  /** Stores what a child or a log record says about a span whose record has not arrived. */
  private noteEvidence(id: SpanId, record: SpanStart | SpanEnd | LogRecord): void {
    const index = this.table.indexOf(id);
    if (index === undefined || this.table.hasRecord(index)) return;
    const evidence = parentEvidence(record);
    if (evidence === 0) return;
    this.table.markLikely(index, evidence === CERTAIN);
    this.groupAt(index).noteLikelyInvocation(id, evidence);
  }

  /** As `noteEvidence`, where a child shows surely that a span is an invocation span. */
  private noteCertain(index: number, high: number, low: number): void {
    if (this.table.isCertain(index)) return;
    this.table.markLikely(index, true);
    this.groupAt(index).noteLikelyInvocation(spanIdOf(high, low), CERTAIN);
  }

  private joinWith(index: number, id: SpanId): void {
    const otherIndex = this.table.indexOf(id);
    if (otherIndex !== undefined) this.joinIndices(index, otherIndex);
  }

  private joinIndices(index: number, otherIndex: number): void {
    const a = this.table.rootOf(index);
    const b = this.table.rootOf(otherIndex);
    if (a === b) return;
    // Most spans are joined before they carry any data: they have no group yet, and need none.
    const groupA = this.groups[this.table.groupOf(a)];
    const groupB = this.groups[this.table.groupOf(b)];
    const isInA = groupA !== undefined && (groupB === undefined || groupA.nodes.size >= groupB.nodes.size);
    if (isInA) this.joinRoots(a, groupA, b, groupB);
    else this.joinRoots(b, groupB, a, groupA);
  }

  private joinRoots(into: number, group: SpanGroup | undefined, from: number, other: SpanGroup | undefined): void {
    if (group !== undefined && other !== undefined) {
      group.merge(other);
      this.groups[this.table.groupOf(from)] = undefined;
    }
    this.table.join(into, from);
  }

  private groupAt(index: number): SpanGroup {
    const root = this.table.rootOf(index);
    const known = this.groups[this.table.groupOf(root)];
    if (known !== undefined) return known;
    const created = new SpanGroup();
    this.table.setGroup(root, this.groups.push(created) - 1);
    return created;
  }

  private knownGroup(id: SpanId, parentSpanId: SpanId | null): SpanGroup | undefined {
    const index = this.table.find(id) ?? (parentSpanId === null ? undefined : this.table.find(parentSpanId));
    return index === undefined ? undefined : this.groupAt(index);
  }

  private spanlessGroup(key: string, record: LogRecord): SpanGroup {
    const slice = this.sliceOf(key, record);
    const known = this.spanless.get(slice);
    if (known !== undefined) return known;
    if (this.spanless.size >= MAX_SPANLESS_SLICES) return this.overflow;
    const created = new SpanGroup();
    created.isSpanless = true;
    this.spanless.set(slice, created);
    return created;
  }

  private sliceOf(key: string, record: SpanStart | SpanEnd | LogRecord): string {
    const time = record.recordType === 'LogRecord' ? record.timeUnixNano : record.startTimeUnixNano;
    return `${time / SPANLESS_SLICE_NANO} ${key}`;
  }
}

/** What layouts' event types are to the run model. */
const KINDS = new WeakMap<EventLayout, RowKind>();

function kindOf(event: EventLayout): RowKind {
  let kind = KINDS.get(event);
  if (kind === undefined) {
    kind = rowKind(event.eventType);
    KINDS.set(event, kind);
  }
  return kind;
}

/** What is known of a span. */
const HAS_RECORD = 1;
const IS_LIKELY = 2;
const IS_CERTAIN = 4;
/** Less than any index. */
const NO_GROUP = -1;

/**
 * Span ids of a trace and which of them belong together: a union-find over ids, about 30 bytes a span and nothing else
 * of it. Joining is the same in any order.
 */
export class SpanTable {
  private readonly indices = new SpanIdTable();
  /** What each was joined with; of a root `NO_GROUP`, less the number of its group. */
  private parents = new Int32Array(64);
  private known = new Uint8Array(64);

  /** @param maxSpans ids beyond this many are not taken. */
  constructor(private readonly maxSpans: number) {}

  get size(): number {
    return this.indices.size;
  }

  /** Memory that it takes, in bytes. */
  get byteCount(): number {
    return this.indices.byteCount + this.parents.byteLength + this.known.byteLength;
  }

  find(id: SpanId): number | undefined {
    return this.indices.get(id);
  }

  /** Returns the span's index, given one if it is new; `undefined` when the table is full. */
  indexOf(id: SpanId): number | undefined {
    const [high, low] = spanIdHalves(id);
    return this.indexOfHalves(high, low);
  }

  /** As `indexOf`, for the two halves of an id. */
  indexOfHalves(high: number, low: number): number | undefined {
    const { indices } = this;
    const index = indices.size;
    if (index >= this.maxSpans) return indices.getHalves(high, low);
    const slot = indices.slotFor(high, low);
    if (indices.size === index) return indices.valueAt(slot);
    indices.setValueAt(slot, index);
    this.addRow(index);
    return index;
  }

  /** Returns the index of the set that this one was merged into. */
  rootOf(index: number): number {
    let root = index;
    for (let parent = this.parents[root] as number; parent >= 0; parent = this.parents[root] as number) {
      // Halve the path on the way, so that chains stay short.
      const grandparent = this.parents[parent] as number;
      if (grandparent < 0) return parent;
      this.parents[root] = grandparent;
      root = grandparent;
    }
    return root;
  }

  /** From now on everything joined with `from` is joined with `into`. Both are roots. */
  join(into: number, from: number): void {
    this.parents[from] = into;
  }

  /** Returns the number of the group of a root; 0 for none. */
  groupOf(root: number): number {
    return NO_GROUP - (this.parents[root] as number);
  }

  setGroup(root: number, group: number): void {
    this.parents[root] = NO_GROUP - group;
  }

  /** Returns whether a record of the span itself was seen. */
  hasRecord(index: number): boolean {
    return ((this.known[index] as number) & HAS_RECORD) !== 0;
  }

  markRecord(index: number): void {
    this.known[index] = (this.known[index] as number) | HAS_RECORD;
  }

  /** Returns whether others showed that it may be an invocation span. */
  isLikely(index: number): boolean {
    return ((this.known[index] as number) & IS_LIKELY) !== 0;
  }

  isCertain(index: number): boolean {
    return ((this.known[index] as number) & IS_CERTAIN) !== 0;
  }

  markLikely(index: number, isCertain: boolean): void {
    this.known[index] = (this.known[index] as number) | IS_LIKELY | (isCertain ? IS_CERTAIN : 0);
  }

  private addRow(index: number): void {
    if (index === this.parents.length) this.grow();
    this.parents[index] = NO_GROUP;
  }

  private grow(): void {
    this.parents = grown(this.parents);
    this.known = grown(this.known);
  }
}
