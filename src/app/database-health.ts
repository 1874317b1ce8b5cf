import type { Health, HealthState } from '../core/health.js';
import type { OpenParts } from './open-parts.js';

/** What may say that a database on a server is not to be had. */
export interface DatabaseHealthParts extends Pick<OpenParts, 'state' | 'lease'> {
  /** Of one of several processes. */
  readonly membership: { health(): HealthState } | undefined;
}

/** Has `/readyz` say how a database on a server is. Telemetry is taken in all the same while it is away: the record logs hold it. */
export function addDatabaseHealth(health: Health, { state, lease, membership }: DatabaseHealthParts): void {
  health.register('database', () => {
    const problem = state.problem();
    return problem === null ? { ready: true } : { ready: false, reason: problem };
  });
  if (lease !== undefined) health.register('lease of the database', () => lease.health());
  if (membership !== undefined) health.register('membership', () => membership.health());
}
