import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../../src/config/configuration-error.js';
import { AS_USUAL } from '../../../src/config/duration.js';
import { findConfigurationFile } from '../../../src/config/find-configuration-file.js';
import { readConfigurationFile } from '../../../src/config/read-configuration-file.js';
import { type ConfigurationSources, resolveConfiguration } from '../../../src/config/resolve-configuration.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-config-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const resolve = (given: Partial<ConfigurationSources> = {}) => {
  const sources: ConfigurationSources = {
    flags: {},
    environment: {},
    workingDir: dir,
    homeDir: '/home/me',
    maxMemoryBytes: 2 ** 30,
    ...given,
  };
  const found = findConfigurationFile({ ...sources, flag: sources.flags.config });
  return resolveConfiguration(sources, found && readConfigurationFile(found, sources));
};
const write = (text: string) => writeFileSync(join(dir, 'run-bridge.yaml'), text);
const problemsOf = (sources: Partial<ConfigurationSources> = {}): readonly string[] => {
  try {
    resolve(sources);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems.map((one) => one.replaceAll(`${dir}/`, ''));
    throw error;
  }
  return [];
};
const originOf = (name: string, sources: Partial<ConfigurationSources> = {}) =>
  resolve(sources)
    .rows.find((row) => row.name === name)
    ?.origin.replaceAll(`${dir}/`, '');

describe('without anything said', () => {
  test('every setting has its default', () => {
    expect(resolve().configuration).toEqual({
      http: { host: '127.0.0.1', port: 4318 },
      grpc: { host: '127.0.0.1', port: 4317 },
      web: { host: '127.0.0.1', port: 4380 },
      'otlp-auth': 'auto',
      'allowed-hosts': [],
      'engine-names': [],
      'data-dir': '/home/me/.local/share/run-bridge',
      'database-url': 'off',
      processes: 'one',
      role: 'all',
      parquet: true,
      jsonl: 'off',
      'max-body-bytes': 67_108_864,
      durability: 'fsync',
      'max-memory': 1_073_741_824,
      'max-disk': 'off',
      'disk-reserve': 'auto',
      'invocation-quiet': 2_000,
      'invocation-silence': 600_000,
      'event-hold': 2_000,
      'max-backlog-age': 604_800_000,
      'max-running-jobs': 1,
      'node-metrics': 0,
      'warehouse-price': 'off',
      'platform-url': 'off',
      'platform-account': 'off',
      'platform-interval': 60_000,
      artifacts: 'folder',
      'max-artifact-bytes': 268_435_456,
      'retain-telemetry': { maxAgeMs: null, maxBytes: null },
      'retain-artifacts': { maxAgeMs: null, maxBytes: null },
      'retain-deliveries': { maxAgeMs: 7 * 86_400_000, maxBytes: null },
      redaction: 'literals',
      'log-level': 'info',
      'log-format': 'auto',
      chosen: new Set(),
      mapping: { events: true, verdicts: true, attributes: true, names: true, gaps: true },
      destinations: [],
      kafkaSource: null,
      journal: null,
      jobs: [],
      projects: [],
      environments: [],
      environmentDestination: undefined,
      environmentMetrics: undefined,
      metricsIntervalMs: 60_000,
      resourceOverrides: {},
      'webhook-allow': [],
      'webhook-retries': [10_000, 60_000, 600_000, 3_600_000],
      'webhook-proxy': 'off',
      'notify-on-archive': 'off',
      'public-url': 'off',
      'trace-url': 'off',
      'smtp-url': 'off',
      'smtp-from': 'run-bridge@localhost',
      webhookKey: null,
      platformSecrets: { token: null, hookSecret: null },
      bucketEnvironment: null,
    });
  });

  test('gRPC is off, or somewhere else, for who says so; a setting that is set counts as chosen', () => {
    const { configuration } = resolve({ flags: { grpc: 'off' }, environment: { RUN_BRIDGE_WEB: '1' } });
    expect(configuration.grpc).toBe('off');
    expect(configuration.chosen).toEqual(new Set(['grpc', 'web']));
    expect(resolve({ flags: { grpc: '1' } }).configuration.grpc).toEqual({ host: '127.0.0.1', port: 1 });
    expect(() => resolve({ flags: { grpc: 'no' } })).toThrow(/is not off, an address such as 127.0.0.1:4317/);
  });

  test('data goes to XDG_DATA_HOME where that is set', () => {
    expect(resolve({ environment: { XDG_DATA_HOME: '/data' } }).configuration['data-dir']).toBe('/data/run-bridge');
  });
});

