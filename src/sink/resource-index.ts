import { type Resource, resourceKey, UNKNOWN_RESOURCE } from '../record/resource.js';

/** A line of resources.jsonl: a resource is first named, then each stretch of the log says whose it is. */
type Entry = { readonly id: number; readonly resource: Resource } | { readonly offset: number; readonly id: number };

/**
 * Which resource each stretch of a record log came from. The engine's envelope has no place for it, so it stands in
 * `resources.jsonl` beside the log: `{"id":1,"resource":{…}}` names a resource, `{"offset":0,"id":1}` says that the log
 * from that byte on is its. Of two entries for one offset the later one counts.
 */
export class ResourceIndex {
  private readonly resources: Resource[] = [];
  private readonly ids = new Map<string, number>();
  private readonly stretches: { offset: number; id: number }[] = [];

  /** Reads the lines of the file; a torn last line is passed over. */
  static parse(text: string): ResourceIndex {
    const index = new ResourceIndex();
    for (const line of text.split('\n').slice(0, -1)) index.apply(JSON.parse(line) as Entry);
    return index;
  }

  /** Says that the log from `offset` on belongs to a resource; returns the lines to append, empty where it does already. */
  switchTo(resource: Resource, offset: number): string {
    const key = resourceKey(resource);
    const known = this.ids.get(key);
    const id = known ?? this.resources.length + 1;
    const naming = known === undefined ? this.enter({ id, resource }) : '';
    return this.stretches.at(-1)?.id === id ? naming : naming + this.enter({ offset, id });
  }

  private resource(id: number): Resource {
    return this.resources[id - 1] ?? UNKNOWN_RESOURCE;
  }

  /** The resource of the record that begins at `offset`. */
  at(offset: number): Resource {
    let low = 0;
    let high = this.stretches.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.stretches[middle]?.offset ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    const stretch = this.stretches[low - 1];
    return stretch === undefined ? UNKNOWN_RESOURCE : this.resource(stretch.id);
  }

  private enter(entry: Entry): string {
    this.apply(entry);
    return `${JSON.stringify(entry)}\n`;
  }

  private apply(entry: Entry): void {
    if ('resource' in entry) {
      this.resources[entry.id - 1] = entry.resource;
      this.ids.set(resourceKey(entry.resource), entry.id);
    } else {
      // A crash between this file's sync and the log's leaves entries beyond the log's end; the next ones replace them.
      while ((this.stretches.at(-1)?.offset ?? -1) >= entry.offset) this.stretches.pop();
      this.stretches.push(entry);
    }
  }
}
