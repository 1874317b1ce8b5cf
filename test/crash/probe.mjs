// Loaded into the program by `--import` to tell from within what cannot be seen from outside: its heap after a collection
// (with --expose-gc) and how late its event loop is. Says so over the channel to the parent process.
import { monitorEventLoopDelay } from 'node:perf_hooks';

const EVERY_MS = Number(process.env.PROBE_EVERY_MS ?? 2000);
const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();
setInterval(() => {
  const loopDelayP99Ms = delay.percentile(99) / 1e6;
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  delay.reset();
  process.send?.({ heapBytes: heapUsed + external, loopDelayP99Ms });
}, EVERY_MS).unref();
process.channel?.unref();
