import { readFileSync } from 'node:fs';
import { endianness } from 'node:os';

/**
 * Starts a compiled kernel.
 * @param file where it is
 * @returns what it exports; `undefined` where it is missing or this machine has no WebAssembly with SIMD: JavaScript does
 *   all, then.
 */
export function loadKernel(file: URL): unknown {
  // Cells have the machine's order of bytes, a kernel's memory is little-endian.
  if (endianness() !== 'LE') return undefined;
  try {
    return new WebAssembly.Instance(new WebAssembly.Module(readFileSync(file))).exports;
  } catch {
    return undefined;
  }
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