describe('precedence', () => {
  const environment = { RUN_BRIDGE_HTTP: '127.0.0.1:2' };
  test('a flag beats the environment, that beats the file, that beats the default', () => {
    write('http: 127.0.0.1:3\n');
    expect(resolve({ flags: { http: '1' }, environment }).configuration.http.port).toBe(1);
    expect(resolve({ environment }).configuration.http.port).toBe(2);
    expect(resolve().configuration.http.port).toBe(3);
    write('');
    expect(resolve().configuration.http.port).toBe(4318);
  });

  test('each value tells where it came from', () => {
    write('# comment\nhttp: 127.0.0.1:3\n');
    expect(originOf('http', { flags: { http: '1' }, environment })).toBe('--http');
    expect(originOf('http', { environment })).toBe('RUN_BRIDGE_HTTP');
    expect(originOf('http')).toBe('run-bridge.yaml:2');
    expect(originOf('web')).toBe('default');
  });

  test('an empty variable counts as unset', () => {
    expect(originOf('http', { environment: { RUN_BRIDGE_HTTP: '' } })).toBe('default');
  });
});

describe('limits', () => {
  test('are sizes, or a word where that makes sense', () => {
    const flags = { 'max-memory': '512MiB', 'max-disk': '20 GB', 'disk-reserve': 'OFF', durability: 'os' };
    expect(resolve({ flags }).configuration).toMatchObject({
      'max-memory': 512 * 2 ** 20,
      'max-disk': 20e9,
      'disk-reserve': 'off',
      durability: 'os',
    });
    write('max-disk: off\ndisk-reserve: 500MB\nmax-memory: 1GiB\n');
    expect(resolve().configuration).toMatchObject({ 'max-disk': 'off', 'disk-reserve': 500e6, 'max-memory': 2 ** 30 });
  });

  test('that make no sense are refused, with what would', () => {
    const flags = { 'max-memory': '64MiB', 'max-disk': '0', 'disk-reserve': '-1', durability: 'none' };
    expect(problemsOf({ flags })).toEqual([
      '--durability: "none" is not one of fsync, os',
      '--max-memory: "64MiB" is not a size of at least 256MiB, such as 1GiB',
      '--max-disk: "0" is not off or a size such as 64MiB or 500000',
      '--disk-reserve: "-1" is not auto, off or a size such as 64MiB or 500000',
    ]);
  });
});

