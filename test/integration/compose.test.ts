import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { sharingProblems } from '../../src/cluster/sharing-problems.js';
import { fileSchema } from '../../src/config/read-configuration-file.js';
import { SETTINGS } from '../../src/config/settings.js';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

// What is looked at here; test/peers/deployment.test.ts holds the whole file to the published schema.
const service = z.object({
  image: z.string().regex(/^[a-z0-9/.-]+:v?\d+\.\d+(\.\d+)?$/, 'an image has a full version as its tag'),
  profiles: z.array(z.string()).optional(),
  command: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.union([z.string(), z.number()])).default({}),
  ports: z.array(z.string().regex(/^127\.0\.0\.1:\d+:\d+$/, 'ports are open on loopback only')).default([]),
  expose: z.array(z.string()).default([]),
  networks: z.strictObject({ default: z.strictObject({ aliases: z.array(z.string()) }) }).optional(),
  volumes: z.array(z.string().regex(/^[\w./-]+:\/[\w./-]+(:ro)?$/)).default([]),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
});
const compose = z.object({ services: z.record(z.string(), service), volumes: z.record(z.string(), z.null()) });

const file = compose.parse(parse(read('docker-compose.yml'), { merge: true }));
const services = Object.entries(file.services);
const mounts = services.flatMap(([, one]) => one.volumes.map((volume) => volume.split(':')));
const PROFILES = ['jaeger', 'tempo', 'several'];

const configurationOf = (path: string) =>
  fileSchema({ baseDir: '/etc/run-bridge', homeDir: '/home/node' }).parse(parse(read(path)));

describe('docker-compose.yml', () => {
  test('starts the bridge, Jaeger, Prometheus and Grafana, where nothing else is said', () => {
    expect(read('.env')).toMatch(/^COMPOSE_PROFILES=jaeger$/m);
  });

  test('mounts files that are there and volumes that are declared', () => {
    const named = mounts.map(([source = '']) => source).filter((source) => !source.startsWith('./'));
    expect(new Set(named)).toEqual(new Set(Object.keys(file.volumes)));
    for (const [source = ''] of mounts.filter(([source]) => source?.startsWith('./'))) {
      expect(existsSync(new URL(`../../${source}`, import.meta.url)), source).toBe(true);
    }
  });

  test('passes each program a configuration file that is mounted', () => {
    for (const [name, { command, volumes }] of services) {
      const path = command.join(' ').match(/\/etc\/\S+/)?.[0];
      if (path !== undefined)
        expect(
          volumes.map((volume) => volume.split(':')[1]),
          name,
        ).toContain(path);
    }
  });

  test('has a health check for every service', () => {
    expect(read('Dockerfile')).toMatch(/^HEALTHCHECK /m);
    for (const [name, { image, healthcheck }] of services) {
      // One ends by itself.
      expect(healthcheck !== undefined || image.startsWith('run-bridge:') || name === 'topics', name).toBe(true);
    }
  });

  test.each(PROFILES)('with the profile %s names only services and ports that are declared', (profile) => {
    const started = services.filter(([, { profiles }]) => profiles?.includes(profile) !== false);
    const declared = new Set(
      started.flatMap(([name, { ports, expose, networks }]) =>
        [name, ...(networks?.default.aliases ?? [])].flatMap((host) =>
          [...ports.map((port) => port.split(':')[2]), ...expose].map((port) => `${host}:${port}`),
        ),
      ),
    );
    const texts = started.flatMap(([, { environment, volumes }]) => [
      ...Object.values(environment).map(String),
      ...volumes
        .map((volume) => volume.split(':')[0] ?? '')
        .filter((source) => /^\.\/deploy\/.*yaml$/.test(source))
        .map((source) => JSON.stringify(parse(read(source)))),
    ]);
    const hosts = [...new Set(services.flatMap(([name, one]) => [name, ...(one.networks?.default.aliases ?? [])]))];
    const named = texts.flatMap((text) =>
      Array.from(
        text.matchAll(new RegExp(`(?<=[/@"])(${hosts.join('|')}):(\\d+)`, 'g')),
        ([, host, port]) => `${host}:${port}`,
      ),
    );
    expect(named.length).toBeGreaterThan(2);
    for (const one of named) expect(declared).toContain(one);
    for (const signal of ['4318', '4380']) {
      expect(started.flatMap(([, { ports }]) => ports)).toContain(`127.0.0.1:${signal}:${signal}`);
    }
    expect(new Set(started.flatMap(([, { ports }]) => ports)).size).toBe(
      started.flatMap(([, { ports }]) => ports).length,
    );
  });

  test('has the bridge listen on the ports that are published, and people reach its pages there', () => {
    const { values } = configurationOf('deploy/run-bridge.yaml');
    expect(mounts).toContainEqual(['data', values['data-dir']]);
    for (const name of ['run-bridge', 'run-bridge-tempo']) {
      expect(file.services[name]?.ports).toEqual([
        `127.0.0.1:4318:${values.http?.port}`,
        `127.0.0.1:4317:${values.grpc === 'off' ? 'off' : values.grpc?.port}`,
        `127.0.0.1:4380:${values.web?.port}`,
      ]);
      const url = String(file.services[name]?.environment.RUN_BRIDGE_TRACE_URL);
      expect(SETTINGS['trace-url'].parse(url, { baseDir: '', homeDir: '' })).toBe(url);
    }
    expect(values['public-url']).toBe('http://127.0.0.1:4380');
  });

  test('has Jaeger and Tempo take what bridges export', () => {
    const { destinations } = configurationOf('deploy/run-bridge.yaml');
    expect(configurationOf('deploy/several.yaml').destinations).toEqual(destinations);
    for (const { endpoint } of destinations) {
      const { hostname, port } = new URL(endpoint ?? '');
      for (const backend of ['jaeger', 'tempo']) {
        expect(file.services[backend]?.networks?.default.aliases).toEqual([hostname]);
        expect(read(`deploy/${backend}.yaml`)).toContain(`http: { endpoint: "0.0.0.0:${port}" }`);
      }
    }
  });

  test('gives Grafana data sources that dashboards and links name', () => {
    const { datasources } = parse(read('deploy/grafana/datasources.yaml'));
    const uids = new Set(datasources.map(({ uid }: { readonly uid: string }) => uid));
    const named = readdirSync(new URL('../../deploy/grafana/dashboards', import.meta.url)).flatMap((name) =>
      Array.from(read(`deploy/grafana/dashboards/${name}`).matchAll(/"uid": "([^"]+)"/g), ([, uid]) => uid),
    );
    const dashboards = named.filter((uid) => uid?.startsWith('run-bridge-'));
    expect(new Set(named.filter((uid) => !dashboards.includes(uid)))).toEqual(new Set(['prometheus']));
    expect(uids).toEqual(new Set(['prometheus', 'traces']));
    expect(read('deploy/grafana/datasources.yaml')).toContain('datasourceUid: traces');
    const { providers } = parse(read('deploy/grafana/dashboards.yaml'));
    const paths = file.services.grafana?.volumes.map((volume) => volume.split(':')[1]);
    expect(paths).toContain(providers[0].options.path);
    expect(file.services.grafana?.environment.GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH).toBe(
      `${providers[0].options.path}/runs.json`,
    );
    expect(existsSync(new URL('../../deploy/grafana/dashboards/runs.json', import.meta.url))).toBe(true);
  });
});

