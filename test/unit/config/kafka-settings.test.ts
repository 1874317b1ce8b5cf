import { describe, expect, test } from 'vitest';
import type { KafkaSourceSettings } from '../../../src/config/kafka-settings.js';
import { readConfigurationFile } from '../../../src/config/read-configuration-file.js';
import { journalRows, kafkaSourceRows } from '../../../src/config/resolve-configuration.js';

const read = (...lines: readonly string[]) => {
  const text = ['sources:', '  kafka:', ...lines.map((line) => `    ${line}`), ''].join('\n');
  const environment = { KAFKA_PASSWORD: 'hidden' };
  const context = { environment, homeDir: '/home/me' };
  return readConfigurationFile({ path: '/etc/run-bridge.yaml', text }, context);
};
const settingsOf = (...lines: readonly string[]): KafkaSourceSettings | null | undefined => {
  const { values, problems } = read(...lines);
  expect(problems).toEqual([]);
  return values?.kafkaSource;
};

describe('sources: kafka:', () => {
  test('needs brokers alone: the topics are those of the Collector', () => {
    expect(settingsOf('brokers: kafka:9092')).toEqual({
      brokers: ['kafka:9092'],
      groupId: 'run-bridge',
      tracesTopics: ['otlp_spans'],
      logsTopics: ['otlp_logs'],
      jsonlTopics: [],
      encoding: 'otlp_proto',
      initialOffset: 'earliest',
      tls: null,
      sasl: null,
    });
  });

  test('takes lists, texts with commas, and off', () => {
    const settings = settingsOf(
      'brokers: [kafka-1:9092, "[::1]:9093"]',
      'traces-topic: a, b',
      'logs-topic: off',
      'jsonl-topic: [c]',
      'encoding: otlp_json',
      'initial-offset: latest',
    );
    expect(settings).toMatchObject({
      brokers: ['kafka-1:9092', '[::1]:9093'],
      ...{ tracesTopics: ['a', 'b'], logsTopics: [], jsonlTopics: ['c'] },
      ...{ encoding: 'otlp_json', initialOffset: 'latest' },
    });
  });

  test('has TLS where a file for it is named, with paths from the folder of the file', () => {
    const files = { caFile: '/etc/ca.pem', certFile: '/etc/own.pem', keyFile: '/home/me/own.key' };
    const lines = ['tls-ca-file: ca.pem', 'tls-cert-file: own.pem', 'tls-key-file: ~/own.key'];
    expect(settingsOf('brokers: kafka:9092', ...lines)?.tls).toEqual(files);
    expect(settingsOf('brokers: kafka:9092', 'tls: on')?.tls).toEqual({ caFile: null, certFile: null, keyFile: null });
  });

  test('shows no secret', () => {
    const password = settingsOf(
      'brokers: kafka:9092',
      'sasl-mechanism: scram-sha-512',
      'sasl-username: me',
      `sasl-password: \${env:KAFKA_PASSWORD}`,
    );
    const token = settingsOf(
      'brokers: kafka:9092',
      'sasl-mechanism: OAUTHBEARER',
      'sasl-token-url: https://login.example.com/token',
      'sasl-client-id: me',
      `sasl-client-secret: \${env:KAFKA_PASSWORD}`,
      'sasl-scope: kafka',
    );
    expect(password?.sasl).toEqual({ mechanism: 'SCRAM-SHA-512', username: 'me', password: 'hidden' });
    for (const settings of [password, token]) {
      const rows = settings == null ? [] : kafkaSourceRows(settings, 'run-bridge.yaml:2');
      expect(JSON.stringify(rows)).not.toContain('hidden');
      expect(rows.filter(({ value }) => value === '****')).toHaveLength(1);
    }
  });

  test('says what is wrong, all at once, without secrets', () => {
    expect(read('brokers: kafka', 'traces-topics: a', 'encoding: jaeger_proto').problems).toEqual([
      '/etc/run-bridge.yaml:3: sources.kafka.brokers is not a list of brokers such as [kafka-1:9092, kafka-2:9092]',
      '/etc/run-bridge.yaml:5: sources.kafka.encoding "jaeger_proto" is not one of otlp_proto, otlp_json',
      '/etc/run-bridge.yaml:4: sources.kafka.traces-topics is not a setting; did you mean traces-topic?',
    ]);
    const problemsOf = (...lines: readonly string[]) => read('brokers: kafka:9092', ...lines).problems;
    const at = '/etc/run-bridge.yaml:2: sources.kafka';
    expect(problemsOf('sasl-mechanism: PLAIN', 'sasl-password: hidden')).toEqual([
      `${at} has "sasl-mechanism: PLAIN" and no sasl-username`,
    ]);
    expect(problemsOf('sasl-password: hidden')).toEqual([
      `${at} has sasl-password and no sasl-mechanism; set it, for example to PLAIN`,
    ]);
    expect(problemsOf('tls: off', 'tls-ca-file: ca.pem')).toEqual([
      `${at} has "tls: off" and files for TLS; remove one of them`,
    ]);
    expect(problemsOf('tls-key-file: own.key')).toEqual([
      `${at} has only one of tls-cert-file and tls-key-file; set both`,
    ]);
    expect(problemsOf('traces-topic: off', 'logs-topic: off')).toEqual([
      `${at} reads no topic; set traces-topic, logs-topic or jsonl-topic`,
    ]);
    expect(problemsOf('logs-topic: otlp_spans')).toEqual([`${at} names a topic twice; each holds one kind of message`]);
  });
});

