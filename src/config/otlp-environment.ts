import type { OtlpEncoding } from '../otlp/otlp-codec.js';
import type { Signal } from '../record/record-batch.js';
import { type DestinationConfig, isSendableHeader, parseHttpUrl, type SignalEndpoint } from './destination-config.js';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What OpenTelemetry's environment variables say. */
export interface OtlpEnvironment {
  /** Named `otlp`; `undefined` where no endpoint is set, or nothing is to be exported. */
  readonly destination: DestinationConfig | undefined;
  /** Where metrics of runs are pushed to, also without `destination`; `undefined` where no endpoint is set, or they are not wanted. */
  readonly metrics: SignalEndpoint | undefined;
  /** How often metrics are pushed, in milliseconds: OTEL_METRIC_EXPORT_INTERVAL. */
  readonly metricsIntervalMs: number;
  /** Why nothing is exported by these variables although one of them names an endpoint; `null` where nothing is in the way. */
  readonly offReason: string | null;
  /** Resource attributes that override the engine's: OTEL_RESOURCE_ATTRIBUTES and, above it, OTEL_SERVICE_NAME. */
  readonly resourceOverrides: Readonly<Record<string, string>>;
  /** Each a sentence that names a variable which is ignored, and says what is wrong with it; never its value. */
  readonly problems: readonly string[];
  /** Each a sentence: what is set but has no effect. */
  readonly warnings: readonly string[];
}

const SIGNALS: readonly Signal[] = ['traces', 'logs'];
/** What the variables speak of. */
type ExportedSignal = Signal | 'metrics';
const DEFAULT_TIMEOUT_MS = 10_000;
/** OpenTelemetry's default for OTEL_METRIC_EXPORT_INTERVAL. */
const DEFAULT_INTERVAL_MS = 60_000;
/** Maximum of a timer, about 24 days. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Reads the standard variables (https://opentelemetry.io/docs/specs/otel/protocol/exporter/): of each, the signal's own
 * comes before the general one, and an empty one counts as unset. They may have been set for another program, so an invalid
 * one is ignored, as OpenTelemetry asks of every kind of value
 * (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/), and no value is an error.
 */
export function readOtlpEnvironment(env: Environment): OtlpEnvironment {
  const reader = new EnvironmentReader(env);
  const isDisabled = reader.isDisabled();
  const endpoints: Partial<Record<Signal, SignalEndpoint>> = {};
  for (const signal of isDisabled ? [] : SIGNALS) {
    const endpoint = reader.endpoint(signal);
    if (endpoint !== undefined) endpoints[signal] = endpoint;
  }
  const isExporting = Object.keys(endpoints).length > 0;
  const obstacles = isDisabled ? ['OTEL_SDK_DISABLED is true'] : reader.obstacles;
  const isOff = !isExporting && reader.hasEndpoint && obstacles.length > 0;
  return {
    destination: isExporting ? { name: ENVIRONMENT_DESTINATION, endpoints, redaction: null, mapping: {} } : undefined,
    metrics: isDisabled ? undefined : reader.endpoint('metrics'),
    metricsIntervalMs: reader.metricsIntervalMs(),
    offReason: isOff ? obstacles.join('; ') : null,
    resourceOverrides: reader.resourceOverrides(),
    problems: reader.problems,
    warnings: reader.warnings,
  };
}

/** Name of the destination that the variables make. */
export const ENVIRONMENT_DESTINATION = 'otlp';

class EnvironmentReader {
  private readonly found = new Set<string>();
  private readonly inTheWay = new Set<string>();
  private readonly said = new Set<string>();

  constructor(private readonly env: Environment) {}

  /** A general variable is read for each signal; its problem is reported once. */
  get problems(): readonly string[] {
    return [...this.found];
  }

  get warnings(): readonly string[] {
    return [...this.said];
  }

  /** What keeps a signal from being exported, whose endpoint is set. */
  get obstacles(): readonly string[] {
    return [...this.inTheWay];
  }

  get hasEndpoint(): boolean {
    return ['', 'TRACES_', 'LOGS_'].some((own) => this.text(`OTEL_EXPORTER_OTLP_${own}ENDPOINT`) !== undefined);
  }

  isDisabled(): boolean {
    const text = this.text('OTEL_SDK_DISABLED')?.toLowerCase() ?? 'false';
    if (text !== 'true' && text !== 'false') this.found.add('OTEL_SDK_DISABLED is not one of true, false');
    return text === 'true';
  }

