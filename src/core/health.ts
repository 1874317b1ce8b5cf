import type { LogFields } from './logger.js';

/** The state of one part of the program. */
export type HealthState =
  | { readonly ready: true; readonly details?: LogFields }
  /** `reason` is one sentence: what is wrong and what helps. */
  | { readonly ready: false; readonly reason: string; readonly details?: LogFields };

/** Returns the state of a part immediately, from known values. */
export type HealthCheck = () => HealthState;

/** All parts' answers. */
export interface HealthReport {
  readonly ready: boolean;
  readonly checks: readonly { readonly name: string; readonly state: HealthState }[];
}

/** The named checks of a process: each part adds its own, `/readyz` asks them all. */
export class Health {
  private readonly checks = new Map<string, HealthCheck>();

  /** @param name unique; a second check of the same name takes the first one's place. */
  register(name: string, check: HealthCheck): void {
    this.checks.set(name, check);
  }

  /** Ready when every part is. A check that throws counts as not ready. */
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
