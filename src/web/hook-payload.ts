/** What a webhook of the hosted platform tells. */
export interface HookPayload {
  /** For example `job.run.completed`. */
  readonly eventType: string;
  /** Texts of digits; `null` where there is none. */
  readonly accountId: string | null;
  readonly runId: string | null;
}

/**
 * Reads a webhook's body; `undefined` when it is none. By hand: three fields are no reason for a start to load a schema
 * library.
 */
export function parseHookPayload(body: Uint8Array): HookPayload | undefined {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(body).toString('utf8'));
  } catch {
    return undefined;
  }
  const eventType = fieldOf(value, 'eventType');
  if (typeof eventType !== 'string') return undefined;
  return {
    eventType,
    accountId: idOf(fieldOf(value, 'accountId')),
    runId: idOf(fieldOf(fieldOf(value, 'data'), 'runId')),
  };
}

function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}

function idOf(value: unknown): string | null {
  const text = Number.isSafeInteger(value) ? String(value) : value;
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? text : null;
}
