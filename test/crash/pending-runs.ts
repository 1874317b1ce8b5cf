/** How many runs a bridge has not exported to their end, over all destinations, as `/readyz?verbose` says. */
export async function pendingRuns(webPort: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${webPort}/readyz?verbose`);
  const { checks } = (await response.json()) as { checks: { details?: { pendingRuns?: number } }[] };
  return checks.reduce((sum, { details }) => sum + (details?.pendingRuns ?? 0), 0);
}
