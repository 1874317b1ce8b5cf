/** How a file is compressed, told by the last ending of its name. */
export type Compression = 'gzip' | 'zstd';

const ENDINGS: readonly (readonly [RegExp, Compression])[] = [
  [/\.gz$/i, 'gzip'],
  [/\.zst$/i, 'zstd'],
];

/** The compression that a name stands for; `undefined` where it is none that is known. */
export function compressionOf(path: string): Compression | undefined {
  return ENDINGS.find(([ending]) => ending.test(path))?.[1];
}

/** The name without the ending of its compression. */
export function uncompressedName(path: string): string {
  return compressionOf(path) === undefined ? path : path.replace(/\.\w+$/, '');
}
