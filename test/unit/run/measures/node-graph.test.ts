import { describe, expect, it } from 'vitest';
import { graphLayout, type NodeGraph, neighbourhood, nodeGraph } from '../../../../src/run/measures/node-graph.js';
import type { Manifest } from '../../../../src/storage/manifest.js';
import { sampleMeasures } from './sample-measures.js';

const { nodes } = await sampleMeasures('build-mixed');

function manifestOf(
  edges: Readonly<Record<string, readonly string[]>>,
  tested: Readonly<Record<string, string>> = {},
): Manifest {
  const entries = Object.entries(edges).map(([id, dependsOn]) => {
    return [
      id,
      { tags: [], owners: [], group: null, testedId: tested[id] ?? null, dependsOn, checksum: null },
    ] as const;
  });
  return new Map(entries);
}

function graphOf(parents: Readonly<Record<string, readonly string[]>>): NodeGraph {
  const ids = Object.keys(parents);
  const children = new Map(ids.map((id) => [id, ids.filter((one) => parents[one]?.includes(id))]));
  return {
    nodes: new Map(ids.map((uniqueId) => [uniqueId, { uniqueId, measure: null, tests: [] }])),
    parents: new Map(Object.entries(parents)),
    children,
  };
}

describe('the graph of a command', () => {
  it('has what a manifest says nodes are made of, and counts passed tests where they belong', () => {
    const test = nodes.find(({ nodeType, verdict }) => nodeType === 'test' && verdict === 'success')?.uniqueId ?? '';
    const manifest = manifestOf(
      {
        'model.shop.broken': ['model.shop.stg_orders'],
        'model.shop.stg_orders': ['source.shop.raw.orders'],
        [test]: [],
      },
      { [test]: 'model.shop.stg_orders' },
    );
    const graph = nodeGraph(nodes, manifest);
    expect(graph.parents.get('model.shop.broken')).toEqual(['model.shop.stg_orders']);
    expect(graph.nodes.get('source.shop.raw.orders')?.measure).toBeNull();
    expect(graph.nodes.get('model.shop.stg_orders')?.tests.map(({ uniqueId }) => uniqueId)).toEqual([test]);
    expect(graph.nodes.has(test)).toBe(false);
  });

  it('has the tests of a node as one behind it where not all of them passed, and what was skipped for them behind that', () => {
    const ids = (verdict: string) =>
      nodes.flatMap((node) => (node.nodeType === 'test' && node.verdict === verdict ? [node.uniqueId] : []));
    const [passed = '', failed = ''] = [...ids('success'), ...ids('failed')].filter(
      (_, at, all) => at === 0 || at === all.length - 1,
    );
    const tested = { [passed]: 'model.shop.stg_orders', [failed]: 'model.shop.stg_orders' };
    const skipped = nodes.map((node) =>
      node.uniqueId === 'model.shop.after_broken' ? { ...node, skipUpstream: failed } : node,
    );
    const made = { 'model.shop.after_broken': ['model.shop.stg_orders'], [passed]: [], [failed]: [] };
    const graph = nodeGraph(skipped, manifestOf(made, tested));
    const together = graph.nodes.get('tests of model.shop.stg_orders');
    expect(together?.tests.map(({ uniqueId }) => uniqueId)).toEqual([failed, passed]);
    expect(graph.parents.get('tests of model.shop.stg_orders')).toEqual(['model.shop.stg_orders']);
    expect(graph.parents.get('model.shop.after_broken')).toEqual([
      'model.shop.stg_orders',
      'tests of model.shop.stg_orders',
    ]);
    expect(graph.nodes.get('model.shop.stg_orders')?.tests).toEqual([]);
    expect([graph.nodes.has(failed), graph.nodes.has(passed)]).toEqual([false, false]);
  });

  it('has without a manifest what failed and what was skipped because of it', () => {
    const graph = nodeGraph(nodes, null);
    expect(graph.children.get('model.shop.broken')).toContain('model.shop.after_broken');
    expect([...neighbourhood(graph, ['model.shop.broken'])]).toContain('model.shop.after_broken');
    expect([...neighbourhood(graph, ['model.shop.nowhere'])]).toEqual([]);
  });

  it('stands from left to right, each node behind all that it is made of, and none on another', () => {
    const places = graphLayout(graphOf({ a: [], b: ['a'], c: ['a', 'b'], d: ['c'], e: [], f: ['e', 'd'] }));
    const at = new Map(places.map((place) => [place.uniqueId, place]));
    const column = (id: string) => at.get(id)?.column;
    expect(['a', 'b', 'c', 'd', 'e', 'f'].map(column)).toEqual([0, 1, 2, 3, 3, 4]);
    expect(new Set(places.map((place) => `${place.column} ${place.row}`)).size).toBe(6);
  });

  it('is drawn where nodes are made of each other in a circle, and at 2,000 nodes', () => {
    expect(graphLayout(graphOf({ a: ['b'], b: ['a'], c: ['b'] }))).toHaveLength(3);
    const parents: Record<string, readonly string[]> = {};
    for (let at = 0; at < 2_000; at += 1) parents[`n${at}`] = at === 0 ? [] : [`n${Math.floor((at - 1) / 3)}`];
    const places = graphLayout(graphOf(parents));
    expect(new Set(places.map((place) => `${place.column} ${place.row}`)).size).toBe(2_000);
  });
});
