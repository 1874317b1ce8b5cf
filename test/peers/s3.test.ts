import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { S3ArtifactStore } from '../../src/artifact/s3-artifact-store.js';
import { type ArtifactKey, parseArtifactPath } from '../../src/storage/artifacts.js';
import type { S3Location } from '../../src/storage/bucket/object-store.js';
import { S3ObjectStore } from '../../src/storage/bucket/s3-bucket.js';
import { artifactStoreContract } from '../contract/artifact-store.contract.js';
import { objectStoreContract } from '../contract/object-store.contract.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { FetchingReceiver } from '../tool/fetching-receiver.js';
import { S3Server } from '../tool/s3-server.js';
import { SlowProxy } from '../tool/slow-proxy.js';
import { SpawnedCommand } from '../tool/spawned-command.js';
import { until } from '../tool/until.js';

const PORT = 17_070;
const BUCKET = 'bridge';

let server: S3Server;
beforeAll(async () => {
  server = await S3Server.start(PORT, [BUCKET]);
});
afterAll(() => server?.stop());

const credentials = { accessKeyId: S3Server.accessKeyId, secretAccessKey: S3Server.secretAccessKey };

function locationWith(given: Partial<S3Location> = {}): S3Location {
  const { endpoint } = server;
  const own = { bucket: BUCKET, prefix: `${randomUUID()}/`, endpoint, region: S3Server.region, isPathStyle: true };
  return { ...own, credentials, ...given };
}

async function withStore(
  body: (store: S3ArtifactStore) => Promise<void>,
  given: Partial<S3Location> = {},
): Promise<void> {
  const store = new S3ArtifactStore(locationWith(given));
  try {
    await body(store);
  } finally {
    store.close();
  }
}

artifactStoreContract((body) => withStore(body));
objectStoreContract(async (body) => {
  const store = new S3ObjectStore(locationWith());
  try {
    await body(store);
  } finally {
    store.close();
  }
});

function key(path: string): ArtifactKey {
  const parsed = parseArtifactPath(path);
  if (parsed === undefined) throw new Error(`${path} is no path`);
  return { runId: 1, stepIndex: 1, path: parsed };
}

describe('artifacts in a bucket', () => {
  it.each([
    ['a bucket that does not exist', { bucket: 'nothere' }, 'refused', /create it, or correct --artifacts/],
    [
      'a wrong secret',
      { credentials: { ...credentials, secretAccessKey: 'wrong' } },
      'refused',
      /AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must belong to/,
    ],
    [
      'a server that is not there',
      { endpoint: 'http://127.0.0.1:1' },
      'unavailable',
      /ECONNREFUSED.*the endpoint of --artifacts/,
    ],
  ])('say what to do about %s', async (_what, given, code, message) => {
    await withStore(async (store) => {
      for (const action of [
        () => store.put(key('a.json'), Readable.from([Buffer.from('x')])),
        () => store.list(1, 1),
      ]) {
        const error: unknown = await action().catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ name: 'ArtifactError', code });
        expect(String(error)).toMatch(message);
      }
    }, given);
  });

  it('are all removed with their run, however many they are', () =>
    withStore(async (store) => {
      const count = 1_050;
      for (let from = 0; from < count; from += 50) {
        await Promise.all(
          Array.from({ length: 50 }, (_, index) =>
            store.put(key(`compiled/m${from + index}.sql`), Readable.from([Buffer.from('select 1')])),
          ),
        );
      }
      expect(await store.list(1, 1)).toHaveLength(count);
      expect(await store.removeRun(1)).toEqual({ count, sizeBytes: count * 8 });
      expect(await store.list(1, 1)).toEqual([]);
    }));
});

/** Artifacts of the run, and how long each takes to upload; six are under way at a time. */
const ARTIFACT_COUNT = Number(process.env.SLOW_BUCKET_ARTIFACTS ?? 200);
const UPLOAD_MS = Number(process.env.SLOW_BUCKET_MS ?? 50);
const AT_A_TIME = 6;
const runSchema = z.object({
  data: z.object({
    steps: z.array(
      z.object({
        artifacts: z
          .object({
            state: z.string(),
            expected_count: z.number(),
            missing_count: z.number(),
            missing: z.array(z.string()),
            reason: z.string().nullable(),
          })
          .nullable(),
      }),
    ),
  }),
});
const listSchema = z.object({ data: z.array(z.string()) });

