import type { Configuration } from './configuration.js';
import { canonicalHost, LOOPBACK } from './destination-config.js';
import type { DestinationSettings } from './destination-settings.js';
import type { KafkaConnection, KafkaDestinationSettings } from './kafka-settings.js';

/** A destination of the file that writes topics of Kafka. */
export interface KafkaDestinationConfig extends DestinationSettings {
  readonly kafka: KafkaDestinationSettings;
}

/** Destinations that write topics of Kafka; one that has the name of the environment's gives way to it. */
export function kafkaDestinations({
  destinations,
  environmentDestination,
}: Pick<Configuration, 'destinations' | 'environmentDestination'>): readonly KafkaDestinationConfig[] {
  return destinations.flatMap(({ kafka, ...settings }) =>
    kafka === null || settings.name === environmentDestination?.name ? [] : [{ ...settings, kafka }],
  );
}

/** Where one is, for start lines: `otlp_spans and otlp_logs of kafka-1:9092`. */
export function topicsAndBrokersOf(config: KafkaDestinationConfig): string {
  const { kafka } = config;
  return `${topicsOf(config).join(' and ')} of ${kafka.brokers.join(', ')}`;
}

function topicsOf({ signals, kafka: { content } }: KafkaDestinationConfig): readonly string[] {
  return content.encoding === 'jsonl' ? [content.topic] : signals.map((signal) => content.topics[signal]);
}

/** Its brokers as addresses: `kafka://kafka-1:9092` each. */
export function brokerUrlsOf({ kafka }: KafkaDestinationConfig): readonly string[] {
  return kafka.brokers.map((broker) => `kafka://${broker}`);
}

/**
 * Finds destinations whose topics the bridge reads itself, which would bring every record round in a circle. Brokers are told by
 * their addresses: that two are of one cluster, only they know.
 * @returns a sentence for each
 */
export function findKafkaLoops(
  configuration: Pick<Configuration, 'destinations' | 'environmentDestination' | 'kafkaSource' | 'journal'>,
): readonly string[] {
  const { kafkaSource: source, journal } = configuration;
  const readings: readonly Reading[] = [
    ...(source === null
      ? []
      : [{ key: 'sources', ...source, names: [...source.tracesTopics, ...source.logsTopics, ...source.jsonlTopics] }]),
    ...(journal === null ? [] : [{ key: 'journal', ...journal, names: Object.values(journal.topics) }]),
  ];
  return kafkaDestinations(configuration).flatMap((config) =>
    readings.flatMap(({ key, names, brokers }) => {
      const both = topicsOf(config).filter((topic) => names.includes(topic));
      if (both.length === 0 || !haveOneInCommon(brokers, config.kafka.brokers)) return [];
      const topics = both.join(' and ');
      return `the destination ${config.name} writes ${topics}, which "${key}: kafka:" reads at the same broker, so every span would come back; give the destination other topics`;
    }),
  );
}

interface Reading extends Pick<KafkaConnection, 'brokers'> {
  /** Of the configuration file. */
  readonly key: string;
  /** Topics. */
  readonly names: readonly string[];
}

function haveOneInCommon(some: readonly string[], others: readonly string[]): boolean {
  const known = new Set(some.map(canonicalBroker));
  return others.some((broker) => known.has(canonicalBroker(broker)));
}

function canonicalBroker(broker: string): string {
  const colon = broker.lastIndexOf(':');
  const host = canonicalHost(broker.slice(0, colon));
  return `${LOOPBACK.has(host) ? 'localhost' : host}:${Number(broker.slice(colon + 1))}`;
}
