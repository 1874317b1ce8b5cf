import type { CommandMeasures } from './run-totals.js';

/** What a command worked on, by its telemetry: what tells runs of other projects and targets from those that it may be compared with. */
export interface CommandScope {
  /** Its first word, such as `build`; `null` where it is not known. */
  readonly command: string | null;
  /** The target of its profile; `null` where it has none, or it is not known. */
  readonly target: string | null;
  /** The packages whose nodes it had: its own project, and those that this uses. In order. */
  readonly packages: readonly string[];
}

/** Packages that are kept; a project uses a dozen. */
const MAX_PACKAGES = 50;

/** Reads what a command worked on. */
export function scopeOf({ invocation, target, nodes, unselectedNodes }: CommandMeasures): CommandScope {
  const packages = new Set([...nodes, ...unselectedNodes].flatMap(({ uniqueId }) => uniqueId.split('.')[1] ?? []));
  return { command: invocation.command, target, packages: [...packages].sort().slice(0, MAX_PACKAGES) };
}

/**
 * Whether two runs are of one project, as far as their nodes say: a part of a project has some of its packages, and two projects
 * that use the same ones have each its own besides.
 */
export function isSameProject(one: readonly CommandScope[], other: readonly CommandScope[]): boolean {
  const [few = new Set(), many = new Set()] = [packagesOf(one), packagesOf(other)].sort((a, b) => a.size - b.size);
  return [...few].every((name) => many.has(name));
}

function packagesOf(scopes: readonly CommandScope[]): ReadonlySet<string> {
  return new Set(scopes.flatMap(({ packages }) => packages));
}

/** Commands and targets of a run as a text: what runs of no job have in common that may be compared. */
export function scopeKey(scopes: readonly CommandScope[]): string {
  return JSON.stringify(scopes.map(({ command, target }) => [command, target]));
}