describe('the configuration file', () => {
  test('is found by flag, variable, in the working directory and in XDG_CONFIG_HOME, in this order', () => {
    mkdirSync(join(dir, 'xdg', 'run-bridge'), { recursive: true });
    const file = (name: string, port: number) => writeFileSync(join(dir, name), `http: ${port}\n`);
    const environment = { XDG_CONFIG_HOME: join(dir, 'xdg') };
    file('xdg/run-bridge/run-bridge.yaml', 4);
    expect(resolve({ environment }).configuration.http.port).toBe(4);
    file('run-bridge.yaml', 3);
    expect(resolve({ environment }).configuration.http.port).toBe(3);
    file('b.yaml', 2);
    const withVariable = { ...environment, RUN_BRIDGE_CONFIG: 'b.yaml' };
    expect(resolve({ environment: withVariable }).configuration.http.port).toBe(2);
    file('a.yaml', 1);
    expect(resolve({ environment: withVariable, flags: { config: 'a.yaml' } }).configuration.http.port).toBe(1);
  });

  test('that is named and not there is a problem', () => {
    expect(problemsOf({ flags: { config: 'no.yaml' } })).toEqual(['configuration file no.yaml: there is no such file']);
  });

  test('reads relative paths from its own folder, others from the working directory', () => {
    write('data-dir: data\njsonl: ~/all.jsonl\n');
    expect(resolve({ workingDir: dir }).configuration).toMatchObject({
      'data-dir': join(dir, 'data'),
      jsonl: '/home/me/all.jsonl',
    });
    expect(
      resolve({ flags: { 'data-dir': 'x', config: join(dir, 'run-bridge.yaml') }, workingDir: '/' }).configuration,
    ).toMatchObject({ 'data-dir': '/x' });
  });

  test('describes named destinations', () => {
    write(`
destinations:
  jaeger:
    endpoint: http://jaeger:4318
    signals: traces
    trace-url: http://jaeger:16686/trace/{trace_id}
  vendor:
    traces-endpoint: https://vendor.example/v1/traces
    headers: { Authorization: 'Bearer \${env:TOKEN}' }
    compression: gzip
    protocol: http/json
    timeout: 3s
    max-backlog-age: 12h
    redaction: off
    mapping: { names: off }
    resource: { service.name: nightly, team: "\${env:TEAM:-data}", tier: 1 }
  mine: { exporter: ./exporter.mjs, max-backlog-age: off }
  sdk: { protocol: sdk, endpoint: "http://tempo:4318" }
`);
    const { configuration, rows } = resolve({ environment: { TOKEN: 'secret' } });
    expect(configuration.destinations).toEqual([
      {
        name: 'jaeger',
        endpoint: 'http://jaeger:4318',
        tracesEndpoint: null,
        logsEndpoint: null,
        signals: ['traces'],
        hasMetrics: true,
        headers: {},
        protocol: 'http/protobuf',
        compression: 'none',
        timeoutMs: 10_000,
        maxBacklogAgeMs: null,
        traceUrl: 'http://jaeger:16686/trace/{trace_id}',
        redaction: null,
        mapping: {},
        resource: {},
        exporterModule: null,
        kafka: null,
      },
      {
        name: 'vendor',
        endpoint: null,
        tracesEndpoint: 'https://vendor.example/v1/traces',
        logsEndpoint: null,
        signals: ['traces', 'logs'],
        hasMetrics: false,
        headers: { authorization: 'Bearer secret' },
        protocol: 'http/json',
        compression: 'gzip',
        timeoutMs: 3_000,
        maxBacklogAgeMs: 43_200_000,
        traceUrl: null,
        redaction: 'off',
        mapping: { names: false },
        resource: { 'service.name': 'nightly', team: 'data', tier: 1 },
        exporterModule: null,
        kafka: null,
      },
      expect.objectContaining({
        name: 'mine',
        endpoint: null,
        maxBacklogAgeMs: 'off',
        protocol: 'sdk',
        signals: ['traces'],
        timeoutMs: 30_000,
        exporterModule: join(dir, 'exporter.mjs'),
      }),
      expect.objectContaining({
        ...{ name: 'sdk', endpoint: 'http://tempo:4318', protocol: 'sdk', signals: ['traces'], timeoutMs: 10_000 },
        exporterModule: null,
      }),
    ]);
    expect(JSON.stringify(rows)).not.toContain('secret');
    expect(rows).toContainEqual(
      expect.objectContaining({ name: 'destinations.vendor.headers.authorization', value: '****' }),
    );
  });

  test.each([
    ['http://user:p4ss@word@[::1', '"http://****@[::1"'],
    ['https://t0ken@host:port/', '"https://****@host:port/"'],
    ['me:p4ss@host:4318', '"****@host:4318"'],
    ['postgres://me:p4ss@host/db?password=p4ss', '"postgres://****:****@host/db?****"'],
  ])('shows no password of a URL that is none: %s', (url, shown) => {
    write(`destinations: { a: { endpoint: ${JSON.stringify(url)} } }\npublic-url: ${JSON.stringify(url)}\n`);
    expect([...problemsOf()].sort()).toEqual([
      `run-bridge.yaml:1: destinations.a.endpoint ${shown} is not a URL such as http://127.0.0.1:4318`,
      expect.stringContaining(`run-bridge.yaml:2: public-url ${shown} is not `),
    ]);
    expect(problemsOf({ flags: { 'platform-url': url } })).toContainEqual(
      expect.stringContaining(`--platform-url: ${shown} is not `),
    );
  });

  test('names a variable that it needs and that is not set', () => {
    write(`data-dir: \${env:WHERE}\n`);
    expect(problemsOf()).toEqual([
      `run-bridge.yaml: \${env:WHERE} stands for an environment variable that is not set; set WHERE`,
    ]);
  });

  test.each([
    ['jobs: &all\n  nightly: *all\n', 'run-bridge.yaml:2: *all stands inside of what it stands for; write it out'],
    [
      'jobs: &all\n  a: { env: [&one [*one]] }\n',
      'run-bridge.yaml:2: *one stands inside of what it stands for; write it out',
    ],
    [
      'jobs: &all\n  a:\n    env: { ? *all : 1 }\n',
      'run-bridge.yaml:3: *all stands inside of what it stands for; write it out',
    ],
    ['log-level: info\nhttp: *port\n', 'run-bridge.yaml:2: *port stands for nothing: no &port comes before it'],
    ['log-level: info\n---\nparquet: off\n', 'run-bridge.yaml:2: has a second document; take out the ---'],
  ])('whose aliases or documents cannot be read says so with the line: %j', (text, problem) => {
    write(text);
    expect(problemsOf()).toEqual([problem]);
  });

  test.each([
    ['by tens', (level: number) => `[${Array.from({ length: 10 }, () => `*l${level - 1}`).join(', ')}]`],
    ['by twos, as values of keys', (level: number) => `{ a: *l${level - 1}, b: *l${level - 1} }`],
  ])('in which aliases stand for aliases, %s, says where they become too many', (_, line) => {
    const levels = Array.from(
      { length: 40 },
      (_, level) => `l${level}: &l${level} ${level === 0 ? '[x]' : line(level)}`,
    );
    write(`${levels.join('\n')}\n`);
    const [problem = '', ...more] = problemsOf();
    expect(more).toEqual([]);
    expect(problem).toMatch(
      /^run-bridge\.yaml:\d+: with \*l\d+ the file has more than 20000 values by aliases; use fewer of them$/,
    );
  });

  test('that is nested too deeply says so with the line', () => {
    write(`log-level: info\njobs: ${'['.repeat(20_000)}`);
    expect(problemsOf()[0]).toBe('run-bridge.yaml:2: is nested too deeply');
  });

  test('may say a thing once and name it again', () => {
    write(
      'jobs:\n  a: &job { command: dbt build, env: &env { A: "1" } }\n  b: *job\n  c: { command: dbt test, env: *env }\n',
    );
    const { jobs } = resolve().configuration;
    expect(jobs.map(({ name, variables }) => [name, variables])).toEqual([
      ['a', { A: '1' }],
      ['b', { A: '1' }],
      ['c', { A: '1' }],
    ]);
  });

  test('that is not YAML says so with the line', () => {
    write('http: 1\nweb: [\n');
    expect(problemsOf()[0]).toMatch(/^run-bridge\.yaml:\d: /);
  });
});

