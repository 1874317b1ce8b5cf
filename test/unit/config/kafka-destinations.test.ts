import { describe, expect, test } from 'vitest';
import { findKafkaLoops, kafkaDestinations, topicsAndBrokersOf } from '../../../src/config/kafka-destinations.js';
import { readConfigurationFile } from '../../../src/config/read-configuration-file.js';
import { destinationRows } from '../../../src/config/resolve-configuration.js';

const read = (...lines: readonly string[]) =>
  readConfigurationFile(
    { path: '/etc/run-bridge.yaml', text: `${lines.join('\n')}\n` },
    { environment: { KAFKA_PASSWORD: 'hidden' }, homeDir: '/home/me' },
  );
const valuesOf = (...lines: readonly string[]) => {
  const { values, problems } = read(...lines);
  expect(problems).toEqual([]);
  if (values === undefined) throw new Error('no values');
  return { ...values, environmentDestination: undefined };
};
const loops = (...lines: readonly string[]) => findKafkaLoops(valuesOf(...lines));

describe('kafka: of a destination', () => {
  test('needs brokers alone', () => {
    const values = valuesOf('destinations: { lake: { kafka: { brokers: "kafka:9092" }, signals: traces } }');
    const [lake] = kafkaDestinations(values);
    expect(lake?.kafka).toEqual({
      brokers: ['kafka:9092'],
      content: { topics: { traces: 'otlp_spans', logs: 'otlp_logs' }, encoding: 'otlp_proto' },
      tls: null,
      sasl: null,
    });
    expect(lake && topicsAndBrokersOf(lake)).toBe('otlp_spans of kafka:9092');
  });

  test('takes no keys of HTTP, and one topic for each signal', () => {
    const kafka = 'kafka: { brokers: "kafka:9092" }';
    expect(read(`destinations: { lake: { endpoint: "http://a:4318", headers: { a: b }, ${kafka} } }`).problems).toEqual(
      [expect.stringContaining('has both kafka and endpoint, headers; remove one of them')],
    );
    const same =
      'destinations: { lake: { kafka: { brokers: "kafka:9092", traces-topic: a, logs-topic: a, topic: b } } }';
    expect(read(same).problems).toEqual([
      expect.stringContaining('destinations.lake.kafka.topic is not a setting'),
      expect.stringContaining('destinations.lake.kafka names a topic twice'),
    ]);
  });

  test('takes lines for what says that they are not redacted', () => {
    const lake = (...more: readonly string[]) =>
      `destinations: { lake: { kafka: { brokers: "kafka:9092", encoding: jsonl }, ${more.join(', ')} } }`;
    const [config] = kafkaDestinations(valuesOf(lake('redaction: off')));
    expect(config).toMatchObject({ signals: ['logs'], kafka: { content: { topic: 'otlp_jsonl', encoding: 'jsonl' } } });
    expect(config && topicsAndBrokersOf(config)).toBe('otlp_jsonl of kafka:9092');
    expect(read(lake()).problems).toEqual([expect.stringContaining('say so with "redaction: off"')]);
    expect(read(lake('redaction: off', 'signals: logs')).problems).toEqual([
      expect.stringContaining('for which signals say nothing'),
    ]);
  });

  test('shows no secret', () => {
    const [lake] = valuesOf(
      'destinations:',
      '  lake:',
      '    kafka:',
      '      brokers: kafka:9092',
      '      sasl-mechanism: PLAIN',
      '      sasl-username: me',
      `      sasl-password: \${env:KAFKA_PASSWORD}`,
    ).destinations;
    const rows = lake === undefined ? [] : destinationRows(lake, 'run-bridge.yaml:2');
    expect(JSON.stringify(rows)).not.toContain('hidden');
    expect(rows.map(({ name, value }) => `${name}=${value}`)).toEqual(
      expect.arrayContaining([
        'destinations.lake.kafka.brokers=kafka:9092',
        'destinations.lake.kafka.traces-topic=otlp_spans',
        'destinations.lake.kafka.sasl-password=****',
      ]),
    );
    expect(rows.map(({ name }) => name)).not.toContain('destinations.lake.protocol');
  });

  test('is a circle where the bridge reads the same topics at the same broker', () => {
    const lake = (brokers: string, more = '') => `destinations: { lake: { kafka: { brokers: "${brokers}"${more} } } }`;
    const source = 'sources: { kafka: { brokers: "kafka-1:9092, localhost:9092" } }';
    expect(loops(source, lake('KAFKA-1:9092'))).toEqual([
      expect.stringMatching(/lake writes otlp_spans and otlp_logs, which "sources: kafka:" reads/),
    ]);
    expect(loops(source, lake('127.0.0.1:9092', ', traces-topic: a'))).toEqual([
      expect.stringContaining('writes otlp_logs, which'),
    ]);
    expect(loops('journal: { kafka: { brokers: "kafka-1:9092" } }', lake('kafka-1:9092'))).toHaveLength(1);
    expect(loops(source, lake('kafka-1:9093'))).toEqual([]);
    expect(loops(source, lake('kafka-1:9092', ', traces-topic: a, logs-topic: b'))).toEqual([]);
    expect(loops(lake('kafka-1:9092'))).toEqual([]);
  });
});
