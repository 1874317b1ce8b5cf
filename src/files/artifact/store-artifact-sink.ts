import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { ArtifactKey, ArtifactStore } from '../../storage/artifact/artifact-store.js';
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
      await store.put(key, contentOf(handle, signal));
    } finally {
      await handle.close();
    }
  }
}

/** A stream that nobody reads yet would throw into nowhere when it is aborted: it begins with its reading. */
async function* contentOf(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  signal.throwIfAborted();
  yield* handle.createReadStream({ signal, autoClose: false });
}
