import type { Health, HealthState } from '../core/health.js';
import type { OpenParts } from './open-parts.js';

/** Reports that a database on a server is unavailable. */
export interface DatabaseHealthParts extends Pick<OpenParts, 'state' | 'lease'> {
  /** Of one of several processes. */
  readonly membership: { health(): HealthState } | undefined;
}

/** Shows the state of a database server in `/readyz`. Telemetry is accepted while it is down: the record logs store it. */
export function addDatabaseHealth(health: Health, { state, lease, membership }: DatabaseHealthParts): void {
  health.register('database', () => {
    const problem = state.problem();
    return problem === null ? { ready: true } : { ready: false, reason: problem };
  });
  if (lease !== undefined) health.register('lease of the database', () => lease.health());
  if (membership !== undefined) health.register('membership', () => membership.health());
}
