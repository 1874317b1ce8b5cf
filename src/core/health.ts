import type { LogFields } from './logger.js';

/** The state of one part of the program. */
export type HealthState =
  | { readonly ready: true; readonly details?: LogFields }
  /** `reason` is one sentence: what is wrong and what helps. */
  | { readonly ready: false; readonly reason: string; readonly details?: LogFields };

/** Returns the state of a part immediately, from known values. */
export type HealthCheck = () => HealthState;

/** The states of all parts. */
export interface HealthReport {
  readonly ready: boolean;
  readonly checks: readonly { readonly name: string; readonly state: HealthState }[];
}

/** The named health checks of a process: each part registers its own, and `/readyz` runs them all. */
export class Health {
  private readonly checks = new Map<string, HealthCheck>();

  /** Adds a check. @param name unique; a second check of the same name replaces the first */
  register(name: string, check: HealthCheck): void {
    this.checks.set(name, check);
  }

  /** Runs all checks; ready if every part is. A check that throws counts as not ready. */
  report(): HealthReport {
    const checks = [...this.checks].map(([name, check]) => ({ name, state: ask(check) }));
    return { ready: checks.every((check) => check.state.ready), checks };
  }
}

function ask(check: HealthCheck): HealthState {
  try {
    return check();
  } catch (error) {
    return { ready: false, reason: `the check itself failed: ${String(error)}` };
  }
}