test('all problems are reported at once, each with its place and what would be right', () => {
  write(`
htpp: 127.0.0.1:4318
parquet: maybe
colour: red
mapping: { name: on, events: traces }
destinations:
  jaeger: { endpiont: http://jaeger:4318, endpoint: jaeger:4318, signals: [metrics], trace-url: "javascript:alert({trace_id})" }
  nowhere: {}
  logs: { protocol: sdk, logs-endpoint: "http://127.0.0.1:1", signals: logs }
  tempo: http://tempo:4318
`);
  const flags = { http: '127.0.0.1:99999' };
  expect(problemsOf({ flags, environment: { RUN_BRIDGE_EVENT_HOLD: '2 parsecs' } })).toMatchInlineSnapshot(`
    [
      "run-bridge.yaml:3: parquet "maybe" is not on or off",
      "run-bridge.yaml:5: mapping.events "traces" is not on, off or logs",
      "run-bridge.yaml:5: mapping.name is not a setting; did you mean names?",
      "run-bridge.yaml:7: destinations.jaeger.endpoint "jaeger:4318" is not a URL such as http://127.0.0.1:4318",
      "run-bridge.yaml:7: destinations.jaeger.signals is not traces, logs or a list of them",
      "run-bridge.yaml:7: destinations.jaeger.trace-url "javascript:alert({trace_id})" is not a URL with {trace_id} in it, such as http://127.0.0.1:16686/trace/{trace_id}",
      "run-bridge.yaml:7: destinations.jaeger.endpiont is not a setting; did you mean endpoint?",
      "run-bridge.yaml:8: destinations.nowhere needs an endpoint, for example "endpoint: http://127.0.0.1:4318"",
      "run-bridge.yaml:9: destinations.logs needs an endpoint, for example "endpoint: http://127.0.0.1:4318"",
      "run-bridge.yaml:9: destinations.logs has "protocol: sdk", which exports spans; give it "signals: traces"",
      "run-bridge.yaml:10: destinations.tempo is not a list of settings such as "endpoint: http://127.0.0.1:4318"",
      "run-bridge.yaml:2: htpp is not a setting; did you mean http?",
      "run-bridge.yaml:4: colour is not a setting; see "run-bridge config" for all of them",
      "--http: "127.0.0.1:99999" is not an address such as 127.0.0.1:4318 or a port from 0 to 65535",
      "RUN_BRIDGE_EVENT_HOLD: "2 parsecs" is not a time such as 500ms, 2s or 10m",
    ]
  `);
});

