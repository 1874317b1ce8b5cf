import type { OtlpEncoding } from '../otlp/otlp-codec.js';
import type { Signal } from '../record/record-batch.js';
import type { DestinationConfig, SignalEndpoint } from './destination-config.js';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What OpenTelemetry's environment variables say. */
export interface OtlpEnvironment {
  /** Named `otlp`; `undefined` where no endpoint is set, or nothing is to be exported. */
  readonly destination: DestinationConfig | undefined;
  /** Resource attributes that override the engine's: OTEL_RESOURCE_ATTRIBUTES and, above it, OTEL_SERVICE_NAME. */
  readonly resourceOverrides: Readonly<Record<string, string>>;
  /** Each a sentence that names its variable: the program cannot start. */
  readonly problems: readonly string[];
  /** Each a sentence: what is set but has no effect. */
  readonly warnings: readonly string[];
}

const SIGNALS: readonly Signal[] = ['traces', 'logs'];
const DEFAULT_TIMEOUT_MS = 10_000;
/** Maximum of a timer, about 24 days. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Reads the standard variables (https://opentelemetry.io/docs/specs/otel/protocol/exporter/): of each, the signal's own
 * comes before the general one, and an empty one counts as unset. OTEL_SDK_DISABLED has no effect: it speaks of the
 * telemetry that a program makes about itself, and run-bridge hands on what others made.
 */
export function readOtlpEnvironment(env: Environment): OtlpEnvironment {
  const reader = new EnvironmentReader(env);
  const endpoints: Partial<Record<Signal, SignalEndpoint>> = {};
  for (const signal of SIGNALS) {
    const endpoint = reader.endpoint(signal);
    if (endpoint !== undefined) endpoints[signal] = endpoint;
  }
  const isExporting = Object.keys(endpoints).length > 0;
  return {
    destination: isExporting ? { name: 'otlp', endpoints, redaction: null, mapping: {} } : undefined,
    resourceOverrides: reader.resourceOverrides(),
    problems: reader.problems,
    warnings: reader.warnings,
  };
}

class EnvironmentReader {
  private readonly found = new Set<string>();
  readonly warnings: string[] = [];

  constructor(private readonly env: Environment) {}

  /** A general variable is read for each signal; its problem is reported once. */
  get problems(): readonly string[] {
    return [...this.found];
  }

  endpoint(signal: Signal): SignalEndpoint | undefined {
    const url = this.url(signal);
    if (url === undefined || !this.isExported(signal)) return undefined;
    return {
      url,
      headers: this.headers(signal),
      timeoutMs: this.timeoutMs(signal),
      compression: this.compression(signal),
      encoding: this.encoding(signal),
      tls: this.tls(signal),
    };
  }

  resourceOverrides(): Readonly<Record<string, string>> {
    const { pairs, problems } = parseKeyValues('OTEL_RESOURCE_ATTRIBUTES', this.text('OTEL_RESOURCE_ATTRIBUTES') ?? '');
    for (const problem of problems) this.found.add(problem);
    const serviceName = this.text('OTEL_SERVICE_NAME');
    return serviceName === undefined ? pairs : { ...pairs, 'service.name': serviceName };
  }

  private url(signal: Signal): string | undefined {
    const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`;
    const ownText = this.text(own);
    if (ownText !== undefined) return this.parseUrl(own, ownText)?.href;
    const general = this.text('OTEL_EXPORTER_OTLP_ENDPOINT');
    if (general === undefined) return undefined;
    const url = this.parseUrl('OTEL_EXPORTER_OTLP_ENDPOINT', general);
    if (url !== undefined) url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/${signal}`;
    return url?.href;
  }

  private parseUrl(variable: string, text: string): URL | undefined {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
    this.found.add(`${variable} is not a URL such as http://127.0.0.1:4318`);
    return undefined;
  }

  private isExported(signal: Signal): boolean {
    const variable = `OTEL_${signal.toUpperCase()}_EXPORTER`;
    const exporters = (this.text(variable) ?? 'otlp').split(',').map((name) => name.trim());
    if (exporters.includes('otlp')) return true;
    const unknown = exporters.filter((name) => name !== 'none');
    if (unknown.length > 0) {
      this.warnings.push(
        `${variable} is ${unknown.join(', ')}, which run-bridge does not have: no ${signal} are exported; set otlp or none`,
      );
    }
    return false;
  }

  private headers(signal: Signal): Readonly<Record<string, string>> {
    const headers: Record<string, string> = {};
    for (const [variable, text] of this.generalThenOwn(signal, 'HEADERS')) {
      const { pairs, problems } = parseKeyValues(variable, text);
      for (const problem of problems) this.found.add(problem);
      for (const [key, value] of Object.entries(pairs)) {
        const name = key.toLowerCase();
        if (HEADER_NAME.test(name) && HEADER_VALUE.test(value)) headers[name] = value;
        else this.found.add(`${variable}: ${JSON.stringify(key)} cannot be sent as a header; check its name and value`);
      }
    }
    return headers;
  }

  private timeoutMs(signal: Signal): number {
    const [variable, text] = this.generalThenOwn(signal, 'TIMEOUT').at(-1) ?? ['', String(DEFAULT_TIMEOUT_MS)];
    const timeoutMs = /^\d{1,12}$/.test(text) ? Number(text) : 0;
    if (timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
    this.found.add(`${variable} is not a number of milliseconds such as 10000`);
    return DEFAULT_TIMEOUT_MS;
  }

  private compression(signal: Signal): 'none' | 'gzip' {
    const [variable, text] = this.generalThenOwn(signal, 'COMPRESSION').at(-1) ?? ['', 'none'];
    if (text === 'none' || text === 'gzip') return text;
    this.found.add(`${variable} is not one of none, gzip`);
    return 'none';
  }

  private encoding(signal: Signal): OtlpEncoding {
    const [variable, text] = this.generalThenOwn(signal, 'PROTOCOL').at(-1) ?? ['', 'http/protobuf'];
    if (text === 'http/json') return 'json';
    if (text === 'grpc') {
      this.found.add(
        `${variable} is grpc, which run-bridge does not export by yet; set http/protobuf and the receiver's HTTP port, usually 4318`,
      );
    } else if (text !== 'http/protobuf') {
      this.found.add(`${variable} is not one of http/protobuf, http/json`);
    }
    return 'protobuf';
  }

  private tls(signal: Signal): SignalEndpoint['tls'] {
    const file = (name: string) => this.generalThenOwn(signal, name).at(-1)?.[1];
    const [caFile, certFile, keyFile] = [file('CERTIFICATE'), file('CLIENT_CERTIFICATE'), file('CLIENT_KEY')];
    if ((certFile === undefined) !== (keyFile === undefined)) {
      this.found.add(
        'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY go together; set both or none',
      );
    }
    return {
      ...(caFile === undefined ? {} : { caFile }),
      ...(certFile === undefined ? {} : { certFile }),
      ...(keyFile === undefined ? {} : { keyFile }),
    };
  }

  /** The general variable and the signal's own, those that are set, with their texts. */
  private generalThenOwn(signal: Signal, name: string): (readonly [variable: string, text: string])[] {
    return [`OTEL_EXPORTER_OTLP_${name}`, `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${name}`].flatMap((variable) => {
      const text = this.text(variable);
      return text === undefined ? [] : [[variable, text] as const];
    });
  }

  private text(variable: string): string | undefined {
    const text = this.env[variable]?.trim();
    return text === '' ? undefined : text;
  }
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
