import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { Engine, type EngineBuild } from '../tool/engine.js';
import { buildPeer, PEERS, type Peer } from '../tool/peer-process.js';
import { basePython, PYTHONS, type PythonName, pythonWith } from '../tool/python-venv.js';

// What other suites need is installed or built here first, one after the other: it takes minutes where nothing is in the cache. Suites do it
// for themselves where this has not been run.
const ENGINES: readonly EngineBuild[] = ['core', 'fusion'];
const PYTHON_NAMES = Object.keys(PYTHONS) as PythonName[];
const PEER_NAMES = Object.keys(PEERS) as Peer[];

it.each(ENGINES)("the engine's build %s", (build) => {
  const engine = Engine.up(build);
  expect(engine.dbt).toContain(build);
  engine.remove();
});

it.for(PYTHON_NAMES)('a Python with %s', (name, { skip }) => {
  if (basePython(name) === undefined) return skip('there is no Python of a version that it needs');
  expect(pythonWith(name)).toContain(name);
});

it.each(PEER_NAMES)('%s', (peer) => buildPeer(peer));

it('the newest Node that is supported', () => {
  const command = ['test/tool/newest-node.mjs', 'node', '--version'];
  expect(execFileSync(process.execPath, command, { encoding: 'utf8' })).toMatch(/^v26\./);
});
