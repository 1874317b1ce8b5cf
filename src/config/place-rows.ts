import type { DeclaredEnvironment, DeclaredPlace } from '../run/place-finder.js';
import type { ConfigurationRow } from './configuration.js';

/** What a job, project or environment says of itself, as rows of `run-bridge config`. @param kind for example `jobs` */
export function placeRows(
  kind: string,
  place: DeclaredPlace & Partial<Pick<DeclaredEnvironment, 'project'>>,
  origin: string,
): ConfigurationRow[] {
  const row = (name: string, value: string | number | null | undefined) =>
    value == null ? [] : [{ name: `${kind}.${place.name}.${name}`, value: String(value), origin }];
  return [
    ...row('id', place.id),
    ...row('project', place.project),
    ...place.match.flatMap((rule, index) => row(`match.${index + 1}`, JSON.stringify(rule))),
  ];
}
