import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseArtifactPath } from '../../src/store/artifact/artifact-path.js';
import type { ArtifactKey } from '../../src/store/artifact/artifact-store.js';
import { S3ArtifactStore } from '../../src/store/artifact/s3-artifact-store.js';
import type { S3Location } from '../../src/store/bucket/s3-location.js';
import { S3ObjectStore } from '../../src/store/bucket/s3-object-store.js';
import { artifactStoreContract } from '../contract/artifact-store.contract.js';
import { objectStoreContract } from '../contract/object-store.contract.js';
import { S3Server } from '../tool/s3-server.js';

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
      /AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be of/,
    ],
    [
      'a server that is not there',
      { endpoint: 'http://127.0.0.1:1' },
      'unavailable',
      /ECONNREFUSED.*--artifacts-endpoint/,
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
