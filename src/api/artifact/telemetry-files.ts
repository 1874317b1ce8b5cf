import type { TraceId } from '../../record/ids.js';

/** Finds Parquet files of runs' telemetry on this machine. */
export interface TelemetryFiles {
  /**
   * @param name such as `telemetry.parquet`
   * @returns its absolute path; with an HTTP entity tag where the file's own would not be the same elsewhere. `undefined` where there is none
   */
  find(traceId: TraceId, name: string): Promise<{ readonly path: string; readonly etag?: string } | undefined>;
}
