import { chmod, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../component/error-code.js';
import type { Logger } from '../component/logger.js';

/** The file of the key in the data folder. */
export const WEBHOOK_KEY_FILE = 'webhook-key';
const PRIVATE_MODE = 0o600;
const KEY_BYTES = 32;

/**
 * The key by which secrets of webhooks are sealed, from its file, which is made where there is none. Nobody else can read it.
 * @throws an Error that names the file, where it is damaged; what the file system throws
 */
export async function readWebhookKeyFile(
  dataFolder: string,
  randomBytes: (count: number) => Uint8Array,
  logger: Logger,
): Promise<Uint8Array> {
  const path = join(dataFolder, WEBHOOK_KEY_FILE);
  try {
    const key = Buffer.from((await readFile(path, 'utf8')).trim(), 'base64');
    if (key.byteLength !== KEY_BYTES) {
      throw new Error(
        `${path} holds no key of 32 bytes in base64; put the one of a backup there, or remove the file, rotate the secrets of webhooks and give their URLs and headers anew`,
      );
    }
    if (((await stat(path)).mode & 0o077) !== 0) {
      await chmod(path, PRIVATE_MODE);
      logger.warn({ path }, 'others could read the key of webhooks; that was ended');
    }
    return key;
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  // Whole or not there, whenever the program is killed.
  const key = randomBytes(KEY_BYTES);
  const written = `${path}.partial`;
  await rm(written, { force: true });
  await writeFile(written, `${Buffer.from(key).toString('base64')}\n`, { mode: PRIVATE_MODE, flag: 'wx', flush: true });
  await rename(written, path);
  return key;
}
