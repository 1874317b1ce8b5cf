import type { Manifest } from '../../storage/manifest.js';
import { byVerdict } from '../verdict.js';
import type { NodeMeasure } from './node-measure.js';

/** A node of a graph: one that the command worked on, what such a node depends on, or the tests of one together. */
export interface GraphNode {
  /** Of tests together `tests of` and the unique id of what they test. */
  readonly uniqueId: string;
  /** `null` where the command did not work on it, and of tests together. */
  readonly measure: NodeMeasure | null;
  /** Tests of it that passed, where all did; of tests together all of them, the worst first. */
  readonly tests: readonly NodeMeasure[];
}

/** Nodes and what they depend on. */
export interface NodeGraph {
  readonly nodes: ReadonlyMap<string, GraphNode>;
  /** Unique ids of a node's parents and of its children, of those in the graph. */
  readonly parents: ReadonlyMap<string, readonly string[]>;
  readonly children: ReadonlyMap<string, readonly string[]>;
}

const TESTS_OF = 'tests of ';
const TESTS: ReadonlySet<string | null> = new Set(['test', 'unit_test']);

/** What says how a node ended, of tests together the worst of them; `null` where the command did not work on it. */
export function outcomeOf({ uniqueId, measure, tests }: GraphNode): NodeMeasure | null {
  return measure ?? (isTests(uniqueId) ? (tests[0] ?? null) : null);
}

/** Whether a node is the tests of one together. */
export function isTests(uniqueId: string): boolean {
  return uniqueId.startsWith(TESTS_OF);
}

export function isBadNode(node: GraphNode): boolean {
  const verdict = outcomeOf(node)?.verdict;
  return verdict === 'error' || verdict === 'failed';
}

/**
 * The graph of a command's nodes. Tests of one node are counted at it where all passed, else they are one node behind it.
 * @param manifest what nodes depend on; without one, only what was skipped hangs on what it was skipped for, and the others are left out
 */
export function nodeGraph(nodes: readonly NodeMeasure[], manifest: Manifest | null): NodeGraph {
  const measures = new Map(nodes.map((node) => [node.uniqueId, node]));
  const isDoubtful = ({ verdict }: NodeMeasure) => verdict !== 'success' && verdict !== 'skipped';
  const testedOf = ({ uniqueId, nodeType }: NodeMeasure) =>
    TESTS.has(nodeType) ? (manifest?.get(uniqueId)?.testedId ?? null) : null;
  const testsOf = new Map<string, NodeMeasure[]>();
  for (const node of nodes) {
    const tested = testedOf(node);
    if (tested === null) continue;
    const known = testsOf.get(tested);
    if (known === undefined) testsOf.set(tested, [node]);
    else known.push(node);
  }
  for (const tests of testsOf.values()) tests.sort(byVerdict);
  const together = new Map([...testsOf].filter(([, tests]) => tests.some(isDoubtful)).map(([id]) => [testsId(id), id]));
  const isDrawn = (node: NodeMeasure) =>
    manifest === null
      ? node.verdict === 'error' || node.verdict === 'failed' || node.skipUpstream !== null
      : !TESTS.has(node.nodeType) || (testedOf(node) === null && isDoubtful(node));
  const drawn = [...nodes.filter(isDrawn).map(({ uniqueId }) => uniqueId), ...together.keys()];
  const madeOf = (id: string): readonly string[] => {
    const tested = together.get(id);
    if (tested !== undefined) return [tested];
    const known = manifest?.get(id)?.dependsOn ?? [];
    const upstream = measures.get(id)?.skipUpstream ?? null;
    if (upstream === null) return known;
    // It waited for the tests of what it depends on, too.
    const tests = testsId(manifest?.get(upstream)?.testedId ?? '');
    if (together.has(tests)) return [...known, tests];
    return known.length > 0 ? known : [upstream];
  };
  const ids = new Set([...drawn, ...drawn.flatMap(madeOf)]);
  const parents = new Map(
    [...ids].map((id) => [id, [...new Set(madeOf(id))].filter((one) => ids.has(one) && one !== id)]),
  );
  const testsIn = (id: string): readonly NodeMeasure[] => {
    if (together.has(testsId(id))) return [];
    const tests = testsOf.get(together.get(id) ?? id) ?? [];
    return together.has(id) ? tests : tests.filter(({ verdict }) => verdict === 'success');
  };
  const graphNode = (uniqueId: string): GraphNode => ({
    uniqueId,
    measure: measures.get(uniqueId) ?? null,
    tests: testsIn(uniqueId),
  });
  return { nodes: new Map([...ids].map((id) => [id, graphNode(id)])), parents, children: reversed(parents) };
}

