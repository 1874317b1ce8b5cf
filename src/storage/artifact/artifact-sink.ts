import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { ArtifactKey, ArtifactStore } from './artifact-store.js';

/** Where artifacts of steps are brought to: a store of this process's own, or a bridge that runs. */
export interface ArtifactSink {
  /**
   * Keeps a file as an artifact, whole or not at all.
   * @param file its path; a symbolic link is not followed
   * @throws ArtifactError; what `signal` aborts with
   */
  put(key: ArtifactKey, file: string, signal: AbortSignal): Promise<void>;
}

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