describe('a run whose artifacts go to a slow bucket', () => {
  let proxy: SlowProxy;
  let folder: string;
  let settings: Readonly<Record<string, string>>;
  const started: BridgeProcess[] = [];
  beforeEach(async () => {
    proxy = await SlowProxy.open(server.endpoint, 'PUT', UPLOAD_MS);
    folder = mkdtempSync(join(tmpdir(), 'run-bridge-slow-bucket-'));
    writeFileSync(join(folder, 'dbt_project.yml'), 'name: shop');
    settings = {
      RUN_BRIDGE_ARTIFACTS: `s3://${BUCKET}/${randomUUID()}?endpoint=${proxy.url}&region=${S3Server.region}`,
      AWS_ACCESS_KEY_ID: S3Server.accessKeyId,
      AWS_SECRET_ACCESS_KEY: S3Server.secretAccessKey,
    };
  });
  afterEach(async () => {
    for (const bridge of started.splice(0)) await bridge.remove();
    proxy.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const serve = async (dataFolder = join(folder, 'data')) => {
    const bridge = await BridgeProcess.start({ dataFolder, env: settings, args: ['--webhook-allow', 'loopback'] });
    started.push(bridge);
    return { bridge, token: readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim() };
  };
  const write = `
    const { mkdirSync, writeFileSync } = require('node:fs');
    mkdirSync('target/run', { recursive: true });
    writeFileSync('target/run_results.json', '{}');
    for (let model = 1; model < ${ARTIFACT_COUNT}; model += 1) writeFileSync('target/run/' + model + '.sql', 'select 1');`;
  const exec = (...options: readonly string[]) =>
    new SpawnedCommand(['exec', ...options, '--', process.execPath, '-e', write], {
      cwd: folder,
      env: { ...settings, RUN_BRIDGE_DATA_DIR: join(folder, options.includes('--to') ? 'own' : 'data') },
    });
  /** What the API says of the artifacts of the run's one step. */
  const artifactsOf = async (bridge: BridgeProcess, token: string) => {
    const headers = { authorization: `Token ${token}` };
    const answer = await fetch(`${bridge.webUrl}/api/run-bridge/v1/runs/1001`, { headers });
    return runSchema.safeParse(await answer.json()).data?.data.steps[0]?.artifacts;
  };

  it('is over only when all of them can be downloaded, however long that takes', async () => {
    const { bridge, token } = await serve();
    const receiver = await FetchingReceiver.open(bridge, token);
    const completed = () => receiver.deliveries.find(({ eventType }) => eventType === 'job.run.completed');
    try {
      const command = exec('--to', bridge.otlpUrl, '--flush-timeout', '1ms');
      await until('half of the upload', () => proxy.heldCount > ARTIFACT_COUNT / 2, 600_000);
      expect(completed()).toBeUndefined();
      const uploading = { state: 'uploading', expected_count: ARTIFACT_COUNT };
      expect(await artifactsOf(bridge, token)).toMatchObject(uploading);
      expect(await command.ended()).toBe(0);
      const { artifacts, data } = await until('the end', completed, 600_000);
      expect(Object.keys(artifacts)).toHaveLength(ARTIFACT_COUNT);
      expect(data).not.toHaveProperty('missingArtifacts');
      expect(proxy.heldCount).toBeGreaterThanOrEqual(ARTIFACT_COUNT);
    } finally {
      await receiver.close();
    }
  }, 1_800_000);

  it('is over without them where its exec is killed: the next start says which are missing', async () => {
    const command = exec();
    await until('the upload to be under way', () => proxy.heldCount > 2 * AT_A_TIME);
    expect(await command.stop('SIGKILL')).toBeNull();
    const { bridge, token } = await serve();
    const artifacts = await until('its end', async () => {
      const found = await artifactsOf(bridge, token);
      return found?.state === 'incomplete' && found;
    });
    expect(artifacts).toMatchObject({ expected_count: ARTIFACT_COUNT, reason: 'they were not uploaded' });
    const answer = await fetch(`${bridge.webUrl}/api/v2/accounts/10001/runs/1001/artifacts/`, {
      headers: { authorization: `Token ${token}` },
    });
    const { data: kept } = listSchema.parse(await answer.json());
    expect(kept.length + artifacts.missing_count).toBe(ARTIFACT_COUNT);
    expect(kept.filter((path) => artifacts.missing.includes(path))).toEqual([]);
    expect(await bridge.stop()).toBe(0);
  });
});
