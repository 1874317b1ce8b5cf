import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { sharingProblems } from '../../src/cluster/sharing-problems.js';
import { fileSchema } from '../../src/config/read-configuration-file.js';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

// The keys of the Compose specification that the file uses, strictly: an unknown or misspelt one fails.
const duration = z.string().regex(/^\d+(ms|s|m|h)$/);
const service = z.strictObject({
  build: z.literal('.').optional(),
  image: z.string().regex(/^[a-z0-9/.-]+:v?\d+\.\d+\.\d+$/, 'an image has a full version as its tag'),
  command: z.array(z.string()),
  ports: z.array(z.string().regex(/^127\.0\.0\.1:\d+:\d+$/, 'ports are open on loopback only')),
  volumes: z.array(z.string().regex(/^[\w./-]+:\/[\w./-]+(:ro)?$/)),
  depends_on: z.array(z.string()).optional(),
  read_only: z.boolean().optional(),
  cap_drop: z.array(z.literal('ALL')).optional(),
  security_opt: z.array(z.literal('no-new-privileges:true')).optional(),
  restart: z.enum(['no', 'always', 'on-failure', 'unless-stopped']),
  stop_grace_period: duration.optional(),
  healthcheck: z
    .strictObject({
      test: z.tuple([z.literal('CMD')], z.string()),
      interval: duration,
      timeout: duration,
      retries: z.int().positive(),
    })
    .optional(),
});
const compose = z.strictObject({
  name: z.string(),
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.null()),
});

const file = compose.parse(parse(read('docker-compose.yml')));
const mounts = Object.values(file.services).flatMap((one) => one.volumes.map((volume) => volume.split(':')));

describe('docker-compose.yml', () => {
  test('starts the bridge, Jaeger, Tempo and Prometheus', () => {
    expect(Object.keys(file.services)).toEqual(['run-bridge', 'jaeger', 'tempo', 'prometheus']);
  });

  test('mounts files that are there and volumes that are declared', () => {
    const named = mounts.map(([source = '']) => source).filter((source) => !source.startsWith('./'));
    expect(named.every((name) => name in file.volumes)).toBe(true);
    for (const [source = ''] of mounts.filter(([source]) => source?.startsWith('./'))) {
      expect(existsSync(new URL(`../../${source}`, import.meta.url)), source).toBe(true);
    }
  });

  test('passes each program a configuration file that is mounted', () => {
    const targets = mounts.map(([, target]) => target);
    for (const { command } of Object.values(file.services)) {
      const path = command.join(' ').match(/\/etc\/\S+/)?.[0];
      expect(targets).toContain(path);
    }
  });

  test('has a health check for every service', () => {
    for (const [name, one] of Object.entries(file.services)) {
      expect(
        one.healthcheck !== undefined || (name === 'run-bridge' && /^HEALTHCHECK /m.test(read('Dockerfile'))),
      ).toBe(true);
    }
  });

  test('names only services and ports that are there as destinations of the bridge', () => {
    const schema = fileSchema({ baseDir: '/etc/run-bridge', homeDir: '/home/node' });
    const { destinations, values } = schema.parse(parse(read('deploy/run-bridge.yaml')));
    for (const { endpoint } of destinations) {
      const { hostname, port } = new URL(endpoint ?? '');
      expect(file.services).toHaveProperty(hostname);
      expect(read(`deploy/${hostname}.yaml`)).toContain(`http: { endpoint: "0.0.0.0:${port}" }`);
    }
    expect(mounts).toContainEqual(['data', values['data-dir']]);
    expect(file.services['run-bridge']?.ports).toEqual([
      `127.0.0.1:4318:${values.http?.port}`,
      `127.0.0.1:4317:${values.grpc === 'off' ? 'off' : values.grpc?.port}`,
      `127.0.0.1:4380:${values.web?.port}`,
    ]);
  });
});

describe('deploy/receiver.yaml', () => {
  test('is what a receiver in the image needs', () => {
    const schema = fileSchema({ baseDir: '/etc/run-bridge', homeDir: '/home/node' });
    const { values, journal } = schema.parse(parse(read('deploy/receiver.yaml')));
    expect(journal?.topics).toEqual({ traces: 'otlp_spans', logs: 'otlp_logs' });
    // Without a database no token is known, and the image listens everywhere.
    expect(values).toMatchObject({ role: 'receive', 'otlp-auth': 'none', http: { host: '0.0.0.0', port: 4318 } });
  });
});

describe('deploy/several.yaml', () => {
  test('is what processes of any role in the image need, with the secrets of the environment', () => {
    const schema = fileSchema({ baseDir: '/etc/run-bridge', homeDir: '/home/node' });
    const { values, journal } = schema.parse(parse(read('deploy/several.yaml')));
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
