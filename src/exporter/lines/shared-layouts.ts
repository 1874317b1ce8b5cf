import { KernelLines } from './kernel-lines.js';
import { KnownLayouts } from './known-layouts.js';
import { loadLineKernel } from './line-kernel.js';

/** Gives each new run the layouts that the runs before it had, with a kernel; new ones when those are full. */
export class SharedLayouts {
  private layouts: KnownLayouts | undefined;

  current(): KnownLayouts {
    if (this.layouts === undefined || this.layouts.isFull) {
      const kernel = loadLineKernel();
      this.layouts = new KnownLayouts(kernel === undefined ? undefined : new KernelLines(kernel));
    }
    return this.layouts;
  }
}
