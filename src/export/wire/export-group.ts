import type { Attributes } from '@opentelemetry/api';
import type { InstrumentationScope } from '@opentelemetry/core';
import { type Resource as OtelResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  ATTR_CICD_PIPELINE_NAME,
  ATTR_CICD_PIPELINE_RUN_ID,
  ATTR_CICD_PIPELINE_RUN_URL_FULL,
  ATTR_DEPLOYMENT_ENVIRONMENT_NAME,
} from '@opentelemetry/semantic-conventions/incubating';
import { LENGTH, tagOf, VARINT } from '../../otlp/wire-type.js';
import { type Resource, type ResourceValue, resourceKey, stepIdOf } from '../../record/attributes.js';
import type { RunOrigin } from '../../storage/trace-catalog.js';
import { encodeAttributes, WireWriter } from './wire-writer.js';

const RESOURCE = tagOf(1, LENGTH);
const RESOURCE_ATTRIBUTES = tagOf(1, LENGTH);
const RESOURCE_DROPPED = tagOf(2, VARINT);
const SCOPE = tagOf(1, LENGTH);
const SCOPE_NAME = tagOf(1, LENGTH);
const SCOPE_VERSION = tagOf(2, LENGTH);
const SCHEMA_URL_FIELD = tagOf(3, LENGTH);

/** The version of OpenTelemetry's semantic conventions whose names resources, spans and log records have. */
export const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.44.0';

/** The same as the last field of a ResourceSpans, ScopeSpans, ResourceLogs or ScopeLogs. */
export const SCHEMA_URL_BYTES = encodeSchemaUrl();

function encodeSchemaUrl(): Uint8Array {
  const out = new WireWriter(64);
  out.tag(SCHEMA_URL_FIELD);
  out.text(SCHEMA_URL);
  return out.bytes.subarray(0, out.length);
}

/** The resource and scope that items of a request have in common, encoded once. Equal ones of several runs share a key. */
export class ExportGroup {
  readonly scope: InstrumentationScope;
  /** Field 1 of ScopeSpans or ScopeLogs. */
  readonly scopeBytes: Uint8Array;
  readonly scopeKey: string;
  private described: OtelResource;
  private encoded: Buffer;

  /** @param attributes of the resource */
  constructor(attributes: Attributes, scope: InstrumentationScope) {
    const scopeBytes = encodeScope(scope);
    this.scope = { ...scope, schemaUrl: SCHEMA_URL };
    this.described = resourceOf(attributes);
    this.encoded = encodeResource(attributes);
    this.scopeBytes = scopeBytes;
    this.scopeKey = scopeBytes.toString('latin1');
  }

  get resource(): OtelResource {
    return this.described;
  }

  /** Field 1 of ResourceSpans or ResourceLogs. */
  get resourceBytes(): Uint8Array {
    return this.encoded;
  }

  get resourceKey(): string {
    return this.encoded.toString('latin1');
  }

  /** More is known of the resource, before any of its items were given away. */
  describe(attributes: Attributes): void {
    this.described = resourceOf(attributes);
    this.encoded = encodeResource(attributes);
  }
}

function resourceOf(attributes: Attributes): OtelResource {
  return resourceFromAttributes(attributes, { schemaUrl: SCHEMA_URL });
}

function encodeResource(attributes: Attributes): Buffer {
  const out = new WireWriter(256);
  out.tag(RESOURCE);
  const start = out.open();
  encodeAttributes(out, RESOURCE_ATTRIBUTES, attributes);
  out.tag(RESOURCE_DROPPED);
  out.varint(0);
  out.close(start);
  return out.bytes.subarray(0, out.length);
}

function encodeScope(scope: InstrumentationScope): Buffer {
  const out = new WireWriter(64);
  out.tag(SCOPE);
  const start = out.open();
  out.tag(SCOPE_NAME);
  out.text(scope.name);
  if (scope.version !== undefined && scope.version !== '') {
    out.tag(SCOPE_VERSION);
    out.text(scope.version);
  }
  out.close(start);
  return out.bytes.subarray(0, out.length);
}

/** OTel resources of the engine's, with the run that they belong to and the bridge's overrides. A run has one or a few. */
export class ResourceMap {
  private byIdentity = new WeakMap<Resource, ExportGroup>();
  private readonly byKey = new Map<string, { readonly resource: Resource; readonly group: ExportGroup }>();

  /** What was mapped last: the next item mostly has the same. */
  private latest: Resource | undefined;
  private latestGroup: ExportGroup | undefined;

  private origins: readonly RunOrigin[] = [];
  /** Whether a resource named an unknown step. */
  lacksOrigin = false;