test('events as log records alone are for destinations that get those', () => {
  write(`
mapping: { events: off }
destinations:
  loki: { endpoint: "http://loki:4318", mapping: { events: logs } }
`);
  const { configuration, rows } = resolve();
  expect(configuration.mapping.events).toBe(false);
  expect(configuration.destinations[0]?.mapping).toEqual({ events: 'logs' });
  expect(rows).toContainEqual(expect.objectContaining({ name: 'destinations.loki.mapping.events', value: 'logs' }));
  write(`
mapping: { events: LOGS }
destinations:
  jaeger: { endpoint: "http://jaeger:4318", signals: traces, mapping: { events: logs } }
  sdk: { endpoint: "http://jaeger:4318", protocol: sdk, signals: traces, mapping: { events: logs } }
  tempo: { endpoint: "http://tempo:4318", signals: traces }
`);
  const nothing = 'has "events: logs" and gets no log records; it would get no events at all';
  expect(problemsOf()).toEqual([
    `run-bridge.yaml:4: destinations.jaeger ${nothing}`,
    `run-bridge.yaml:5: destinations.sdk ${nothing}`,
  ]);
});

test('settings that there were are refused, with what to use now', () => {
  write(`
retain-telemetry-age: 90d
mapping: { test-errors: off }
destinations:
  jaeger: { endpoint: "http://jaeger:4318", mapping: { log-records: off } }
`);
  expect(problemsOf({ environment: { RUN_BRIDGE_PLATFORM_MAX_FILE: '1GiB' } })).toEqual([
    'run-bridge.yaml:3: mapping.test-errors is not a setting any more; use mapping.verdicts',
    'run-bridge.yaml:5: destinations.jaeger.mapping.log-records is not a setting any more; give destinations that are to have no log records "signals: traces"',
    'run-bridge.yaml:2: retain-telemetry-age is not a setting any more; use retain-telemetry, such as 90d, 50GiB or 90d,50GiB',
    'RUN_BRIDGE_PLATFORM_MAX_FILE is not a setting any more; leave it out: a file of a hosted run may have 512 MiB',
  ]);
});

describe('variables that no setting has', () => {
  test('are reported when they look like a misspelt one', () => {
    expect(resolve({ environment: { RUN_BRIDGE_HTPP: '1' } }).warnings).toEqual([
      'RUN_BRIDGE_HTPP is not a setting; did you mean RUN_BRIDGE_HTTP?',
    ]);
  });

  test('that Kubernetes sets for a service of that name are passed over', () => {
    const environment = { RUN_BRIDGE_PORT: 'tcp://10.0.0.1:4318', RUN_BRIDGE_SERVICE_HOST: '10.0.0.1' };
    expect(resolve({ environment }).warnings).toEqual([]);
  });
});