describe('deploy/receiver.yaml', () => {
  test('is what a receiver in the image needs', () => {
    const { values, journal } = configurationOf('deploy/receiver.yaml');
    expect(journal?.topics).toEqual({ traces: 'otlp_spans', logs: 'otlp_logs' });
    // Without a database no token is known, and the image listens everywhere.
    expect(values).toMatchObject({ role: 'receive', 'otlp-auth': 'none', http: { host: '0.0.0.0', port: 4318 } });
  });
});

describe('deploy/several.yaml', () => {
  test('is what processes of any role in the image need, with the secrets of the environment', () => {
    const { values, journal } = configurationOf('deploy/several.yaml');
    const shared = { processes: 'several', artifacts: values.artifacts, journal } as const;
    const secrets = { 'database-url': 'postgresql://db/run_bridge', webhookKey: new Uint8Array(32) } as const;
    expect(values.processes).toBe('several');
    for (const role of ['all', 'build', 'web'] as const) {
      expect(sharingProblems({ ...shared, artifacts: shared.artifacts ?? 'folder', ...secrets, role }, true)).toEqual(
        [],
      );
    }
    for (const address of [values.http, values.grpc, values.web]) expect(address).toMatchObject({ host: '0.0.0.0' });
  });
});

describe('Dockerfile', () => {
  const lines = read('Dockerfile');

  test('is built on one long-term version of Node and runs as an ordinary user', () => {
    const images = [...lines.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
    expect(new Set(images).size).toBe(1);
    expect(images[0]).toMatch(/^node:24\.\d+\.\d+-/);
    expect(lines).toMatch(/^USER node$/m);
  });

  test('copies only what is there and what .dockerignore lets through', () => {
    const allowed = read('.dockerignore').match(/(?<=^!).+$/gm) ?? [];
    for (const [, sources = ''] of lines.matchAll(/^COPY (?!--from)(.+) \S+$/gm)) {
      for (const source of sources.split(' ')) {
        expect(allowed).toContain(source);
        expect(existsSync(new URL(`../../${source}`, import.meta.url)), source).toBe(true);
      }
    }
  });

  test('brings what the package brings, but for its documents', () => {
    const { files } = JSON.parse(read('package.json'));
    const [, image = ''] = lines.split(/^FROM .*\n(?=ENV)/m);
    const copied = [...image.matchAll(/^COPY (?:--from=\S+ )?(.+) \S+$/gm)].flatMap(([, sources = '']) =>
      sources.split(' ').map((path) => path.replace('/app/', '')),
    );
    const programs = files.filter((name: string) => !name.endsWith('.md'));
    expect(copied.toSorted()).toEqual(['node_modules', 'package.json', ...programs].toSorted());
  });
});
