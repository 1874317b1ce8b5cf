/** How long something took, to about three digits: `450 ms`, `12.3 s`, `2 min 5 s`, `1 h 2 min`. @param lengthMs at least 0 */
export function lengthText(lengthMs: number): string {
  const ms = Math.max(0, lengthMs);
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