describe('the hosted platform', () => {
  const url = (text: string) => resolve({ flags: { 'platform-url': text } }).configuration['platform-url'];

  test('is named by its address, with or without a slash and the path of its API', () => {
    for (const end of ['', '/', '/api', '/api/v2', '/api/v2/']) {
      expect(url(`https://platform.example${end}`)).toBe('https://platform.example');
      expect(url(`http://127.0.0.1:8080/proxy${end}`)).toBe('http://127.0.0.1:8080/proxy');
    }
    expect(url('off')).toBe('off');
  });

  test.each([
    ['platform.example', 'platform.example'],
    ['ftp://platform.example', 'ftp://platform.example'],
    ['https://user:word@platform.example', 'https://****:****@platform.example/'],
  ])('has no address such as %s', (text, shown) => {
    expect(problemsOf({ flags: { 'platform-url': text } })).toEqual([
      `--platform-url: "${shown}" is not a URL such as https://cloud.example.com, or off`,
    ]);
  });

  test('is asked no more often than every 5 s, and once a day at least', () => {
    for (const interval of ['4s', '25h', 'soon']) {
      expect(problemsOf({ flags: { 'platform-interval': interval } })).toEqual([
        `--platform-interval: "${interval}" is not a time from 5s to 1d`,
      ]);
    }
  });

  test('has accounts with numbers of any length', () => {
    const account = (text: string) =>
      resolve({ flags: { 'platform-account': text } }).configuration['platform-account'];
    expect([account('00070471823'), account('99999999999999999')]).toEqual(['70471823', '99999999999999999']);
    expect(problemsOf({ flags: { 'platform-account': '12/../13' } })).toHaveLength(1);
  });

  test('has its secrets from the environment alone, and shows none of them', () => {
    const environment = { RUN_BRIDGE_PLATFORM_TOKEN: ' a-token\n', RUN_BRIDGE_PLATFORM_HOOK_SECRET: 'a secret' };
    const { configuration, rows, warnings } = resolve({ environment });
    expect(configuration.platformSecrets).toEqual({ token: 'a-token', hookSecret: 'a secret' });
    expect(JSON.stringify(rows)).not.toMatch(/a-token|a secret/);
    expect(rows).toContainEqual({ name: 'platform-token', value: '****', origin: 'RUN_BRIDGE_PLATFORM_TOKEN' });
    expect(warnings).toEqual([]);
    write('platform-token: secret\n');
    expect(problemsOf()).toEqual([expect.stringMatching(/^run-bridge.yaml:1: platform-token is not a setting/)]);
  });

  test('has no token with a space in it, which is not repeated', () => {
    expect(problemsOf({ environment: { RUN_BRIDGE_PLATFORM_TOKEN: 'Token abc' } })).toEqual([
      'RUN_BRIDGE_PLATFORM_TOKEN: contains a space or a line break; set it to the token alone',
    ]);
  });
});

