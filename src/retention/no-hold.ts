import type { TraceHold } from './retained-telemetry.js';

/** Keeps nothing still: nobody else writes to the data folder, or the database removes only what nobody has. */
export const NO_HOLD: TraceHold = { whileStill: (_traceIds, action) => action() };
