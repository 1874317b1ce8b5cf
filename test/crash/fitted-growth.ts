/**
 * How much the straight line that fits some values best rises from the first to the last, in their unit: what they grew
 * by, less the noise. The values are equally far apart; 0 of fewer than two.
 */
export function fittedGrowth(values: readonly number[]): number {
  const last = values.length - 1;
  if (last < 1) return 0;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let products = 0;
  let squares = 0;
  for (const [index, value] of values.entries()) {
    const distance = index - last / 2;
    products += distance * (value - mean);
    squares += distance * distance;
  }
  return (products / squares) * last;
}
