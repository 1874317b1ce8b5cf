import type { HealthState } from '../component/health.js';

/** What `/readyz` says of a database on a server. Telemetry is taken in all the same while it is away: the record logs hold it. */
export function databaseHealth(problem: string | null): HealthState {
  return problem === null ? { ready: true } : { ready: false, reason: problem };
}
