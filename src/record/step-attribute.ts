import type { Resource } from './resource.js';

/**
 * Resource attribute with the id of the step whose command sent the records. `exec` puts it into
 * `OTEL_RESOURCE_ATTRIBUTES`, so it tells commands that share a trace apart from their first record on.
 */
export const STEP_ATTRIBUTE = 'run_bridge.step.id';

/** The step that a resource names; `null` where it names none. */
export function stepIdOf({ attributes }: Resource): string | null {
  const value = attributes[STEP_ATTRIBUTE];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** How a step stands in the environment of its command, and of all that this starts: last in `OTEL_RESOURCE_ATTRIBUTES`. */
export function stepInEnvironment(stepId: string): string {
  return `${STEP_ATTRIBUTE}=${stepId}\0`;
}
