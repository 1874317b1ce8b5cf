import type { Resource } from '../record/attributes.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';

/**
 * The resource of records of which nothing came over OTLP, the only way by which the engine says it: what the user and
 * `exec` added, and the version that the process span, a trace's first record, names.
 * @param variable the command's OTEL_RESOURCE_ATTRIBUTES, which the engine takes as they are, without decoding
 */
export function guessResource(first: TelemetryRecord, variable: string): Resource {
  const pairs = variable.split(',').flatMap((pair) => {
    const equals = pair.indexOf('=');
    return equals < 1 ? [] : [[pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()] as const];
  });
  const version = first.attributes.text('version');
  return {
    attributes: { ...Object.fromEntries(pairs), ...(version === undefined ? {} : { 'service.version': version }) },
    scope: { name: '', version: '' },
  };
}
