import type { DiskUsage } from '../component/disk-guard.js';
import type { MemoryUsage } from '../component/memory-guard.js';
import type { MetricSource } from './metric-source.js';
import type { Sample } from './sample.js';

/** What is known of the process. */
export interface ProcessMetricsDeps {
  /** The program's version. */
  readonly version: string;
  readonly startedUnixMs: number;
  readonly memory: { readonly usage: MemoryUsage };
  readonly disk: { readonly usage: DiskUsage };
  /** Of runs, those that are not over. */
  readonly runs: { readonly openCount: number };
  readonly notes: { readonly setAsideCount: number };
}

/** Memory, disk and what is at work in this process. */
export function processMetrics({
  version,
  startedUnixMs,
  memory,
  disk,
  runs,
  notes,
}: ProcessMetricsDeps): MetricSource {
  return { name: 'process', read };

  function read(): readonly Sample[] {
    const { usedBytes, residentBytes, limitBytes } = memory.usage;
    const space = disk.usage;
    const labels = {};
    return [
      { name: 'run_bridge_build_info', value: 1, labels: { version } },
      { name: 'run_bridge_start_time_seconds', value: startedUnixMs / 1_000, labels },
      { name: 'run_bridge_open_runs', value: runs.openCount, labels },
      { name: 'run_bridge_runs_set_aside', value: notes.setAsideCount, labels },
      { name: 'run_bridge_memory_used_bytes', value: usedBytes, labels },
      { name: 'run_bridge_memory_resident_bytes', value: residentBytes, labels },
      { name: 'run_bridge_memory_limit_bytes', value: limitBytes, labels },
      { name: 'run_bridge_disk_free_bytes', value: space.freeBytes, labels },
      { name: 'run_bridge_disk_size_bytes', value: space.totalBytes, labels },
      { name: 'run_bridge_disk_reserve_bytes', value: space.reserveBytes, labels },
      ...ifKnown('run_bridge_data_folder_used_bytes', space.usedBytes),
      ...ifKnown('run_bridge_data_folder_limit_bytes', space.limitBytes),
    ];
  }
}

function ifKnown(
  name: 'run_bridge_data_folder_used_bytes' | 'run_bridge_data_folder_limit_bytes',
  value: number | undefined,
): readonly Sample[] {
  return value === undefined ? [] : [{ name, value, labels: {} }];
}