function testsId(testedId: string): string {
  return TESTS_OF + testedId;
}

function reversed(parents: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, readonly string[]> {
  const children = new Map<string, string[]>([...parents.keys()].map((id) => [id, []]));
  for (const [id, ids] of parents) for (const parent of ids) children.get(parent)?.push(id);
  return children;
}

/** The part of a graph that has these nodes alone. */
export function graphPart({ nodes, parents }: NodeGraph, ids: ReadonlySet<string>): NodeGraph {
  const kept = new Map([...nodes].filter(([id]) => ids.has(id)));
  const keptParents = new Map(
    [...kept.keys()].map((id) => [id, (parents.get(id) ?? []).filter((one) => kept.has(one))]),
  );
  return { nodes: kept, parents: keptParents, children: reversed(keptParents) };
}

/** Nodes with what is next to them: what they depend on, what depends on them, and what was skipped because of them. */
export function neighbourhood(graph: NodeGraph, ids: readonly string[]): ReadonlySet<string> {
  const found = new Set<string>();
  const isSkipped = (id: string) => graph.nodes.get(id)?.measure?.verdict === 'skipped';
  const waiting = ids.filter((id) => graph.nodes.has(id));
  for (const id of waiting) {
    if (found.has(id)) continue;
    found.add(id);
    for (const child of graph.children.get(id) ?? []) if (isSkipped(child)) waiting.push(child);
  }
  for (const id of ids) {
    for (const next of [...(graph.parents.get(id) ?? []), ...(graph.children.get(id) ?? [])]) found.add(next);
  }
  return found;
}

/** Where a node is drawn: its column from the left, and its height in rows. */
export interface GraphPosition {
  readonly uniqueId: string;
  readonly column: number;
  readonly row: number;
}

/** Sweeps that bring nodes near to what they hang on; further ones change little. */
const SWEEPS = 6;

/**
 * Lays out a graph from left to right: each node behind all that it depends on, in the order of its neighbours, so that few
 * lines cross. What is in a circle, which no project has, stands on the left.
 */
export function graphLayout(graph: NodeGraph): readonly GraphPosition[] {
  const columns = columnsOf(graph);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isForward = sweep % 2 === 0;
    const rows = new Map(columns.flatMap((ids) => ids.map((id, row) => [id, row] as const)));
    for (const ids of isForward ? columns : columns.toReversed()) {
      const near = isForward ? graph.parents : graph.children;
      const wish = new Map(ids.map((id, row) => [id, meanRow(near.get(id) ?? [], rows) ?? row]));
      ids.sort((a, b) => (wish.get(a) ?? 0) - (wish.get(b) ?? 0));
      for (const [row, id] of ids.entries()) rows.set(id, row);
    }
  }
  const rows = new Map<string, number>();
  const positions: GraphPosition[] = [];
  for (const [column, ids] of columns.entries()) {
    let next = 0;
    for (const uniqueId of ids) {
      const row = Math.max(next, Math.floor(meanRow(graph.parents.get(uniqueId) ?? [], rows) ?? next));
      rows.set(uniqueId, row);
      positions.push({ uniqueId, column, row });
      next = row + 1;
    }
  }
  return positions;
}

function meanRow(ids: readonly string[], rows: ReadonlyMap<string, number>): number | null {
  const known = ids.flatMap((id) => rows.get(id) ?? []);
  return known.length === 0 ? null : known.reduce((sum, row) => sum + row, 0) / known.length;
}

function columnsOf({ nodes, parents, children }: NodeGraph): string[][] {
  const columnOf = new Map<string, number>();
  const open = new Map([...parents].map(([id, ids]) => [id, ids.length]));
  const ready = [...nodes.keys()].filter((id) => open.get(id) === 0);
  const order: string[] = [];
  for (const id of ready) {
    order.push(id);
    columnOf.set(id, Math.max(-1, ...(parents.get(id) ?? []).map((parent) => columnOf.get(parent) ?? 0)) + 1);
    for (const child of children.get(id) ?? []) {
      const left = (open.get(child) ?? 0) - 1;
      open.set(child, left);
      if (left === 0) ready.push(child);
    }
  }
  // What hangs on nothing stands right before what depends on it.
  for (const id of order) {
    const next = (children.get(id) ?? []).map((child) => columnOf.get(child) ?? 1);
    if (parents.get(id)?.length === 0 && next.length > 0) columnOf.set(id, Math.max(0, Math.min(...next) - 1));
  }
  const columns: string[][] = [];
  for (const id of nodes.keys()) {
    const column = columnOf.get(id) ?? 0;
    while (columns.length <= column) columns.push([]);
    columns[column]?.push(id);
  }
  return columns;
}
