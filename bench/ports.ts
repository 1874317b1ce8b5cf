/** A block of its own for each process, so that two measurements do not meet; below 32768, where the system picks. */
const FIRST = 15_000 + (process.pid % 4_000) * 4;

/** Loopback ports of a measurement. */
export const PORTS = { http: FIRST, grpc: FIRST + 1, sink: FIRST + 2, web: FIRST + 3 } as const;
