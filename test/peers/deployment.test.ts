import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { buildPeer, runPeer } from '../tool/peer-process.js';

const DASHBOARDS = 'deploy/grafana/dashboards';

beforeAll(() => buildPeer('deployment'));

it.each([
  { profiles: [], services: ['grafana', 'jaeger', 'prometheus', 'run-bridge'] },
  { profiles: ['tempo'], services: ['grafana-tempo', 'prometheus', 'run-bridge-tempo', 'tempo'] },
  {
    profiles: ['several'],
    services: ['bucket', 'build', 'grafana', 'jaeger', 'kafka', 'postgres', 'prometheus', 'receive', 'web'],
  },
])(
  'docker compose starts $services with the profiles $profiles, by its own reading of the file',
  ({ profiles, services }) => {
    const project = JSON.parse(runPeer('deployment', ['compose', 'docker-compose.yml', ...profiles]));
    expect(Object.keys(project.services).toSorted()).toEqual(services);
  },
);

it("dashboards are valid by Grafana's schema", () => {
  const files = readdirSync(DASHBOARDS).map((name) => join(DASHBOARDS, name));
  expect(files).toHaveLength(5);
  expect(runPeer('deployment', ['dashboard', ...files])).toBe('');
});
