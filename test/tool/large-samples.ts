import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { cacheFolder } from './cache-folder.js';

/** The engine's large real runs, which are packed in `test/fixture/large`; its README says what each is. */
export const LARGE_SAMPLES = ['big-build', 'big-build-trace'] as const;

/** From the project's folder, since what is compiled for measuring stands elsewhere. */
const PACKED = resolve('test/fixture/large');
const folders = new Map<string, string>();

/** Whether a sample is one of the large ones. */
export function isLargeSample(run: string): boolean {
  return LARGE_SAMPLES.some((name) => name === run);
}

/**
 * The folder of a large sample, laid out as those in `test/fixture/samples`. It is unpacked once into the cache folder, 20
 * and 45 MB, under a name made of what is packed, and shared by all test processes: nothing may write there.
 */
export function largeSampleFolder(run: string): string {
  const known = folders.get(run);
  if (known !== undefined) return known;
  const packed = readFileSync(join(PACKED, `${run}.tar.br`));
  const digest = createHash('sha256').update(packed).digest('hex').slice(0, 16);
  const folder = join(cacheFolder(), 'samples', `${run}-${digest}`);
  if (!existsSync(folder)) unpack(packed, folder);
  folders.set(run, folder);
  return folder;
}

/** Several processes may unpack at once; the first that is done gives the folder its name. */
function unpack(packed: Uint8Array, folder: string): void {
  mkdirSync(dirname(folder), { recursive: true });
  const partial = mkdtempSync(`${folder}.partial-`);
  for (const { path, content } of filesOfTar(brotliDecompressSync(packed))) {
    mkdirSync(dirname(join(partial, path)), { recursive: true });
    writeFileSync(join(partial, path), content);
  }
  try {
    renameSync(partial, folder);
  } catch (error) {
    rmSync(partial, { recursive: true });
    if (!existsSync(folder)) throw error;
  }
}

/** The regular files of a tar archive in the `ustar` format, whose blocks have 512 bytes. */
function* filesOfTar(tar: Buffer): Generator<{ path: string; content: Buffer }> {
  const textAt = (start: number, length: number) => tar.toString('latin1', start, start + length).split('\0')[0] ?? '';
  let at = 0;
  while (textAt(at, 100) !== '') {
    const byteCount = Number.parseInt(textAt(at + 124, 12), 8);
    const content = tar.subarray(at + 512, at + 512 + byteCount);
    if (textAt(at + 156, 1) === '0') yield { path: textAt(at, 100), content };
    at += 512 + Math.ceil(byteCount / 512) * 512;
  }
}