describe('jobs', () => {
  test('have commands as lines and as lists of arguments, and what belongs to them', () => {
    write(`
jobs:
  nightly:
    project: shop
    environment: production
    command:
      - dbt seed
      - [dbt, run, --vars, "{a: 1}", --threads, 4]
    working-dir: ./shop
    env: { DBT_TARGET: prod, WORKERS: 4 }
    target: prod
    threads: 8
    timeout: 2h
    expect: every 24h
    steps-override: true
  named-only:
  one-line: { command: dbt build, expect: usual }
`);
    const nothing = {
      id: null,
      match: [],
      project: null,
      environment: null,
      variables: {},
      targetName: null,
      threads: null,
      timeoutMs: null,
      expectMs: null,
      takesOtherSteps: false,
    };
    expect(resolve().configuration.jobs).toEqual([
      {
        name: 'nightly',
        id: null,
        match: [],
        project: 'shop',
        environment: 'production',
        commands: [
          ['dbt', 'seed'],
          ['dbt', 'run', '--vars', '{a: 1}', '--threads', '4'],
        ],
        workingDir: join(dir, 'shop'),
        variables: { DBT_TARGET: 'prod', WORKERS: '4' },
        targetName: 'prod',
        threads: 8,
        timeoutMs: 7_200_000,
        expectMs: 86_400_000,
        takesOtherSteps: true,
      },
      { ...nothing, name: 'named-only', commands: [], workingDir: dir },
      { ...nothing, name: 'one-line', commands: [['dbt', 'build']], workingDir: dir, expectMs: AS_USUAL },
    ]);
  });

  test('are shown with their values of variables masked', () => {
    write(
      'jobs:\n  nightly:\n    command: [dbt seed, "sh -c \'a; b\'"]\n    env: { PASSWORD: secret }\n    steps-override: true\n    expect: every 90m\n',
    );
    const rows = resolve().rows.filter(({ name }) => name.startsWith('jobs.'));
    expect(rows.map(({ name, value }) => [name, value])).toEqual([
      ['jobs.nightly.command.1', 'dbt seed'],
      ['jobs.nightly.command.2', "sh -c 'a; b'"],
      ['jobs.nightly.steps-override', 'true'],
      ['jobs.nightly.working-dir', dir],
      ['jobs.nightly.env.PASSWORD', '****'],
      ['jobs.nightly.expect', 'every 90m'],
    ]);
    expect(originOf('jobs.nightly.command.1')).toBe('run-bridge.yaml:2');
  });

  test('that are wrong are reported all at once, each with its line', () => {
    write(`
jobs:
  a: { command: dbt seed && dbt run }
  b: { command: [dbt seed, [], "x 'y", { z: 1 }] }
  c: { comand: dbt run, threads: 0, timeout: soon, env: [], expect: 24h }
  d: { command: [] }
  e: dbt run
  f:
    command: [[sh, -c, dbt build]]
    steps-override: true
  g: { steps-override: always }
`);
    expect(problemsOf()).toEqual([
      expect.stringMatching(
        /^run-bridge.yaml:3: jobs.a.command "dbt seed && dbt run" has a & outside of single quotes, .* or write \[sh, -c, '…'\]$/,
      ),
      'run-bridge.yaml:4: jobs.b.command.1 has no program',
      `run-bridge.yaml:4: jobs.b.command.2 "x 'y" has a ' that is not closed`,
      'run-bridge.yaml:4: jobs.b.command.3 is not a line such as "dbt build" or a list of arguments',
      'run-bridge.yaml:5: jobs.c.env is not a list of variables',
      'run-bridge.yaml:5: jobs.c.threads is less than 1',
      'run-bridge.yaml:5: jobs.c.timeout "soon" is not a time such as 30m or 2h',
      'run-bridge.yaml:5: jobs.c.expect must be a time from 1m to 31d after the word every, such as every 24h, or usual',
      'run-bridge.yaml:5: jobs.c.comand is not a setting; did you mean command?',
      'run-bridge.yaml:6: jobs.d.command is not a line such as "dbt build", or a list of them',
      'run-bridge.yaml:7: jobs.e is not a list of settings such as "command: dbt build"',
      'run-bridge.yaml:10: jobs.f.steps-override needs a command that begins with dbt: other steps are run by the program of that',
      'run-bridge.yaml:11: jobs.g.steps-override is not true or false',
    ]);
  });
});