  /** @param publicUrl the public address of the pages; `null` if not configured */
  constructor(
    private readonly overrides: Readonly<Record<string, ResourceValue>>,
    private readonly publicUrl: string | null,
  ) {}

  /**
   * Sets the runs that the trace's commands belong to, for everything mapped from now on.
   * @param isForAll also for what was mapped before, of which nothing was given away
   */
  setOrigins(origins: readonly RunOrigin[], isForAll: boolean): void {
    this.origins = origins;
    this.lacksOrigin = false;
    this.latest = undefined;
    if (isForAll) for (const { resource, group } of this.byKey.values()) group.describe(this.describe(resource));
    else {
      this.byIdentity = new WeakMap();
      this.byKey.clear();
    }
  }

  map(resource: Resource): ExportGroup {
    if (resource === this.latest && this.latestGroup !== undefined) return this.latestGroup;
    this.latestGroup = this.find(resource);
    this.latest = resource;
    return this.latestGroup;
  }

  private find(resource: Resource): ExportGroup {
    const known = this.byIdentity.get(resource);
    if (known !== undefined) return known;
    const key = resourceKey(resource);
    const mapped = this.byKey.get(key) ?? { resource, group: this.create(resource) };
    this.byIdentity.set(resource, mapped.group);
    this.byKey.set(key, mapped);
    return mapped.group;
  }

  private create(resource: Resource): ExportGroup {
    const { name, version } = resource.scope;
    return new ExportGroup(this.describe(resource), {
      name: name === '' ? UNKNOWN_SCOPE : name,
      ...(version === '' ? {} : { version }),
    });
  }

  private describe(resource: Resource): Attributes {
    const attributes = Object.entries({
      ...DEFAULTS,
      ...this.runAttributes(resource),
      ...resource.attributes,
      ...this.overrides,
      ...MAPPED_BY,
    }).map(([name, value]) => [name, otelValue(value)] as const);
    return Object.fromEntries(attributes);
  }

  /** The page of the step that a resource belongs to: the one that it names, else the only one that is known; `undefined` where pages have no public address. */
  stepUrlOf(resource: Resource): string | undefined {
    const { origins } = this;
    const stepId = stepIdOf(resource);
    const origin = stepId === null ? origins[0] : origins.find((one) => one.stepId === stepId);
    const isKnown = origin !== undefined && (stepId !== null || origins.length === 1);
    const runUrl = isKnown ? this.runUrlOf(origin) : undefined;
    return runUrl === undefined ? undefined : `${runUrl}/nodes?step=${origin?.stepIndex}`;
  }

  private runUrlOf({ runId }: RunOrigin): string | undefined {
    const { publicUrl } = this;
    return publicUrl === null ? undefined : `${publicUrl.replace(/\/+$/, '')}/runs/${runId}`;
  }

  /** Attributes of the run, by the step that the resource names; without one only if the trace has one run. */
  private runAttributes(resource: Resource): Readonly<Record<string, ResourceValue>> {
    const { origins } = this;
    const stepId = stepIdOf(resource);
    const [first] = origins;
    const isSole = stepId === null && origins.every(({ runId }) => runId === first?.runId);
    const origin = isSole ? first : origins.find((one) => one.stepId === stepId);
    this.lacksOrigin ||= origin === undefined && stepId !== null;
    if (origin === undefined) return {};
    const url = this.runUrlOf(origin);
    return {
      [ATTR_CICD_PIPELINE_NAME]: origin.job,
      [ATTR_CICD_PIPELINE_RUN_ID]: String(origin.runId),
      ...(origin.environment !== null && { [ATTR_DEPLOYMENT_ENVIRONMENT_NAME]: origin.environment }),
      ...(url !== undefined && { [ATTR_CICD_PIPELINE_RUN_URL_FULL]: url, 'run_bridge.run.url': url }),
    };
  }
}

/** Records from files come without a resource; backends list runs by this name. */
const DEFAULTS = { 'service.name': 'dbt' };

/** Says that a bridge has mapped these spans already: another bridge that receives them passes them on as they are. */
const MAPPED_BY = { 'telemetry.distro.name': 'run-bridge' };

/** The scope of records from files, which do not carry one. */
const UNKNOWN_SCOPE = 'run-bridge';

/** OTel's lists have values of one type; a mixed one is written as texts. */
function otelValue(value: ResourceValue): string | number | boolean | string[] | number[] | boolean[] {
  if (typeof value !== 'object') return value;
  if (value.every((item) => typeof item === 'number')) return [...value];
  if (value.every((item) => typeof item === 'boolean')) return [...value];
  return value.map(String);
}
