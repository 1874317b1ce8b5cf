import { eventTypeByName } from '../otlp/attribute-schema.js';
import {
  EngineRecognition,
  hasSignAmong,
  isKeyValueList,
  isMapped,
  isSign,
  isSignedItem,
  namesOf,
  signPattern,
} from '../otlp/engine-recognition.js';
import type {
  AnyValue,
  ExportRequest,
  KeyValue,
  OtlpLogRecord,
  OtlpResource,
  OtlpScope,
  OtlpSpan,
  ResourceGroup,
} from '../otlp/export-request.js';
import { JsonCodec } from '../otlp/json-codec.js';
import type { AttributePolicy } from '../record/event-table.js';
import type { Signal } from '../record/record-batch.js';
import { attributePolicyOf, KnownNames, type RedactionLevel, SharedTexts } from '../redaction/known-names.js';
import { NAME_ATTRIBUTES, Redactor } from '../redaction/redactor.js';

/** Attributes of libraries and of dbt 1.x, beside those of the engine, that are neither unknown nor any text. */
const POLICIES: ReadonlyMap<string, AttributePolicy> = new Map([
  ['db.statement', 'sql'],
  ['db.query.text', 'sql'],
  ['db.query.summary', 'name'],
  ['process.command_line', 'command'],
  ['command', 'command'],
  ['upstream.name', 'keep'],
  ['exception.type', 'name'],
  ['exception.message', 'text'],
  ['exception.stacktrace', 'text'],
]);
/** Values of a statement's parameters. */
const PARAMETER = /^db\.(?:query|operation)\.parameter\./;
const COMMAND_ARGS = 'process.command_args';
const ANY_EVENT = '';

/**
 * Redacts what is passed on as another service's and yet has a service, scope or attribute of the engine's. Anything else
 * stays as it is, and so do exports of another bridge: that one has redacted them by its configuration.
 */
export class PassthroughRedaction {
  private readonly recognition: EngineRecognition;
  private readonly json = new JsonCodec();
  private readonly shared = new SharedTexts();
  /** What a message has at least that is to be redacted: most have not, and are not read. */
  private readonly trace: RegExp;

  /** @param engineNames what the engine is called beside its known names */
  constructor(
    private readonly level: RedactionLevel,
    engineNames: readonly string[],
  ) {
    this.recognition = new EngineRecognition(engineNames);
    const own = engineNames.map((name) => `|${JSON.stringify(name).replaceAll(/[^\w"-]/g, '\\$&')}`);
    this.trace = new RegExp(signPattern() + own.join(''), 'i');
  }

  /** @param body OTLP JSON, as it is kept */
  redact(signal: Signal, body: string): string {
    if (this.level === 'off' || !this.trace.test(body)) return body;
    const request = this.json.decode(signal, Buffer.from(body));
    const redacted = this.request(request);
    return redacted === request ? body : Buffer.from(this.json.encode(redacted)).toString('utf8');
  }

  private request(request: ExportRequest): ExportRequest {
    const redacted: ExportRequest =
      request.signal === 'traces'
        ? { ...request, resources: request.resources.map((group) => this.group(group, (span, by) => by.span(span))) }
        : { ...request, resources: request.resources.map((group) => this.group(group, (log, by) => by.log(log))) };
    return redacted.resources.every((group, index) => group === request.resources[index]) ? request : redacted;
  }

  private group<T extends OtlpSpan | OtlpLogRecord>(
    group: ResourceGroup<T>,
    redacted: (record: T, by: RecordRedaction) => T,
  ): ResourceGroup<T> {
    const { attributes } = group.resource;
    if (isMapped(attributes) || !this.isSuspect(group)) return group;
    const by = new RecordRedaction(new Redactor(this.level, new KnownNames(), this.shared), isOfOthers(attributes));
    for (const { records } of group.scopes) for (const record of records) by.learn(record);
    return {
      ...group,
      resource: by.resource(group.resource),
      scopes: group.scopes.map((one) => ({
        ...one,
        scope: by.scope(one.scope),
        records: one.records.map((record) => redacted(record, by)),
      })),
    };
  }

  /** One scope that is suspect makes all of its resource so: they are one program's. */
  private isSuspect({ resource, scopes }: ResourceGroup<OtlpSpan | OtlpLogRecord>): boolean {
    const { attributes } = resource;
    if (hasSignAmong(attributes)) return true;
    return scopes.some(
      ({ scope, records }) =>
        this.recognition.hasSign(namesOf(attributes, scope.name)) ||
        hasSignAmong(scope.attributes) ||
        records.some(isSignedItem),
    );
  }
}

/**
 * Returns whether it says that another program than the engine made it, such as dbt 1.x under an agent: single words of its own
 * are then names, and not values.
 */
function isOfOthers(resource: readonly KeyValue[]): boolean {
  return resource.some(({ key, value }) => key === 'telemetry.sdk.language' && value !== 'rust');
}

