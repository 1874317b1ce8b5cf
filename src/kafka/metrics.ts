import { type Clock, pause } from '../core/clock.js';
import { type MetricSource, type Sample, stateSamples } from '../metric/feature.js';
import { JOURNAL_STATES, type KafkaJournal } from './journal.js';
import { KAFKA_STATES, type KafkaSource } from './kafka-source.js';

/** What came from the topics, and whether there is a connection. */
export function kafkaMetrics(source: Pick<KafkaSource, 'status' | 'lag'>, clock: Clock): MetricSource {
  return { name: 'kafka', read };

  async function read(): Promise<readonly Sample[]> {
    const lag = await lagInTime(source, clock);
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
      ...[...lag].map(
        ([topic, value]): Sample => ({ name: 'run_bridge_kafka_lag_messages', value, labels: { topic } }),
      ),
    ];
  }
}

/** How long the brokers may take to say how much there is, in milliseconds. */
const LAG_TIMEOUT_MS = 1_000;

/** Nothing where the brokers do not say it soon: the other metrics do not wait for them. */
async function lagInTime(source: Pick<KafkaSource, 'lag'>, clock: Clock): Promise<ReadonlyMap<string, number>> {
  const asked = new AbortController();
  const late = pause(clock, LAG_TIMEOUT_MS, asked.signal).then(() => NO_LAG);
  try {
    return await Promise.race([source.lag().catch(() => NO_LAG), late]);
  } finally {
    asked.abort();
  }
}

const NO_LAG: ReadonlyMap<string, number> = new Map();

/** What was written to the journal, and whether Kafka is there. */
export function journalMetrics(journal: Pick<KafkaJournal, 'status'>): MetricSource {
  return { name: 'journal', read };

  function read(): readonly Sample[] {
    const { state, failureCount, topics } = journal.status;
    return [
      ...stateSamples(
        JOURNAL_STATES,
        state,
        (one, value): Sample => ({ name: 'run_bridge_journal_state', value, labels: { state: one } }),
      ),
      { name: 'run_bridge_journal_failures_total', value: failureCount, labels: {} },
      ...[...topics].flatMap(([topic, { messageCount, byteCount }]): readonly Sample[] => [
        { name: 'run_bridge_journal_written_messages_total', value: messageCount, labels: { topic } },
        { name: 'run_bridge_journal_written_bytes_total', value: byteCount, labels: { topic } },
      ]),
    ];
  }
}
