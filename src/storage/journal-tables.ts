import type { Generated } from 'kysely';

/** The tables of processes that share the work by a journal, as Kysely's types. */
export interface JournalTables {
  /** Who has each partition of the journal. */
  readonly journal_partitions: {
    readonly partition_index: number;
    /** Of the group of readers: whoever comes with a lower one has lost the partition. */
    readonly generation: number;
    readonly process_id: string;
  };
  /** Traces, and the partition by which each has its process. */
  readonly journal_traces: {
    readonly trace_id: string;
    readonly partition_index: number;
    /** 0 or 1: whether a process has to look after it. */
    readonly is_open: number;
    readonly step_version: Generated<number>;
  };
  /** Files of traces in the bucket, by their names in a run's folder. */
  readonly journal_files: {
    readonly trace_id: string;
    readonly name: string;
    readonly object_key: string;
    readonly size_bytes: number;
  };
}
