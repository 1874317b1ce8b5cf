import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Engine } from '../tool/engine.js';
import { ERROR_CASES, ERROR_PROJECT } from '../tool/error-cases.js';
import { prepareErrorDatabase } from '../tool/error-runs.js';
import { nativePostgres } from '../tool/native-postgres.js';
import { PostgresServer } from '../tool/postgres-server.js';
import { pythonWith } from '../tool/python-venv.js';

type Attributes = Readonly<Record<string, unknown>>;
interface Span {
  readonly name: string;
  readonly attributes: Attributes;
  readonly resource: Attributes;
}
interface Exported {
  readonly spans: readonly Span[];
  readonly logs: readonly { readonly resource: Attributes }[];
}

const main = new URL('../../dist/main.js', import.meta.url).pathname;
const DESTINATIONS = ['plain', 'own'] as const;
/** Failures whose class the driver says, and what that is. */
const CLASSES = { missing_relation: 'NotFound', cast_to_integer: 'InvalidData', unique_index: 'Integrity' } as const;
const TESTS = `models:
  - name: orders
    columns:
      - {name: id, data_tests: [unique]}
  - name: customers
    columns:
      - {name: name, data_tests: [{accepted_values: {arguments: {values: [Ann]}}}]}
`;

let engine: Engine;
let postgres: PostgresServer;
let folder: string;
let exported: Readonly<Record<(typeof DESTINATIONS)[number], Exported>>;

/** What a real run brings to two destinations, decoded with OpenTelemetry's Python classes. */
beforeAll(async () => {
  const python = pythonWith('otlp');
  engine = Engine.up('core');
  engine.addPostgresDriver();
  postgres = await PostgresServer.start(nativePostgres());
  await prepareErrorDatabase(postgres);
  folder = mkdtempSync(join(tmpdir(), 'run-bridge-attributes-'));
  for (const name of DESTINATIONS) mkdirSync(join(folder, name));
  writeProject();
  let count = 0;
  const receiver = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const [, name = '', , signal = ''] = (request.url ?? '').split('/');
    writeFileSync(join(folder, name, `${String(count++).padStart(4, '0')}-${signal}.bin`), Buffer.concat(chunks));
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address() as AddressInfo;
  const config = join(folder, 'run-bridge.yaml');
  writeFileSync(
    config,
    `public-url: https://runs.example.com/
destinations:
  plain: { endpoint: "\${env:RECEIVER_URL:-http://127.0.0.1:1}/plain" }
  own:
    endpoint: "\${env:RECEIVER_URL}/own"
    redaction: statements
    resource: { service.namespace: "\${env:NOT_SET_ANYWHERE:-warehouse}", deployment.environment.name: staging }
`,
  );
  const options = ['--job', 'nightly', '--environment', 'production', '--config', config];
  const { exitCode, output } = await engine.runCommand(
    [process.execPath, main, 'exec', ...options, '--', 'dbt', 'build'],
    {
      RUN_BRIDGE_DATA_DIR: join(folder, 'data'),
      RECEIVER_URL: `http://127.0.0.1:${port}`,
      SHOP_TARGET: 'postgres',
      SHOP_PORT: String(postgres.port),
      SHOP_PASSWORD: 'shop_password',
      DBT_ALLOW_EXPERIMENTAL_ADAPTERS: 'true',
    },
  );
  receiver.close();
  expect(exitCode, output).toBe(1);
  const decode = (name: string): Exported => {
    const args = [join('test', 'tool', 'decode_otlp.py'), join(folder, name)];
    return JSON.parse(execFileSync(python, args, { encoding: 'utf8', maxBuffer: 1 << 28 }));
  };
  exported = { plain: decode('plain'), own: decode('own') };
});
afterAll(async () => {
  engine?.remove();
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function writeProject(): void {
  rmSync(engine.project, { recursive: true, force: true });
  const failing = ERROR_CASES.filter(({ name }) => name in CLASSES).map(({ name, text }) => [
    `models/${name}.sql`,
    text,
  ]);
  const files: Readonly<Record<string, string>> = {
    ...ERROR_PROJECT,
    ...Object.fromEntries(failing),
    'models/orders.yml': TESTS,
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(engine.project, path)), { recursive: true });
    writeFileSync(join(engine.project, path), text);
  }
}

/** Which attributes, and what they are, on the spans of an event. */
function attributesOf(name: (typeof DESTINATIONS)[number], start: string, keys: readonly string[]): readonly string[] {
  const spans = exported[name].spans.filter((span) => span.name.startsWith(start));
  const texts = spans.map(({ attributes }) => keys.map((key) => String(attributes[key])).join(' | '));
  return [...new Set(texts)].sort();
}

it('every span says which run of which job it is of, where, and where that is to be seen', () => {
  const run = {
    'cicd.pipeline.name': 'nightly',
    'cicd.pipeline.run.id': '1001',
    'deployment.environment.name': 'production',
    'run_bridge.run.url': 'https://runs.example.com/runs/1001',
    'cicd.pipeline.run.url.full': 'https://runs.example.com/runs/1001',
    'service.name': 'dbt-core',
  };
  expect(exported.plain.spans.length).toBeGreaterThan(50);
  for (const { resource } of exported.plain.spans) expect(resource).toMatchObject(run);
  for (const { resource } of exported.plain.spans) expect(resource).not.toHaveProperty('service.namespace');
  // What a destination's resource: says takes the place of the rest; its variable has a default.
  const own = { ...run, 'deployment.environment.name': 'staging', 'service.namespace': 'warehouse' };
  for (const { resource } of exported.own.spans) expect(resource).toMatchObject(own);
  expect(exported.plain.logs.at(-1)?.resource).toMatchObject(run);
  expect(exported.own.logs.at(-1)?.resource).toMatchObject(own);
});

it.each(DESTINATIONS)('the invocation says how the pipeline ended, nodes and tests what became of them: %s', (name) => {
  expect(attributesOf(name, 'dbt invocation', ['cicd.pipeline.result'])).toEqual(['failure']);
  expect(attributesOf(name, 'Node processed (test.', ['test.case.name', 'test.case.result.status'])).toEqual([
    'accepted_values_customers_name__Ann | fail',
    'unique_orders_id | pass',
  ]);
  expect(attributesOf(name, 'Node processed (model.shop.orders)', ['db.response.returned_rows'])).toEqual(['0']);
});

it('queries say in a few words what they are, of which relation, and of which class their error is', () => {
  const queries = attributesOf('plain', '', ['unique_id', 'db.query.summary', 'db.collection.name', 'error.type']);
  expect(queries).toEqual(
    expect.arrayContaining([
      'model.shop.orders | CREATE TABLE orders | orders | undefined',
      'model.shop.missing_relation | CREATE TABLE missing_relation SELECT orders_x | missing_relation | NotFound',
      'model.shop.cast_to_integer | CREATE TABLE cast_to_integer | cast_to_integer | InvalidData',
    ]),
  );
  const classes = exported.plain.spans.flatMap(({ attributes }) =>
    'db.query.summary' in attributes && 'error.type' in attributes ? [String(attributes['error.type'])] : [],
  );
  expect(classes.sort()).toEqual(Object.values(CLASSES).sort());
  expect(attributesOf('plain', '', ['query_description'])).toContain('get_relation adapter call');
  // At level statements a query has no more than its verb.
  expect(attributesOf('own', '', ['unique_id', 'db.query.summary', 'db.collection.name', 'error.type'])).toContain(
    'model.shop.missing_relation | CREATE TABLE | undefined | NotFound',
  );
});