  endpoint(signal: ExportedSignal): SignalEndpoint | undefined {
    const url = this.url(signal);
    if (url === undefined || !this.isExported(signal)) return undefined;
    const protocol = this.valid(signal, 'PROTOCOL', parseProtocol, 'one of http/protobuf, http/json');
    if (protocol?.value === 'grpc') {
      return this.leaveOut(
        `${protocol.variable} is grpc, which run-bridge does not export by yet: nothing is exported; set http/protobuf and the receiver's HTTP port, usually 4318`,
      );
    }
    const timeout = this.valid(signal, 'TIMEOUT', parseTimeoutMs, MILLISECONDS);
    const compression = this.valid(signal, 'COMPRESSION', parseCompression, 'one of none, gzip');
    return {
      url,
      headers: this.headers(signal),
      timeoutMs: timeout?.value ?? DEFAULT_TIMEOUT_MS,
      compression: compression?.value ?? 'none',
      encoding: protocol?.value ?? 'protobuf',
      tls: this.tls(signal),
    };
  }

  metricsIntervalMs(): number {
    const text = this.text('OTEL_METRIC_EXPORT_INTERVAL');
    const intervalMs = text === undefined ? DEFAULT_INTERVAL_MS : parseTimeoutMs(text);
    if (intervalMs === undefined) this.found.add(notA('OTEL_METRIC_EXPORT_INTERVAL', MILLISECONDS));
    return intervalMs ?? DEFAULT_INTERVAL_MS;
  }

  /** Of attributes that cannot be read, all are ignored (https://opentelemetry.io/docs/specs/otel/resource/sdk/). */
  resourceOverrides(): Readonly<Record<string, string>> {
    const { pairs, problems } = parseKeyValues('OTEL_RESOURCE_ATTRIBUTES', this.text('OTEL_RESOURCE_ATTRIBUTES') ?? '');
    if (problems[0] !== undefined) this.found.add(problems[0]);
    const attributes = problems.length === 0 ? pairs : {};
    const serviceName = this.text('OTEL_SERVICE_NAME');
    return serviceName === undefined ? attributes : { ...attributes, 'service.name': serviceName };
  }

  /** A signal is not exported for what a variable says, which is valid. */
  private leaveOut(sentence: string): undefined {
    this.said.add(sentence);
    this.inTheWay.add(sentence);
  }