/** Redacts records of one resource. */
class RecordRedaction {
  /** @param isOfOthers another program than the engine sent them */
  constructor(
    private readonly redactor: Redactor,
    private readonly isOfOthers: boolean,
  ) {}

  /** What the attributes name, texts may show. */
  learn({ attributes }: OtlpSpan | OtlpLogRecord): void {
    for (const { key, value } of attributes) {
      if (typeof value !== 'string') continue;
      if (NAMES.has(key)) {
        if (key === 'unique_id' || ONE_WORD.test(value)) this.redactor.learn(value);
      } else if (this.policyOf(key) === 'sql') this.redactor.learnStatement(value, adapterOf(attributes));
    }
  }

  resource(resource: OtlpResource): OtlpResource {
    return { ...resource, attributes: resource.attributes.map((one) => this.ofSource(one)) };
  }

  scope(scope: OtlpScope): OtlpScope {
    return { ...scope, attributes: scope.attributes.map((one) => this.ofSource(one)) };
  }

  /** What describes a program stays, but for its command and what is the engine's. */
  private ofSource(attribute: KeyValue): KeyValue {
    const { key, value } = attribute;
    const isShown = key !== COMMAND_ARGS && !POLICIES.has(key) && !PARAMETER.test(key) && !isSign(attribute);
    return isShown ? attribute : { key, value: this.value(key, value, undefined) };
  }

  span(span: OtlpSpan): OtlpSpan {
    const adapter = adapterOf(span.attributes);
    return {
      ...span,
      // Those that the engine makes have names of the project's things and counts, and seldom quotes.
      name:
        eventTypeByName(span.name) === undefined || QUOTE.test(span.name)
          ? this.redactor.byPolicy('name', span.name)
          : span.name,
      attributes: this.attributes(span.attributes, adapter),
      events: span.events.map((event) => ({
        ...event,
        name: this.redactor.byPolicy('name', event.name),
        attributes: this.attributes(event.attributes, adapter),
      })),
      links: span.links.map((link) => ({ ...link, attributes: this.attributes(link.attributes, adapter) })),
      status: span.status && { ...span.status, message: this.redactor.text(span.status.message) },
    };
  }

  log(log: OtlpLogRecord): OtlpLogRecord {
    const adapter = adapterOf(log.attributes);
    const body = typeof log.body === 'string' ? this.redactor.text(log.body) : this.value('', log.body, adapter);
    return { ...log, body, attributes: this.attributes(log.attributes, adapter) };
  }

  private attributes(attributes: readonly KeyValue[], adapter: string | undefined): readonly KeyValue[] {
    return attributes.map(({ key, value }) => ({ key, value: this.value(key, value, adapter) }));
  }

  private value(key: string, value: AnyValue, adapter: string | undefined): AnyValue {
    if (value === null || typeof value === 'boolean') return value;
    if (typeof value === 'string') return this.text(key, value, adapter);
    if (typeof value === 'number' || typeof value === 'bigint') {
      return this.redactor.number(key, Number(value), ANY_EVENT) === undefined ? '?' : value;
    }
    if (value instanceof Uint8Array) return '?';
    if (isKeyValueList(value)) {
      const entries = value.entries.map((entry) => ({
        key: entry.key,
        value: this.value(key === '' ? entry.key : `${key}.${entry.key}`, entry.value, adapter),
      }));
      return { entries };
    }
    if (key === COMMAND_ARGS) return this.redactor.command(value.map(String).join(' ')).split(' ');
    return value.map((item) => this.value(key, item, adapter));
  }

  private text(key: string, text: string, adapter: string | undefined): string {
    const { redactor } = this;
    const policy = this.policyOf(key);
    if (policy === 'sql') return redactor.sql(text, adapter).text ?? '?';
    // Who sends it need not be the engine, so it must look like a name, or like an id.
    if (policy === 'keep') return ID.test(text) ? text : redactor.byPolicy('name', text);
    return redactor.byPolicy(policy, text);
  }

  private policyOf(key: string): AttributePolicy {
    if (PARAMETER.test(key)) return 'deny';
    const policy = POLICIES.get(key) ?? attributePolicyOf(key, ANY_EVENT);
    return policy === 'ownWords' && this.isOfOthers ? 'name' : policy;
  }
}

/** What names the project's things; target and profile may be called as anything. */
const NAMES: ReadonlySet<string> = new Set(NAME_ATTRIBUTES.filter((name) => name !== 'target' && name !== 'profile'));
const ONE_WORD = /^[\p{L}_][\w.\-/]*$/u;
const ID = /^(?=[\d-]*[a-f])[\da-f-]{1,64}$/i;
const QUOTE = /['"`]/;

/** The database of a statement, as the engine and as OTel name it. */
const ADAPTER: ReadonlySet<string> = new Set(['adapter_type', 'db.system.name', 'db.system']);

function adapterOf(attributes: readonly KeyValue[]): string | undefined {
  const adapter = attributes.find(({ key }) => ADAPTER.has(key))?.value;
  return typeof adapter === 'string' ? adapter : undefined;
}
