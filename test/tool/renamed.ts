import type { ExportRequest, KeyValue, OtlpResource, ResourceGroup } from '../../src/otlp/export-request.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../src/record/record-batch.js';

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
    : { ...request, resources: request.resources.map(rename) };
}

function renamedResource(resource: OtlpResource, { service, keeps }: Renaming): OtlpResource {
  const others = resource.attributes.filter(
    ({ key }) => key !== 'service.name' && (keeps === undefined || keeps.includes(key)),
  );
  const named: readonly KeyValue[] = service === null ? [] : [{ key: 'service.name', value: service }];
  return { ...resource, attributes: [...named, ...others] };
}
