import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
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
    // What has become a named pipe meanwhile is not waited for.
    const descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      await store.put(key, contentOf(descriptor, signal));
    } finally {
      closeSync(descriptor);
    }
  }
}

/** What is read in one piece, in bytes: 64 KiB. */
const CHUNK_BYTES = 64 * 1024;

/**
 * Read at once: the command has just written it, so the system has it in memory. Most artifacts are small, and to ask the pool of
 * threads for each of their pieces would take longer than all else.
 */
async function* contentOf(descriptor: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const { size } = fstatSync(descriptor);
  // With room for one byte more than it has: what ends before that was read whole.
  let length = Math.min(size + 1, CHUNK_BYTES);
  for (let readBytes = 0; ; length = CHUNK_BYTES) {
    signal.throwIfAborted();
    const buffer = Buffer.allocUnsafe(length);
    const bytesRead = readSync(descriptor, buffer, 0, length, null);
    readBytes += bytesRead;
    if (bytesRead > 0) yield buffer.subarray(0, bytesRead);
    // A read may give less than it could before the end of the file.
    if (bytesRead === 0 || (bytesRead < length && readBytes >= size)) return;
  }
}
