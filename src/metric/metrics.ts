import { DURATION_BOUNDS } from '../storage/run-totals.js';

const SUBSCRIPTION = ['account', 'subscription'] as const;
/** What runs are counted by; `job` would be the scraper's own label. */
const JOB = ['account', 'project', 'environment', 'cicd_pipeline_name'] as const;

/** All metrics, in the order of the response; docs/reference/metrics.md shows them as tables. */
export const METRICS = {
  run_bridge_build_info: gauge('Always 1; the label says the version.', 'version'),
  run_bridge_start_time_seconds: gauge('When the process started, in seconds since 1970.'),
  run_bridge_ready: gauge('1 when every part can do its work, as /readyz says.'),
  run_bridge_check_ready: gauge('1 when the part can do its work; /readyz?verbose has the reason where not.', 'check'),
  run_bridge_source_up: gauge('1 when the metrics of this part could be read; 0: they are missing here.', 'source'),
  run_bridge_open_runs: gauge('Runs that are not over, as far as this process follows them.'),
  run_bridge_runs_set_aside: gauge(
    'Runs that the database can never keep: they are in their record logs alone; the log names them.',
  ),

  cicd_pipeline_run_duration_seconds: histogram(
    'How long runs took that are over, from their first engine command to their end; also of removed runs.',
    DURATION_BOUNDS,
    ...JOB,
    'cicd_pipeline_result',
  ),
  cicd_pipeline_run_errors_total: counter(
    'Runs that ended in error, lost ones included; also removed runs.',
    ...JOB,
    'error_type',
  ),
  cicd_pipeline_run_active: gauge('Runs that are not over.', ...JOB, 'cicd_pipeline_run_state'),
  run_bridge_run_last_start_timestamp_seconds: gauge(
    'When the last run of the job began, in seconds since 1970.',
    ...JOB,
  ),
  run_bridge_run_last_end_timestamp_seconds: gauge(
    'When the last run of the job ended that had this result, in seconds since 1970.',
    ...JOB,
    'cicd_pipeline_result',
  ),
  run_bridge_run_last_id: gauge(
    'The number of this run, as its page and the API have it; missing where it was removed.',
    ...JOB,
    'cicd_pipeline_result',
  ),
  run_bridge_last_run_duration_seconds: gauge('How long the last run took that is over.', ...JOB),
  run_bridge_last_run_nodes: gauge(
    'Nodes of this run by their type and outcome; tests are nodes.',
    ...JOB,
    'type',
    'outcome',
  ),
  run_bridge_last_run_failing_rows: gauge('Rows that failed the tests of this run.', ...JOB),
  run_bridge_last_run_affected_rows: gauge('Rows that the nodes of this run changed, tests left out.', ...JOB),
  run_bridge_last_run_queries: gauge('Queries of this run that ended.', ...JOB),
  run_bridge_last_run_warehouse_seconds: gauge('Time of these queries, of all threads together.', ...JOB),
  run_bridge_last_run_waiting_seconds: gauge(
    'Time in which nodes of this run waited for a thread or a connection, of all together.',
    ...JOB,
  ),
  run_bridge_last_run_critical_path_seconds: gauge('Length of the critical path of this run.', ...JOB),
  run_bridge_last_run_node_seconds: gauge(
    "What of this run's length fell to the node; only with node-metrics, and of the nodes with the largest shares.",
    ...JOB,
    'node',
  ),
  run_bridge_left_out_jobs: gauge('Jobs without metrics of their runs, since 500 others had a run later.'),

  run_bridge_memory_used_bytes: gauge('What the process takes, less what its allocators keep for the next objects.'),
  run_bridge_memory_resident_bytes: gauge('What the process takes of the memory, as the operating system counts it.'),
  run_bridge_memory_limit_bytes: gauge('max-memory: near it requests are refused.'),
  run_bridge_disk_free_bytes: gauge('Free room on the file system of the data folder.'),
  run_bridge_disk_size_bytes: gauge('Size of the file system of the data folder.'),
  run_bridge_disk_reserve_bytes: gauge('What is kept free: near it requests are refused.'),
  run_bridge_data_folder_used_bytes: gauge('What the data folder holds; only with max-disk.'),
  run_bridge_data_folder_limit_bytes: gauge('max-disk: near it requests are refused; only where it is set.'),

  run_bridge_connections: gauge('Connections that are open.', 'port'),
  run_bridge_dropped_connections_total: counter('Connections that were closed at once: there were too many.', 'port'),
  run_bridge_receiver_accepted_requests_total: counter('OTLP requests whose records became durable.', 'signal'),
  run_bridge_receiver_accepted_items_total: counter(
    'Spans and log records in accepted requests, repeated ones and those of other services included.',
    'signal',
  ),
  run_bridge_receiver_accepted_bytes_total: counter('Bodies of accepted requests, inflated.', 'signal'),
  run_bridge_receiver_rejected_items_total: counter(
    'Spans and log records left out of accepted requests: without a valid id or time.',
    'signal',
  ),
  run_bridge_receiver_new_name_items_total: counter(
    'Spans and log records of the engine under a service and scope that are not known, as they look; the log has the names, for engine-names.',
    'signal',
  ),
  run_bridge_receiver_passed_engine_items_total: counter(
    "Spans and log records that are passed on as another service's and have a service, scope or attribute of the engine's.",
    'signal',
  ),
  run_bridge_receiver_refused_requests_total: counter('OTLP requests that were not accepted.', 'reason'),
  run_bridge_receiver_in_flight_bytes: gauge('What bodies of requests take that are not answered.'),

  run_bridge_kafka_state: gauge('1 for the state that the reading of topics is in.', 'reader', 'state'),
  run_bridge_kafka_failures_total: counter('Connections to Kafka that failed or ended; they are made again.', 'reader'),
  run_bridge_kafka_expired_messages_total: counter(
    'Messages that were gone from the topics before they were read: their retention is shorter than an outage was.',
    'reader',
  ),
  run_bridge_kafka_accepted_messages_total: counter(
    'Messages that were taken: their records are in record logs.',
    'reader',
    'topic',
  ),
  run_bridge_kafka_rejected_messages_total: counter(
    'Messages that are no telemetry, or hold lines that are none; rejects.jsonl has them.',
    'reader',
    'topic',
  ),
  run_bridge_kafka_lag_messages: gauge(
    'Messages that are not read and committed, in the partitions that the bridge has; left out while there is no connection.',
    'reader',
    'topic',
  ),

  run_bridge_journal_state: gauge('1 for the state that writing to the journal is in.', 'state'),
  run_bridge_journal_failures_total: counter('Times that Kafka did not answer, or refused what it was to have.'),
  run_bridge_journal_written_messages_total: counter('Messages that Kafka has taken.', 'topic'),
  run_bridge_journal_written_bytes_total: counter('What these messages hold, before they are packed.', 'topic'),

  run_bridge_builder_partitions: gauge('Partitions of the journal whose runs this process builds.'),
  run_bridge_builder_open_traces: gauge('Traces whose record logs are put together here.'),
  run_bridge_builder_unstored_bytes: gauge('Bytes of these logs that are not in the bucket yet.'),
  run_bridge_builder_stored_segments_total: counter('Segments of record logs that were put into the bucket.'),
  run_bridge_builder_oldest_uncommitted_age_seconds: gauge(
    'Time since the oldest messages were taken whose offsets are not committed; 0 where there are none.',
  ),

  run_bridge_destination_state: gauge('1 for the state that the destination is in.', 'destination', 'state'),
  run_bridge_destination_signal_state: gauge(
    '1 for the state that the destination is in with the signal.',
    'destination',
    'signal',
    'state',
  ),
  run_bridge_destination_pending_runs: gauge('Runs that are open or not sent to their end.', 'destination'),
  run_bridge_destination_lag_bytes: gauge('Bytes of record logs that the destination has not got.', 'destination'),
  run_bridge_destination_oldest_unsent_age_seconds: gauge(
    'Age of the oldest record that the destination has not got; 0 where there is none.',
    'destination',
  ),
  run_bridge_destination_sent_items_total: counter(
    'Spans and log records that the destination took.',
    'destination',
    'signal',
  ),
  run_bridge_destination_forwarded_messages_total: counter(
    'Messages of other services that the destination took.',
    'destination',
    'signal',
  ),
  run_bridge_destination_refused_items_total: counter(
    'Spans and log records refused with a 4xx, or larger than Kafka takes; they are not sent again.',
    'destination',
    'signal',
  ),
  run_bridge_destination_rejected_items_total: counter(
    'Spans and log records rejected in a partial success; they are not sent again.',
    'destination',
    'signal',
  ),
  run_bridge_destination_failed_attempts_total: counter(
    'Requests that failed and were tried again.',
    'destination',
    'signal',
  ),
  run_bridge_destination_given_up_items_total: counter(
    'Spans and log records that waited longer than max-backlog-age and are not sent any more.',
    'destination',
    'signal',
  ),
  run_bridge_destination_given_up_runs_total: counter(
    "Times that a run's oldest part waited too long and was given up.",
    'destination',
  ),

  run_bridge_webhook_subscriptions: gauge('Webhook subscriptions in a state, of all accounts.', 'state'),
  run_bridge_webhook_subscription_state: gauge(
    '1 for the state that the subscription is in; an archived one has the reason.',
    ...SUBSCRIPTION,
    'name',
    'kind',
    'state',
    'reason',
  ),
  run_bridge_webhook_breaker_state: gauge(
    '1 for the state of the breaker: open while nothing is sent to a failing endpoint, half_open for one attempt.',
    ...SUBSCRIPTION,
    'state',
  ),
  run_bridge_webhook_failures_in_a_row: gauge('Deliveries that failed since the last success.', ...SUBSCRIPTION),
  run_bridge_webhook_failing_seconds: gauge(
    'Time since the first of the failures in a row; 0 where there is none.',
    ...SUBSCRIPTION,
  ),
  run_bridge_webhook_pending_events: gauge('Events that are still to be delivered.', ...SUBSCRIPTION),
  run_bridge_webhook_oldest_pending_age_seconds: gauge(
    'Age of the oldest event that is still to be delivered; 0 where there is none.',
    ...SUBSCRIPTION,
  ),
  run_bridge_webhook_events_total: counter(
    'Events that this process is done with: delivered, failed in all attempts, or skipped when their subscription was archived.',
    ...SUBSCRIPTION,
    'outcome',
  ),
  run_bridge_webhook_attempts_total: counter('Attempts that this process made.', ...SUBSCRIPTION, 'outcome'),
  run_bridge_webhook_attempt_seconds_total: counter('Time that these attempts took.', ...SUBSCRIPTION, 'outcome'),
  run_bridge_webhook_archivings_total: counter('Subscriptions that this process archived.', 'reason'),
} as const satisfies Readonly<Record<string, MetricDefinition>>;

function counter<const L extends readonly string[]>(help: string, ...labels: L) {
  return { kind: 'counter', help, labels } as const;
}

function gauge<const L extends readonly string[]>(help: string, ...labels: L) {
  return { kind: 'gauge', help, labels } as const;
}

function histogram<const L extends readonly string[]>(help: string, bounds: readonly number[], ...labels: L) {
  return { kind: 'histogram', help, labels, bounds } as const;
}

/** The definition of a metric. */
export interface MetricDefinition {
  /** A counter only grows, from 0 at the start of the process, and those of runs from the first run; a gauge is a current value; a histogram counts by size. */
  readonly kind: 'counter' | 'gauge' | 'histogram';
  /** Upper bounds of a histogram's buckets, in ascending order. */
  readonly bounds?: readonly number[];
  /** One sentence, which scrapers show. */
  readonly help: string;
  /** The names of its labels; every sample has all of them. The values of each label are a bounded set. */
  readonly labels: readonly string[];
}
