import { type Clock, pause } from '../core/clock.js';
import { type MetricSource, type Sample, stateSamples } from '../metric/feature.js';
import type { Builder } from './builder.js';
import { JOURNAL_STATES, type KafkaJournal } from './kafka/journal.js';
import { KAFKA_STATES, type KafkaSource } from './kafka/kafka-source.js';

/** What the topics of `sources: kafka:` bring, and whether there is a connection. */
export function sourceMetrics(source: Pick<KafkaSource, 'status' | 'lag'>, clock: Clock): MetricSource {
  return { name: 'kafka', read: () => readingSamples('source', source, clock) };
}

/** What the journal's partitions bring, and how far the runs are that are built of it. */
export function builderMetrics(
  builder: Pick<Builder, 'status'>,
  source: Pick<KafkaSource, 'status' | 'lag'>,
  clock: Clock,
): MetricSource {
  return { name: 'builder', read };

  async function read(): Promise<readonly Sample[]> {
    const reading = await readingSamples('journal', source, clock);
    const { partitionCount, traceCount, unstoredBytes, segmentCount, oldestUncommittedMs } = builder.status;
    const labels = {};
    return [
      ...reading,
      { name: 'run_bridge_builder_partitions', value: partitionCount, labels },
      { name: 'run_bridge_builder_open_traces', value: traceCount, labels },
      { name: 'run_bridge_builder_unstored_bytes', value: unstoredBytes, labels },
      { name: 'run_bridge_builder_stored_segments_total', value: segmentCount, labels },
      { name: 'run_bridge_builder_oldest_uncommitted_age_seconds', value: oldestUncommittedMs / 1_000, labels },
    ];
  }
}

/** @param reader which of the program's readers of topics it is */
async function readingSamples(
  reader: 'source' | 'journal',
  source: Pick<KafkaSource, 'status' | 'lag'>,
  clock: Clock,
): Promise<readonly Sample[]> {
  const lag = await lagInTime(source, clock);
  const { state, failureCount, expiredCount, topics } = source.status;
  return [
    ...stateSamples(
      KAFKA_STATES,
      state,
      (one, value): Sample => ({ name: 'run_bridge_kafka_state', value, labels: { reader, state: one } }),
    ),
    { name: 'run_bridge_kafka_failures_total', value: failureCount, labels: { reader } },
    { name: 'run_bridge_kafka_expired_messages_total', value: expiredCount, labels: { reader } },
    ...[...topics].flatMap(([topic, counts]): readonly Sample[] => [
      { name: 'run_bridge_kafka_accepted_messages_total', value: counts.acceptedCount, labels: { reader, topic } },
      { name: 'run_bridge_kafka_rejected_messages_total', value: counts.rejectedCount, labels: { reader, topic } },
    ]),
    ...[...lag].map(
      ([topic, value]): Sample => ({ name: 'run_bridge_kafka_lag_messages', value, labels: { reader, topic } }),
    ),
  ];
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
