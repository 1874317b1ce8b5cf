import { join } from 'node:path';
import type { Configuration } from '../config/configuration.js';
import { type Lazy, lazy } from '../core/lazy.js';
import type { Component } from '../core/lifecycle.js';
import type { ArtifactStore } from '../storage/artifact/artifact-store.js';
import { bucketOf } from './bucket-of.js';

/** The folder of artifacts in the data folder, where they are not in a bucket. */
export const ARTIFACTS_FOLDER = 'artifacts';

/** An open store, and what closes it. */
interface Opened {
  readonly store: ArtifactStore;
  close(): void;
}

/** The artifact store of a configuration; opened when it is first asked for, so that a start does not wait for it. */
export class ArtifactStorage implements Component {
  readonly name = 'artifacts';
  private readonly opened: Lazy<Opened>;

  constructor(configuration: Configuration) {
    this.opened = lazy(() => openStore(configuration));
  }

  async start(): Promise<void> {}

  /** @throws ArtifactError */
  readonly open = async (): Promise<ArtifactStore> => (await this.opened.get()).store;

  async shutdown(): Promise<void> {
    (await this.opened.ifNeeded())?.close();
  }
}

async function openStore(configuration: Configuration): Promise<Opened> {
  const location = bucketOf(configuration);
  if (location !== null) {
    const { S3ArtifactStore } = await import('../storage/artifact/s3-artifact-store.js');
    const store = new S3ArtifactStore(location);
    return { store, close: () => store.close() };
  }
  const { FolderArtifactStore } = await import('../storage/artifact/folder-artifact-store.js');
  const folder = join(configuration['data-dir'], ARTIFACTS_FOLDER);
  const store = new FolderArtifactStore(folder, configuration.durability === 'fsync');
  await store.removeUnfinished();
  return { store, close: () => undefined };
}
