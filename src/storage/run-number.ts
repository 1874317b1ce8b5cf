/** A run's number as people and paths write it; `undefined` for what is none. */
export function parseRunNumber(value: unknown): number | undefined {
  return typeof value === 'string' && /^[1-9]\d{0,14}$/.test(value) ? Number(value) : undefined;
}
