import { describe, expect, it } from 'vitest';
import { type Environment, readOtlpEnvironment } from '../../../src/config/otlp-environment.js';

const GENERAL = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

function endpoints(env: Environment) {
  const { destination, problems } = readOtlpEnvironment(env);
  expect(problems).toEqual([]);
  return destination?.endpoints ?? {};
}

describe('the OTLP environment', () => {
  it('exports nothing without an endpoint, whatever else is set', () => {
    const env = {
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_TIMEOUT: 'soon',
      OTEL_EXPORTER_OTLP_ENDPOINT: ' ',
    };
    expect(readOtlpEnvironment(env)).toEqual({
      destination: undefined,
      metrics: undefined,
      metricsIntervalMs: 60_000,
      offReason: null,
      resourceOverrides: {},
      problems: [],
      warnings: [],
    });
  });

  it('has metrics go to the same place, or to one of their own, unless they are turned off', () => {
    const metrics = (env: Environment) => readOtlpEnvironment(env).metrics?.url;
    expect(metrics({ ...GENERAL, OTEL_LOGS_EXPORTER: 'none' })).toBe('http://collector:4318/v1/metrics');
    const alone = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://prometheus:9090/api/v1/otlp/v1/metrics' };
    expect(metrics(alone)).toBe('http://prometheus:9090/api/v1/otlp/v1/metrics');
    expect(readOtlpEnvironment(alone)).toMatchObject({ destination: undefined, offReason: null });
    expect(metrics({ ...GENERAL, ...alone, OTEL_METRICS_EXPORTER: 'none' })).toBeUndefined();
    const prometheus = readOtlpEnvironment({ ...GENERAL, OTEL_METRICS_EXPORTER: 'prometheus' });
    expect(prometheus).toMatchObject({ metrics: undefined, warnings: [], offReason: null });
    expect(metrics({ ...GENERAL, OTEL_SDK_DISABLED: 'true' })).toBeUndefined();
  });

  it('has metrics pushed as often as it says, and every minute where it says nothing that can be', () => {
    expect(readOtlpEnvironment({ OTEL_METRIC_EXPORT_INTERVAL: '5000' }).metricsIntervalMs).toBe(5_000);
    const wrong = readOtlpEnvironment({ OTEL_METRIC_EXPORT_INTERVAL: 'often' });
    expect(wrong.metricsIntervalMs).toBe(60_000);
    expect(wrong.problems).toEqual(['OTEL_METRIC_EXPORT_INTERVAL is not a number of milliseconds such as 10000']);
  });

  it('has the defaults that OpenTelemetry names', () => {
    const { destination } = readOtlpEnvironment(GENERAL);
    const shared = { headers: {}, timeoutMs: 10_000, compression: 'none', encoding: 'protobuf', tls: {} };
    expect(destination).toEqual({
      name: 'otlp',
      endpoints: {
        traces: { url: 'http://collector:4318/v1/traces', ...shared },
        logs: { url: 'http://collector:4318/v1/logs', ...shared },
      },
      redaction: null,
      mapping: {},
    });
  });

  it.each([
    ['http://c:4318/', 'http://c:4318/v1/traces'],
    ['http://c:4318/otlp', 'http://c:4318/otlp/v1/traces'],
    ['https://c/otlp/?tenant=a', 'https://c/otlp/v1/traces?tenant=a'],
    ['http://user:word@c:1', 'http://user:word@c:1/v1/traces'],
  ])('appends the path to the general endpoint %s', (endpoint, url) => {
    expect(endpoints({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }).traces?.url).toBe(url);
  });

  it("takes a signal's own endpoint as it is, and only that signal's without a general one", () => {
    const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://tempo:4318/otlp/spans' };
    expect(endpoints(env).traces?.url).toBe('http://tempo:4318/otlp/spans');
    expect(endpoints(env).logs).toBeUndefined();
    expect(endpoints({ ...GENERAL, ...env }).logs?.url).toBe('http://collector:4318/v1/logs');
  });

  it('decodes headers and lets those of a signal win over the general ones', () => {
    const env = {
      ...GENERAL,
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Basic%20YWJj==, x-tenant = a%2Cb;c ,,x=1',
      OTEL_EXPORTER_OTLP_LOGS_HEADERS: 'X-Tenant=logs',
    };
    expect(endpoints(env).traces?.headers).toEqual({ authorization: 'Basic YWJj==', 'x-tenant': 'a,b;c', x: '1' });
    expect(endpoints(env).logs?.headers).toEqual({ authorization: 'Basic YWJj==', 'x-tenant': 'logs', x: '1' });
  });

  it("reads every setting in its general form and in the signal's own", () => {
    const env = {
      ...GENERAL,
      OTEL_EXPORTER_OTLP_TIMEOUT: '5000',
      OTEL_EXPORTER_OTLP_LOGS_TIMEOUT: '7000',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_EXPORTER_OTLP_LOGS_COMPRESSION: 'none',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_CERTIFICATE: 'ca.pem',
      OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: 'cert.pem',
      OTEL_EXPORTER_OTLP_CLIENT_KEY: 'key.pem',
      OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE: 'logs-ca.pem',
    };
    expect(endpoints(env).traces).toMatchObject({
      timeoutMs: 5_000,
      compression: 'gzip',
      encoding: 'json',
      tls: { caFile: 'ca.pem', certFile: 'cert.pem', keyFile: 'key.pem' },
    });
    expect(endpoints(env).logs).toMatchObject({
      timeoutMs: 7_000,
      compression: 'none',
      encoding: 'protobuf',
      tls: { caFile: 'logs-ca.pem', certFile: 'cert.pem', keyFile: 'key.pem' },
    });
  });

  it('leaves out a signal whose exporter is none', () => {
    expect(Object.keys(endpoints({ ...GENERAL, OTEL_LOGS_EXPORTER: 'none' }))).toEqual(['traces']);
    const env = { ...GENERAL, OTEL_LOGS_EXPORTER: 'none', OTEL_TRACES_EXPORTER: 'none' };
    expect(readOtlpEnvironment(env).destination).toBeUndefined();
    expect(Object.keys(endpoints({ ...GENERAL, OTEL_TRACES_EXPORTER: 'console, otlp' }))).toEqual(['traces', 'logs']);
  });

  it('warns of an exporter that it does not have', () => {
    const { destination, warnings } = readOtlpEnvironment({ ...GENERAL, OTEL_TRACES_EXPORTER: 'zipkin' });
    expect(Object.keys(destination?.endpoints ?? {})).toEqual(['logs']);
    expect(warnings).toEqual([expect.stringContaining('OTEL_TRACES_EXPORTER is zipkin')]);
  });

  it('ignores each variable that is invalid, says so once, and says no secret', () => {
    const { destination, problems, resourceOverrides } = readOtlpEnvironment({
      ...GENERAL,
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'localhost:4318',
      OTEL_EXPORTER_OTLP_HEADERS: 'secret1,a b=secret2,c=%zz-secret3,d=secret4%0A',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'tenant=a',
      OTEL_EXPORTER_OTLP_TIMEOUT: '0',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'GZIP',
      OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'zstd',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'thrift',
      OTEL_EXPORTER_OTLP_CLIENT_KEY: 'key.pem',
      OTEL_RESOURCE_ATTRIBUTES: 'a=b,deployment',
      OTEL_SERVICE_NAME: 'nightly',
    });
    expect(problems.join('\n')).not.toContain('secret');
    expect(problems).toEqual([
      'OTEL_EXPORTER_OTLP_PROTOCOL is not one of http/protobuf, http/json',
      'OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds such as 10000',
      'OTEL_EXPORTER_OTLP_TRACES_COMPRESSION is not one of none, gzip',
      'OTEL_EXPORTER_OTLP_HEADERS: entry 1 is not "key=value" with a percent-encoded value',
      expect.stringContaining('go together'),
      'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT is not a URL such as http://127.0.0.1:4318',
      'OTEL_RESOURCE_ATTRIBUTES: entry 2 is not "key=value" with a percent-encoded value',
    ]);
    const shared = { timeoutMs: 10_000, compression: 'gzip', encoding: 'protobuf', tls: {} };
    expect(destination?.endpoints).toEqual({
      traces: { url: 'http://collector:4318/v1/traces', headers: { tenant: 'a' }, ...shared },
      logs: { url: 'http://collector:4318/v1/logs', headers: {}, ...shared },
    });
    expect(resourceOverrides).toEqual({ 'service.name': 'nightly' });
  });

  it.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, 'OTEL_EXPORTER_OTLP_ENDPOINT is not a URL'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '/v1/traces' }, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not a URL'],
    [{ ...GENERAL, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL is grpc'],
    [{ ...GENERAL, OTEL_SDK_DISABLED: 'TRUE' }, 'OTEL_SDK_DISABLED is true'],
  ])('says why there is no destination with %j', (env, reason) => {
    const { destination, offReason } = readOtlpEnvironment(env);
    expect(destination).toBeUndefined();
    expect(offReason).toContain(reason);
  });

  it('overrides resource attributes, the service name above all', () => {
    const attributes = 'service.name=from-attributes,deployment.environment.name=prod%20eu';
    expect(readOtlpEnvironment({ OTEL_RESOURCE_ATTRIBUTES: attributes }).resourceOverrides).toEqual({
      'service.name': 'from-attributes',
      'deployment.environment.name': 'prod eu',
    });
    const env = { OTEL_RESOURCE_ATTRIBUTES: attributes, OTEL_SERVICE_NAME: 'nightly' };
    expect(readOtlpEnvironment(env).resourceOverrides['service.name']).toBe('nightly');
  });

  it('is switched off by OTEL_SDK_DISABLED where that is true, and by no other word', () => {
    expect(readOtlpEnvironment({ ...GENERAL, OTEL_SDK_DISABLED: 'true' }).problems).toEqual([]);
    expect(Object.keys(endpoints({ ...GENERAL, OTEL_SDK_DISABLED: 'False' }))).toEqual(['traces', 'logs']);
    const { destination, problems } = readOtlpEnvironment({ ...GENERAL, OTEL_SDK_DISABLED: '1' });
    expect(Object.keys(destination?.endpoints ?? {})).toEqual(['traces', 'logs']);
    expect(problems).toEqual(['OTEL_SDK_DISABLED is not one of true, false']);
  });
});