describe('a bucket for artifacts', () => {
  const environment = { AWS_ACCESS_KEY_ID: 'an-id', AWS_SECRET_ACCESS_KEY: 'a-secret', AWS_REGION: 'eu-central-1' };

  test("is read with its prefix, and credentials from AWS' own variables are never shown", () => {
    const { configuration, rows } = resolve({ flags: { artifacts: 's3://my-bucket/team/run-bridge/' }, environment });
    const none = { endpoint: null, region: null, isPathStyle: null };
    expect(configuration.artifacts).toEqual({ bucket: 'my-bucket', prefix: 'team/run-bridge/', ...none });
    expect(configuration.bucketEnvironment).toEqual({
      credentials: { accessKeyId: 'an-id', secretAccessKey: 'a-secret' },
      region: 'eu-central-1',
      endpoint: null,
    });
    expect(JSON.stringify(rows)).not.toMatch(/an-id|a-secret/);
    expect(rows.find(({ name }) => name === 'artifacts')?.value).toBe('s3://my-bucket/team/run-bridge');
  });

  test('may say its endpoint, its region, and where its name stands in URLs', () => {
    const text = 's3://my-bucket/a?endpoint=https://minio.example.com:9000/&region=EU-central-1&path-style=false';
    const { configuration, rows } = resolve({ flags: { artifacts: text } });
    expect(configuration.artifacts).toEqual({
      ...{ bucket: 'my-bucket', prefix: 'a/', endpoint: 'https://minio.example.com:9000' },
      ...{ region: 'eu-central-1', isPathStyle: false },
    });
    expect(rows.find(({ name }) => name === 'artifacts')?.value).toBe(
      's3://my-bucket/a?endpoint=https://minio.example.com:9000&region=eu-central-1&path-style=off',
    );
  });

  test('needs both halves of its credentials, or neither', () => {
    const half = { AWS_ACCESS_KEY_ID: 'an-id' };
    expect(() => resolve({ flags: { artifacts: 's3://my-bucket' }, environment: half })).toThrow(
      /AWS_SECRET_ACCESS_KEY: is not set, but its counterpart is/,
    );
    expect(resolve({ environment: half }).configuration.bucketEnvironment).toBeNull();
    const none = resolve({ flags: { artifacts: 's3://my-bucket' } }).configuration;
    expect(none.bucketEnvironment?.credentials).toBeNull();
  });

  test.each([
    ...['s3://', 's3://x', 'my-bucket', 's3://my-bucket/../x', 'https://my-bucket.s3.amazonaws.com', '/tmp/x'],
    ...['s3://my-bucket?region=', 's3://my-bucket?path-style=1x', 's3://my-bucket?regoin=eu-central-1'],
    ...['s3://my-bucket?endpoint=minio:9000', 's3://my-bucket?endpoint=https://me:p4ss@minio'],
  ])('is not %j', (text) =>
    expect(() => resolve({ flags: { artifacts: text } })).toThrow(/is not folder, or a bucket such as/),
  );
});

describe('the database', () => {
  const url = 'postgresql://me:s3cret@db.example:5433/run_bridge?sslmode=verify-full&sslpassword=s3cret';
  const shown = (sources: Partial<ConfigurationSources>) =>
    resolve(sources).rows.find(({ name }) => name === 'database-url');

  test('is read from DATABASE_URL, and shown without its passwords', () => {
    const sources = { environment: { DATABASE_URL: ` ${url} ` } };
    expect(resolve(sources).configuration['database-url']).toBe(url);
    expect(shown(sources)).toEqual({
      name: 'database-url',
      value: 'postgresql://me:****@db.example:5433/run_bridge?sslmode=verify-full&sslpassword=****',
      origin: 'DATABASE_URL',
    });
  });

  test('may be behind a socket', () => {
    const sources = { environment: { DATABASE_URL: 'postgres://me@/run_bridge?host=/run/postgresql' } };
    expect(shown(sources)?.value).toBe('postgres://me@/run_bridge?host=/run/postgresql');
  });

  test('is the one that is meant for this program alone, where both are set', () => {
    const environment = { DATABASE_URL: url, RUN_BRIDGE_DATABASE_URL: 'off' };
    expect(shown({ environment })).toMatchObject({ value: 'off', origin: 'RUN_BRIDGE_DATABASE_URL' });
    expect(shown({ environment: { DATABASE_URL: url }, flags: { 'database-url': 'off' } })?.value).toBe('off');
  });

  test("is ignored where it is another program's kind", () => {
    const { configuration, warnings } = resolve({ environment: { DATABASE_URL: 'mysql://me:s3cret@db/shop' } });
    expect(configuration['database-url']).toBe('off');
    expect(warnings).toEqual([
      'DATABASE_URL is not a URL such as postgresql://user:password@host:5432/run_bridge, or off; it is ignored',
    ]);
  });

  test('is not shown where it is wrong', () => {
    const wrong = 'postgresql://me:s3/cret@db.example:5433:1/x';
    write(`database-url: ${wrong}\n`);
    const problems = [...problemsOf(), ...problemsOf({ environment: { DATABASE_URL: wrong } })];
    expect(problems.filter((problem) => problem.includes('the value is not a URL such as'))).toHaveLength(
      problems.length,
    );
    expect(problems.join()).not.toContain('cret');
  });
});
