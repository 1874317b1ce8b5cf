import { readFileSync } from 'node:fs';
import { endianness } from 'node:os';

/**
 * Starts a compiled kernel.
 * @param places where it may be, the first one that is there counts
 * @returns what it exports; `undefined` where it is missing or this machine has no WebAssembly with SIMD: JavaScript does
 *   all, then.
 */
export function loadKernel(places: readonly URL[]): unknown {
  // Cells have the machine's order of bytes, a kernel's memory is little-endian.
  if (endianness() !== 'LE') return undefined;
  for (const place of places) {
    try {
      return new WebAssembly.Instance(new WebAssembly.Module(readFileSync(place))).exports;
    } catch {
      // The next place, or none.
    }
  }
  return undefined;
}

/** A number that a kernel exports. */
export interface KernelNumber {
  readonly value: number;
}

/** Node's, as far as it is used here; its type declarations lack it. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};
