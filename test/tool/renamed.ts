import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type {
  ExportRequest,
  KeyValue,
  OtlpLogRecord,
  OtlpResource,
  ResourceGroup,
} from '../../src/otlp/export-request.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../src/record/record-batch.js';
import { bodiesIn } from '../fake/sample-run.js';

/** What a body's telemetry is called. */
export interface Renaming {
  /** `service.name`; `null` takes it away. */
  readonly service: string | null;
  readonly scope: string;
  /** Names of other attributes of the resource that stay; all where it is left out. */
  readonly keeps?: readonly string[];
}

const codec = new ProtobufCodec();

/** An OTLP body as if other names had been given to the engine, by whoever built it or by a Collector on the way. */
export function renamed(signal: Signal, body: Uint8Array, to: Renaming): Uint8Array {
  return codec.encode(renamedRequest(codec.decode(signal, body), to));
}

/** The same of a request that was read. */
export function renamedRequest(request: ExportRequest, to: Renaming): ExportRequest {
  const rename = <T>(group: ResourceGroup<T>): ResourceGroup<T> => ({
    ...group,
    resource: renamedResource(group.resource, to),
    scopes: group.scopes.map((scope) => ({ ...scope, scope: { ...scope.scope, name: to.scope } })),
  });
  return request.signal === 'traces'
    ? { ...request, resources: request.resources.map(rename) }
    : { ...request, resources: request.resources.map((group) => namingItself(rename(group), to.scope)) };
}

/** Log records in which the engine says what it is called, with another name. */
function namingItself(group: ResourceGroup<OtlpLogRecord>, name: string): ResourceGroup<OtlpLogRecord> {
  const isOwnName = ({ key, value }: KeyValue) => key === 'action' && (value === 'dbt-core' || value === 'dbt-fusion');
  const records = (all: readonly OtlpLogRecord[]) =>
    all.map((log) => ({
      ...log,
      attributes: log.attributes.map((one) => (isOwnName(one) ? { ...one, value: name } : one)),
    }));
  return { ...group, scopes: group.scopes.map((scope) => ({ ...scope, records: records(scope.records) })) };
}

function renamedResource(resource: OtlpResource, { service, keeps }: Renaming): OtlpResource {
  const others = resource.attributes.filter(
    ({ key }) => key !== 'service.name' && (keeps === undefined || keeps.includes(key)),
  );
  const named: readonly KeyValue[] = service === null ? [] : [{ key: 'service.name', value: service }];
  return { ...resource, attributes: [...named, ...others] };
}

/**
 * Copies a sample with other names in its OTLP bodies, and in the message in which the engine names itself.
 * @param from the sample's folder
 * @param into a folder that is made
 */
export function copyRenamed(from: string, into: string, to: Renaming): void {
  mkdirSync(join(into, 'otlp'), { recursive: true });
  const lines = readFileSync(join(from, 'otel.jsonl'), 'utf8');
  writeFileSync(
    join(into, 'otel.jsonl'),
    lines.replaceAll(/"action":"dbt-(?:core|fusion)"/g, `"action":"${to.scope}"`),
  );
  for (const { file, signal, body } of bodiesIn(join(from, 'otlp'))) {
    writeFileSync(join(into, 'otlp', file), renamed(signal, body, to));
  }
}
