import { describe, expect, test } from 'vitest';
import { buildingLines, type StartFacts, startLines } from '../../../src/commands/serve.js';

const facts: StartFacts = {
  otlpUrl: 'http://127.0.0.1:4318',
  grpcUrl: null,
  webUrl: 'http://127.0.0.1:4380',
  runsFolder: '/data/runs',
  handsOver: null,
  firstTokenFile: null,
  signIn: { kind: 'command' },
  isTokenNeeded: false,
  isParquetOn: true,
  jsonl: null,
  destinations: [],
};

const JOURNAL = {
  brokers: ['kafka-1:9092', 'kafka-2:9092'],
  topics: { traces: 'otlp_spans', logs: 'otlp_logs' },
};

describe('the start lines', () => {
  test('are six, and one more where gRPC is received', () => {
    expect(startLines(facts)).toHaveLength(6);
    expect(startLines({ ...facts, grpcUrl: 'http://127.0.0.1:4317' }).slice(0, 2)).toEqual([
      'receives  OTLP over HTTP at http://127.0.0.1:4318',
      '          OTLP over gRPC at http://127.0.0.1:4317',
    ]);
  });

  test('say how to sign in, and show a link to a terminal alone', () => {
    const lineOf = (signIn: StartFacts['signIn']) => startLines({ ...facts, signIn }).slice(1, 3);
    const pages = 'pages     http://127.0.0.1:4380';
    expect(lineOf({ kind: 'token' })[0]).toContain(`${pages} (sign in with a token; `);
    expect(lineOf({ kind: 'command' })[0]).toContain(`${pages} (run-bridge open signs in; `);
    expect(lineOf({ kind: 'link', url: 'http://127.0.0.1:4380/sign-in?link=x' })).toEqual([
      `${pages} (sign in with the link below, or a token; health is at http://127.0.0.1:4380/readyz)`,
      'sign in   http://127.0.0.1:4380/sign-in?link=x (once, within ten minutes; later: run-bridge open)',
    ]);
  });

  test('say what is written', () => {
    expect(startLines(facts)[2]).toBe('writes    /data/runs (JSONL and Parquet)');
    expect(startLines({ ...facts, isParquetOn: false, jsonl: 'standard output' })[2]).toBe(
      'writes    /data/runs (JSONL, streamed to standard output)',
    );
  });

  test('name each destination and where it is', () => {
    const destinations = [['jaeger', 'http://jaeger:4318'] as const, ['mine', '/exporter.mjs'] as const];
    expect(startLines({ ...facts, destinations })[3]).toBe(
      'exports   jaeger (http://jaeger:4318), mine (/exporter.mjs)',
    );
  });

  test('say where the token of the first start is', () => {
    expect(startLines({ ...facts, firstTokenFile: '/data/admin-token' })[2]).toBe(
      'token     one for everything is in /data/admin-token; others: run-bridge token create --help',
    );
  });

  test('show where a token goes where one is needed', () => {
    expect(startLines(facts).slice(4)).toEqual([
      'now run   run-bridge exec -- dbt build',
      expect.not.stringContaining('HEADERS'),
    ]);
    expect(startLines({ ...facts, isTokenNeeded: true }).slice(4)).toEqual([
      'now run   RUN_BRIDGE_TOKEN=$TOKEN run-bridge exec --to http://127.0.0.1:4318 -- dbt build',
      expect.stringContaining(' OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer $TOKEN" OTEL_BSP'),
    ]);
  });

  test('name an address that can be reached where it listens on all', () => {
    const lines = startLines({ ...facts, otlpUrl: 'http://0.0.0.0:4319' });
    expect(lines[4]).toContain('run-bridge exec --to http://127.0.0.1:4319 ');
    expect(lines[5]).toContain('OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4319 ');
  });

  test('say of a process that builds nothing where its telemetry goes', () => {
    expect(startLines({ ...facts, handsOver: JOURNAL }).slice(1)).toEqual([
      expect.stringMatching(/^pages /),
      'writes    topics otlp_spans and otlp_logs of Kafka at kafka-1:9092, kafka-2:9092; processes with --role build make runs of it',
      expect.stringMatching(/^now run /),
      expect.stringMatching(/^or /),
    ]);
  });
});

describe('the start lines of a builder', () => {
  test('say what is built, and what becomes of it', () => {
    expect(buildingLines({ ...facts, journal: JOURNAL, runsFolder: 's3://my-bucket/run-bridge/runs' })).toEqual([
      'builds    runs of topics otlp_spans and otlp_logs of Kafka at kafka-1:9092, kafka-2:9092',
      'health    http://127.0.0.1:4380/readyz (figures are at http://127.0.0.1:4380/metrics)',
      'writes    s3://my-bucket/run-bridge/runs (JSONL and Parquet)',
      expect.stringMatching(/^exports {3}nothing; set /),
    ]);
  });
});
