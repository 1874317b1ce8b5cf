import { type LineKernel, loadLineKernel } from '../../../../src/exporter/lines/line-kernel.js';

/** A kernel for lines; @throws where it was not built. */
export function loadedKernel(): LineKernel {
  const loaded = loadLineKernel();
  if (loaded === undefined) throw new Error('the kernel is not there: run npm run build');
  return loaded;
}
