import {
  asResource,
  isJsonObject,
  type JsonValue,
  type Resource,
  resourceKey,
  UNKNOWN_RESOURCE,
} from '../record/attributes.js';

/** A line of resources.jsonl: it defines a resource, or assigns a part of the log to one. */
type Entry = { readonly id: number; readonly resource: Resource } | { readonly offset: number; readonly id: number };

/**
 * The resource of each part of a record log. The engine's envelope has no field for it, so it is stored in
 * `resources.jsonl` beside the log: `{"id":1,"resource":{…}}` defines a resource, `{"offset":0,"id":1}` assigns the log
 * from that byte on to it. Of two entries for one offset the later one counts.
 */
export class ResourceIndex {
  private readonly resources = new Map<number, Resource>();
  private readonly ids = new Map<string, number>();
  private lastId = 0;
  private readonly ranges: { offset: number; id: number }[] = [];

  /** Reads the lines of the file; a torn last line and damaged lines are skipped. */
  static parse(text: string): ResourceIndex {
    const index = new ResourceIndex();
    for (const line of text.split('\n').slice(0, -1)) {
      const entry = parseEntry(line);
      if (entry !== undefined) index.apply(entry);
    }
    return index;
  }

  /** Assigns the log from `offset` on to a resource; returns the lines to append, empty if it is already assigned. */
  switchTo(resource: Resource, offset: number): string {
    const key = resourceKey(resource);
    const known = this.ids.get(key);
    const id = known ?? this.lastId + 1;
    const naming = known === undefined ? this.enter({ id, resource }) : '';
    const last = this.ranges.at(-1);
    // What a crash left beyond the log's end says nothing of what is written there now.
    const isAssigned = last !== undefined && last.id === id && last.offset <= offset;
    return isAssigned ? naming : naming + this.enter({ offset, id });
  }

  /** Returns the resource of the log's beginning; `undefined` where nothing was written. */
  get first(): Resource | undefined {
    const [range] = this.ranges;
    return range && this.resource(range.id);
  }

  private resource(id: number): Resource {
    return this.resources.get(id) ?? UNKNOWN_RESOURCE;
  }

  /** Returns the resource of the record that begins at `offset`. */
  at(offset: number): Resource {
    let low = 0;
    let high = this.ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.ranges[middle]?.offset ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    const range = this.ranges[low - 1];
    return range === undefined ? UNKNOWN_RESOURCE : this.resource(range.id);
  }

  /** Returns where in a part of the log another resource begins, and whose the part's beginning is; the first one is at `fromOffset`. */
  between(fromOffset: number, toOffset: number): readonly { readonly offset: number; readonly resource: Resource }[] {
    const within = this.ranges.filter(({ offset }) => offset > fromOffset && offset < toOffset);
    const first = { offset: fromOffset, resource: this.at(fromOffset) };
    return [first, ...within.map(({ offset, id }) => ({ offset, resource: this.resource(id) }))];
  }

  private enter(entry: Entry): string {
    this.apply(entry);
    return `${JSON.stringify(entry)}\n`;
  }

  private apply(entry: Entry): void {
    if ('resource' in entry) {
      this.resources.set(entry.id, entry.resource);
      this.lastId = Math.max(this.lastId, entry.id);
      this.ids.set(resourceKey(entry.resource), entry.id);
    } else {
      // A crash between this file's sync and the log's leaves entries beyond the log's end; the next ones replace them.
      while ((this.ranges.at(-1)?.offset ?? -1) >= entry.offset) this.ranges.pop();
      this.ranges.push(entry);
    }
  }
}

/** `undefined` for anything but an entry. */
function parseEntry(line: string): Entry | undefined {
  let value: JsonValue;
  try {
    value = JSON.parse(line) as JsonValue;
  } catch {
    return undefined;
  }
  if (!isJsonObject(value) || !Number.isSafeInteger(value.id) || Number(value.id) < 1) return undefined;
  if (Number.isSafeInteger(value.offset)) return value as Entry;
  return asResource(value.resource) && (value as Entry);
}
