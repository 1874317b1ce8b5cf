import { type MetricSource, type Sample, stateSamples } from '../metric/feature.js';
import { KAFKA_STATES, type KafkaSource } from './kafka-source.js';

/** What came from the topics, and whether there is a connection. */
export function kafkaMetrics(source: Pick<KafkaSource, 'status'>): MetricSource {
  return { name: 'kafka', read };

  function read(): readonly Sample[] {
    const { state, failureCount, topics } = source.status;
    return [
      ...stateSamples(
        KAFKA_STATES,
        state,
        (one, value): Sample => ({ name: 'run_bridge_kafka_state', value, labels: { state: one } }),
      ),
      { name: 'run_bridge_kafka_failures_total', value: failureCount, labels: {} },
      ...[...topics].flatMap(([topic, counts]): readonly Sample[] => [
        { name: 'run_bridge_kafka_accepted_messages_total', value: counts.acceptedCount, labels: { topic } },
        { name: 'run_bridge_kafka_rejected_messages_total', value: counts.rejectedCount, labels: { topic } },
      ]),
    ];
  }
}
