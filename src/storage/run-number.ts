/** A run's id as written in paths; `undefined` if invalid. */
export function parseRunNumber(value: unknown): number | undefined {
  return typeof value === 'string' && /^[1-9]\d{0,14}$/.test(value) ? Number(value) : undefined;
}
