import { describe, expect, test } from 'vitest';
import { childEnvironment, parseTraceparent, type Wiring } from '../../../src/exec/command-environment.js';

const WIRING: Wiring = {
  otlpUrl: 'http://127.0.0.1:40123',
  jsonlPath: '/private/otel.jsonl',
  stepId: 'step-1',
  parent: null,
  isParentOwn: false,
};
const wire = (user: Record<string, string>, wiring: Partial<Wiring> = {}) =>
  childEnvironment(user, { ...WIRING, ...wiring });

test("leads the engine's telemetry to the bridge, with queues that lose nothing", () => {
  expect(wire({ PATH: '/bin' })).toMatchObject({
    PATH: '/bin',
    DBT_EXPORT_TO_OTLP: 'true',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:40123',
    DBT_OTEL_FILE_NAME: '/private/otel.jsonl',
    OTEL_BSP_MAX_QUEUE_SIZE: '100000',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4096',
    OTEL_BLRP_MAX_QUEUE_SIZE: '100000',
    OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: '4096',
    OTEL_RESOURCE_ATTRIBUTES: 'run_bridge.step.id=step-1',
    NO_PROXY: '127.0.0.1,localhost',
    no_proxy: '127.0.0.1,localhost',
  });
});

test("keeps the user's own switches and sizes", () => {
  const user = { DBT_EXPORT_TO_OTLP: 'false', OTEL_BSP_MAX_QUEUE_SIZE: '7', DBT_OTEL_FILE_NAME: 'mine.jsonl' };
  expect(wire(user, { jsonlPath: null })).toMatchObject(user);
});

describe('an OTLP endpoint of the user', () => {
  const user = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/',
    OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'http://l/x',
  };

  test('gives way, each signal’s own too', () => {
    const environment = wire(user);
    expect(environment.OTEL_EXPORTER_OTLP_ENDPOINT).toBe('http://127.0.0.1:40123');
    expect(environment.OTEL_EXPORTER_OTLP_LOGS_ENDPOINT).toBeUndefined();
    expect(environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT).toBeUndefined();
  });

  test('goes on to get metrics, of which the bridge takes none', () => {
    expect(wire(user).OTEL_EXPORTER_OTLP_METRICS_ENDPOINT).toBe('http://collector:4318/v1/metrics');
    expect(wire({ ...user, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://m' })).toMatchObject({
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://m',
    });
    expect(wire({}).OTEL_EXPORTER_OTLP_METRICS_ENDPOINT).toBeUndefined();
  });
});

test('adds to resource attributes, in place of those of a command around it', () => {
  const user = { OTEL_RESOURCE_ATTRIBUTES: 'team=shop, run_bridge.step.id=outer ,,tier=1' };
  expect(wire(user).OTEL_RESOURCE_ATTRIBUTES).toBe('team=shop,tier=1,run_bridge.step.id=step-1');
});

test('adds which code a CI system runs, unless the user says it; the step comes last', () => {
  const ci = { GITLAB_CI: 'true', CI_PROJECT_URL: 'https://gitlab.com/acme/shop', CI_COMMIT_BRANCH: 'main' };
  const repository = 'vcs.repository.url.full=https://gitlab.com/acme/shop';
  expect(wire(ci).OTEL_RESOURCE_ATTRIBUTES).toBe(
    `${repository},vcs.ref.head.name=main,vcs.ref.head.type=branch,run_bridge.step.id=step-1`,
  );
  const user = { ...ci, OTEL_RESOURCE_ATTRIBUTES: 'vcs.ref.head.name=release, vcs.ref.head.type =tag' };
  expect(wire(user).OTEL_RESOURCE_ATTRIBUTES).toBe(
    `vcs.ref.head.name=release, vcs.ref.head.type =tag,${repository},run_bridge.step.id=step-1`,
  );
});

test.each([
  [{ NO_PROXY: 'corp' }, 'corp,127.0.0.1,localhost', 'corp,127.0.0.1,localhost'],
  [{ no_proxy: 'corp' }, 'corp,127.0.0.1,localhost', 'corp,127.0.0.1,localhost'],
  [{ NO_PROXY: 'a', no_proxy: 'b,localhost' }, 'a,127.0.0.1,localhost', 'b,localhost,127.0.0.1'],
  [{ NO_PROXY: '*' }, '*', '*'],
])('reaches the loopback address past a proxy: %j', (user, upper, lower) => {
  expect(wire(user)).toMatchObject({ NO_PROXY: upper, no_proxy: lower });
});

describe('a trace around the command', () => {
  const parent = parseTraceparent('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01') ?? null;

  test('becomes the invocation id and the parent span', () => {
    const user = { TRACEPARENT: 'theirs', TRACESTATE: 'a=1', BAGGAGE: 'b=2' };
    expect(wire(user, { parent })).toMatchObject({
      DBT_INVOCATION_ID: '4bf92f35-77b3-4da6-a3ce-929d0e0e4736',
      DBT_PARENT_SPAN_ID: '00f067aa0ba902b7',
      ...user,
    });
  });

  test('is named to the command where it is the program’s own', () => {
    expect(wire({}, { parent, isParentOwn: true }).TRACEPARENT).toBe(
      '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    );
  });
});
