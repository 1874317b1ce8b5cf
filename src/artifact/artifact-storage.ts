import { join } from 'node:path';
import { bucketOf } from '../config/bucket-of.js';
import type { Configuration } from '../config/configuration.js';
import { type Lazy, lazy } from '../core/lazy.js';
import type { Component } from '../core/lifecycle.js';
import type { ArtifactStore } from '../storage/artifacts.js';

/** The folder of artifacts in the data folder, unless they are in a bucket. */
export const ARTIFACTS_FOLDER = 'artifacts';

/** The artifact store of a configuration; opened on first use, so that a start does not wait for it. */
export class ArtifactStorage implements Component {
  readonly name = 'artifacts';
  /** @throws ArtifactError */
  readonly open: () => Promise<ArtifactStore>;
  private readonly store: Lazy<ArtifactStore>;

  /** @param isShared whether another process may be writing to it: then what is unfinished is left alone, and nothing may be put */
  constructor(configuration: Configuration, isShared = false) {
    this.store = lazy(() => openStore(configuration, isShared));
    this.open = this.store.get;
  }

  async start(): Promise<void> {}

  async shutdown(): Promise<void> {
    (await this.store.ifNeeded())?.close();
  }
}

async function openStore(configuration: Configuration, isShared: boolean): Promise<ArtifactStore> {
  const location = bucketOf(configuration);
  if (location !== null) {
    const { S3ArtifactStore } = await import('./s3-artifact-store.js');
    return new S3ArtifactStore(location);
  }
  const { FolderArtifactStore } = await import('./folder-artifact-store.js');
  const folder = join(configuration['data-dir'], ARTIFACTS_FOLDER);
  const store = new FolderArtifactStore(folder, configuration.durability === 'fsync');
  if (!isShared) await store.removeUnfinished();
  return store;
}