  private url(signal: ExportedSignal): string | undefined {
    const found = this.valid(signal, 'ENDPOINT', parseHttpUrl, HTTP_URL);
    if (found === undefined) {
      for (const [variable] of this.ownThenGeneral(signal, 'ENDPOINT')) this.inTheWay.add(notA(variable, HTTP_URL));
      return undefined;
    }
    const { variable, value: url } = found;
    if (variable === GENERAL_ENDPOINT) url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/${signal}`;
    return url.href;
  }

  private isExported(signal: ExportedSignal): boolean {
    const variable = `OTEL_${signal.toUpperCase()}_EXPORTER`;
    const exporters = (this.text(variable) ?? 'otlp').split(',').map((name) => name.trim().toLowerCase());
    if (exporters.includes('otlp')) return true;
    // Prometheus reads metrics from the web port, whatever this says.
    const known = signal === 'metrics' ? ['none', 'prometheus'] : ['none'];
    const unknown = exporters.filter((name) => !known.includes(name));
    if (unknown.length > 0) {
      this.leaveOut(
        `${variable} is ${unknown.join(', ')}, which run-bridge does not have: no ${signal} are exported; set otlp or none`,
      );
    }
    return false;
  }

  /** Of headers that cannot be read, all of their variable are ignored. */
  private headers(signal: ExportedSignal): Readonly<Record<string, string>> {
    const headers: Record<string, string> = {};
    for (const [variable, text] of this.ownThenGeneral(signal, 'HEADERS').reverse()) {
      const { pairs, problems } = parseKeyValues(variable, text);
      const named = Object.entries(pairs).map(([key, value]) => [key, key.toLowerCase(), value] as const);
      const wrong = named.find(([, name, value]) => !isSendableHeader(name, value));
      const problem =
        problems[0] ??
        (wrong && `${variable}: ${JSON.stringify(wrong[0])} cannot be sent as a header; check its name and value`);
      if (problem !== undefined) this.found.add(problem);
      else for (const [, name, value] of named) headers[name] = value;
    }
    return headers;
  }

  private tls(signal: ExportedSignal): SignalEndpoint['tls'] {
    const file = (name: string) => this.ownThenGeneral(signal, name)[0]?.[1];
    const [caFile, certFile, keyFile] = [file('CERTIFICATE'), file('CLIENT_CERTIFICATE'), file('CLIENT_KEY')];
    const isWhole = certFile !== undefined && keyFile !== undefined;
    if (!isWhole && (certFile ?? keyFile) !== undefined) {
      this.found.add(
        'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY go together; set both or none',
      );
    }
    return {
      ...(caFile === undefined ? {} : { caFile }),
      ...(isWhole ? { certFile, keyFile } : {}),
    };
  }

  /** The value of the signal's own variable, else of the general one, whichever is set and valid. */
  private valid<Value>(
    signal: ExportedSignal,
    name: string,
    parse: (text: string) => Value | undefined,
    expected: string,
  ): { readonly variable: string; readonly value: Value } | undefined {
    for (const [variable, text] of this.ownThenGeneral(signal, name)) {
      const value = parse(text);
      if (value !== undefined) return { variable, value };
      this.found.add(notA(variable, expected));
    }
    return undefined;
  }

  /** The signal's own variable and the general one, those that are set, with their texts. */
  private ownThenGeneral(signal: ExportedSignal, name: string): (readonly [variable: string, text: string])[] {
    return [`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${name}`, `OTEL_EXPORTER_OTLP_${name}`].flatMap((variable) => {
      const text = this.text(variable);
      return text === undefined ? [] : [[variable, text] as const];
    });
  }

  private text(variable: string): string | undefined {
    const text = this.env[variable]?.trim();
    return text === '' ? undefined : text;
  }
}

const GENERAL_ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT';
const MILLISECONDS = 'a number of milliseconds such as 10000';
const HTTP_URL = 'a URL such as http://127.0.0.1:4318';

function notA(variable: string, expected: string): string {
  return `${variable} is not ${expected}`;
}

function parseTimeoutMs(text: string): number | undefined {
  const timeoutMs = /^\d{1,12}$/.test(text) ? Number(text) : 0;
  return timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS ? timeoutMs : undefined;
}

/** OpenTelemetry compares names of a closed set without regard to case. */
function parseCompression(text: string): 'none' | 'gzip' | undefined {
  const name = text.toLowerCase();
  return name === 'none' || name === 'gzip' ? name : undefined;
}

function parseProtocol(text: string): OtlpEncoding | 'grpc' | undefined {
  const name = text.toLowerCase();
  if (name === 'grpc') return name;
  return name === 'http/json' ? 'json' : name === 'http/protobuf' ? 'protobuf' : undefined;
}

/** Pairs read from a text, and what is wrong with it; never names a value, which may be a secret. */
export interface KeyValues {
  readonly pairs: Readonly<Record<string, string>>;
  readonly problems: readonly string[];
}

/**
 * Reads `key=value,key2=value2` with percent-encoded values, as OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES have
 * it (https://opentelemetry.io/docs/specs/otel/protocol/exporter/): W3C baggage without its properties, so a `;` is part of
 * the value.
 * @param variable named in the problems.
 */
export function parseKeyValues(variable: string, text: string): KeyValues {
  const pairs: Record<string, string> = {};
  const problems: string[] = [];
  for (const [index, part] of text.split(',').entries()) {
    if (part.trim() === '') continue;
    const equals = part.indexOf('=');
    const key = decode(part.slice(0, Math.max(0, equals)));
    const value = decode(part.slice(equals + 1));
    if (equals === -1 || key === undefined || key === '' || value === undefined) {
      problems.push(`${variable}: entry ${index + 1} is not "key=value" with a percent-encoded value`);
    } else {
      pairs[key] = value;
    }
  }
  return { pairs, problems };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.trim());
  } catch {
    return undefined;
  }
}

/**
 * Sizes of the engine's queues with which it lost nothing when answers took half a second, as environment variables. Its
 * defaults hold 2,048 items and drop the rest silently.
 */
export const ENGINE_QUEUES = {
  OTEL_BSP_MAX_QUEUE_SIZE: '100000',
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4096',
  OTEL_BLRP_MAX_QUEUE_SIZE: '100000',
  OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: '4096',
} as const;
