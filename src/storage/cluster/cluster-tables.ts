import type { Generated } from 'kysely';

/** The tables of processes that share the work, as Kysely's types. */
export interface ClusterTables {
  /** Processes that share the database. */
  readonly cluster_processes: {
    readonly process_id: string;
    readonly expires_unix_ms: number;
    /** 0 or 1; one that is dead never lives again. */
    readonly is_dead: number;
  };
  /** Traces that processes share: the owner of each, and the number of its accepted parts. */
  readonly cluster_traces: {
    readonly trace_id: string;
    readonly owner: string | null;
    readonly generation: number;
    readonly last_part: number;
    readonly stored_part: number;
    readonly step_version: number;
    readonly born_unix_ms: Generated<number>;
  };
  /** What was accepted and is not yet in a stored log: ranges of objects in the bucket. */
  readonly cluster_parts: {
    readonly trace_id: string;
    readonly part: number;
    readonly object_key: string | null;
    readonly from_byte: number;
    readonly to_byte: number;
  };
  readonly cluster_objects: {
    readonly object_key: string;
  };
  /** Files of traces in the bucket, by their names in a run's folder. */
  readonly cluster_files: {
    readonly trace_id: string;
    readonly name: string;
    readonly object_key: string;
    readonly size_bytes: number;
  };
}
