import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExportRequest, ResourceGroup } from '../../src/otlp/export-request.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import { sampleBodies } from '../fake/sample-run.js';

const codec = new ProtobufCodec();
/** All that the resource of an engine says that heeds neither OTEL_SERVICE_NAME nor OTEL_RESOURCE_ATTRIBUTES. */
const KEPT = new Set(['service.name', 'service.version']);

/** A request whose resources say the engine's brand and version, and nothing else. */
export function bareRequest(request: ExportRequest): ExportRequest {
  return request.signal === 'traces'
    ? { ...request, resources: request.resources.map(bare) }
    : { ...request, resources: request.resources.map(bare) };
}

/**
 * Writes a sample's OTLP bodies with bare resources, in the order in which they came, where `stand-in-engine.mjs` reads them.
 * @param isWanted which of them; default: all
 */
export function writeBareBodies(
  run: string,
  folder: string,
  isWanted: (request: ExportRequest) => boolean = () => true,
): void {
  mkdirSync(join(folder, 'otlp'), { recursive: true });
  for (const [index, { signal, body }] of [...sampleBodies(run)].entries()) {
    const request = codec.decode(signal, body);
    if (!isWanted(request)) continue;
    const name = `${String(index).padStart(3, '0')}-${signal}.bin`;
    writeFileSync(join(folder, 'otlp', name), codec.encode(bareRequest(request)));
  }
}

function bare<T>(group: ResourceGroup<T>): ResourceGroup<T> {
  const attributes = group.resource.attributes.filter(({ key }) => KEPT.has(key));
  return { ...group, resource: { ...group.resource, attributes } };
}
