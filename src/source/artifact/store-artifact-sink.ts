import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { ArtifactKey, ArtifactStore } from '../../store/artifact/artifact-store.js';
import type { ArtifactSink } from './artifact-sink.js';

/** Brings artifacts to a store of this process. */
export class StoreArtifactSink implements ArtifactSink {
  /** @param open gives the store; called when the first artifact comes */
  constructor(private readonly openStore: () => Promise<Pick<ArtifactStore, 'put'>>) {}

  async put(key: ArtifactKey, file: string, signal: AbortSignal): Promise<void> {
    const store = await this.openStore();
    signal.throwIfAborted();
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      await store.put(key, handle.createReadStream({ signal, autoClose: false }));
    } finally {
      await handle.close();
    }
  }
}
