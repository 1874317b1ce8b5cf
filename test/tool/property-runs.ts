/**
 * How many made-up cases a property is tried with: a part of `all` in `npm test`, all of them in `npm run test:long`, which
 * runs the costly properties again.
 */
export function propertyRuns(all: number): number {
  return process.env.PROPERTY_RUNS === 'all' ? all : Math.ceil(all / 6);
}
