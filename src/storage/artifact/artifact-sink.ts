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

/** What is read in one piece, in bytes: 64 KiB. */
const CHUNK_BYTES = 64 * 1024;

/** Most artifacts are small: a stream for each would take longer than reading it. */
async function* contentOf(handle: FileHandle, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const { size } = await handle.stat();
  // With room for one byte more than it has: what ends before that was read whole.
  let length = Math.min(size + 1, CHUNK_BYTES);
  for (let readBytes = 0; ; length = CHUNK_BYTES) {
    signal.throwIfAborted();
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length);
    readBytes += bytesRead;
    if (bytesRead > 0) yield buffer.subarray(0, bytesRead);
    // A read may give less than it could before the end of the file.
    if (bytesRead === 0 || (bytesRead < length && readBytes >= size)) return;
  }
}