describe('journal: kafka:', () => {
  const readJournal = (...lines: readonly string[]) => {
    const text = ['journal:', '  kafka:', ...lines.map((line) => `    ${line}`), ''].join('\n');
    const context = { environment: { KAFKA_PASSWORD: 'hidden' }, homeDir: '/home/me' };
    return readConfigurationFile({ path: '/etc/run-bridge.yaml', text }, context);
  };

  test('needs brokers alone', () => {
    expect(readJournal('brokers: kafka:9092').values?.journal).toEqual({
      brokers: ['kafka:9092'],
      groupId: 'run-bridge',
      topics: { traces: 'otlp_spans', logs: 'otlp_logs' },
      tls: null,
      sasl: null,
    });
  });

  test('has the connection of a source, and shows no secret', () => {
    const { values } = readJournal(
      'brokers: kafka:9092',
      'traces-topic: a',
      'logs-topic: b',
      'tls: on',
      'sasl-mechanism: PLAIN',
      'sasl-username: me',
      `sasl-password: \${env:KAFKA_PASSWORD}`,
    );
    expect(values?.journal).toMatchObject({ topics: { traces: 'a', logs: 'b' }, sasl: { password: 'hidden' } });
    const rows = values?.journal == null ? [] : journalRows(values.journal, 'run-bridge.yaml:2');
    expect(rows).toContainEqual({ name: 'journal.kafka.logs-topic', value: 'b', origin: 'run-bridge.yaml:2' });
    expect(rows).toContainEqual({ name: 'journal.kafka.sasl-password', value: '****', origin: 'run-bridge.yaml:2' });
  });

  test('says what is wrong', () => {
    expect(readJournal('traces-topic: [a, b]', 'logs-topics: b').problems).toEqual([
      expect.stringMatching(/:2: journal\.kafka\.brokers is not a list of brokers/),
      expect.stringMatching(/:3: journal\.kafka\.traces-topic is not the name of a topic/),
      expect.stringMatching(/:4: journal\.kafka\.logs-topics is not a setting; did you mean logs-topic\?/),
    ]);
    expect(readJournal('brokers: kafka:9092', 'traces-topic: a', 'logs-topic: a').problems).toEqual([
      expect.stringMatching(/:2: journal\.kafka names a topic twice; each holds one kind of message/),
    ]);
  });
});
