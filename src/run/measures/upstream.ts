import { isUnitTestId, type Manifest } from '../../storage/manifest.js';
import { criticalPath, pathSteps, type Upstream } from './critical-path.js';
import type { CommandMeasures } from './run-totals.js';
import { grow } from './time-split.js';

/** A command with the critical path that its nodes' dependencies give. */
export function withDependencies(command: CommandMeasures, manifest: Manifest): CommandMeasures {
  const { invocation, nodes, unselectedNodes, hooks, phases } = command;
  const { endTimeUnixNano } = invocation;
  const all = [...nodes, ...unselectedNodes];
  const others = [
    ...hooks.map((hook) => ({ ...hook, kind: 'hook' as const })),
    ...phases.map((phase) => ({ ...phase, ...NO_HOOK })),
  ];
  const upstream = upstreamOf(new Set(all.map(({ uniqueId }) => uniqueId)), manifest);
  return { ...command, criticalPath: criticalPath(pathSteps(all, others, endTimeUnixNano), invocation, upstream) };
}

/** Returns what finds the nodes that a node is made of: of which what is not there stands for what that is made of. */
export function dependenciesOf(
  manifest: Manifest,
  isThere: (id: string) => boolean,
): (id: string) => readonly string[] {
  const made = new Map<string, readonly string[]>();
  const madeOf = (id: string): readonly string[] => {
    const known = made.get(id);
    if (known !== undefined) return known;
    // What is in a circle, which no project has, depends on nothing.
    made.set(id, []);
    const found = (manifest.get(id)?.dependsOn ?? []).flatMap((one) => (isThere(one) ? [one] : madeOf(one)));
    made.set(id, [...new Set(found)]);
    return made.get(id) ?? [];
  };
  return madeOf;
}

const NO_HOOK = { kind: 'phase', uniqueId: null, verdict: null, message: null } as const;

/**
 * What the nodes of a command wait for: what they are made of, of which what the command did not work on stands for what that is
 * made of; the tests of that alone, which `build` runs before what comes after; and of a model its unit tests.
 */
function upstreamOf(ids: ReadonlySet<string>, manifest: Manifest): Upstream {
  const madeOf = dependenciesOf(manifest, (id) => ids.has(id));
  const tests = new Map<string, string[]>();
  for (const id of ids) {
    const testedId = manifest.get(id)?.testedId;
    if (testedId != null) grow(tests, testedId, id);
  }
  return new Map(
    [...ids].map((id) => {
      const parents = madeOf(id);
      if (manifest.get(id)?.testedId != null) return [id, isUnitTestId(id) ? [] : parents];
      const isBefore = (test: string) => !isUnitTestId(test) && madeOf(test).every((one) => parents.includes(one));
      const before = parents.flatMap((one) => (tests.get(one) ?? []).filter(isBefore));
      return [id, [...parents, ...before, ...(tests.get(id) ?? []).filter(isUnitTestId)]];
    }),
  );
}
