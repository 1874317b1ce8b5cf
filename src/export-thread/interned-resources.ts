import { type Resource, resourceKey } from '../record/resource.js';

/** Different resources that are remembered; the one used longest ago goes first. */
const MAX_RESOURCES = 1_000;

/** One object for each resource, however often it comes in a message: what is made of a resource is made once. */
export class InternedResources {
  private readonly byKey = new Map<string, Resource>();

  intern(resource: Resource): Resource {
    const key = resourceKey(resource);
    const known = this.byKey.get(key) ?? resource;
    this.byKey.delete(key);
    this.byKey.set(key, known);
    if (this.byKey.size > MAX_RESOURCES) {
      const [oldest] = this.byKey.keys();
      if (oldest !== undefined) this.byKey.delete(oldest);
    }
    return known;
  }
}
