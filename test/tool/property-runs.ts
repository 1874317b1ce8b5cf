/**
 * How many made-up cases a property is tried with: a sixth of `all` in `npm test`, the rest in `npm run suite long`, whose
 * seed makes other ones.
 */
export function propertyRuns(all: number): number {
  const few = Math.ceil(all / 6);
  const { PROPERTY_RUNS } = process.env;
  return PROPERTY_RUNS === 'all' ? all : PROPERTY_RUNS === 'rest' ? all - few : few;
}
