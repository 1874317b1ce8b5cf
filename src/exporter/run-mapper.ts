import type { RunSummary } from '../run/run-summary.js';
import type { LoggedLines } from './logged-lines.js';
import type { MappedItem } from './mapped-item.js';

/**
 * Maps one trace's records onto OTel spans, span events and log records. Holds state for one run and one set of
 * options; fed with the record log from its first byte (or replayed from there after a restart).
 */
export interface RunMapper {
  /**
   * Takes the next lines of the log; most are never made records of. The items are the same in whatever pieces the log is
   * pushed. Keeps nothing of the bytes.
   * @returns how many lines were no records; they are passed over.
   */
  pushLines(lines: LoggedLines): number;
  /**
   * What is ready: log records at once, spans once their hold for late events is over.
   * @param isQuiet the log has been read to its end and nothing was appended for the hold time: every held span is ready.
   */
  take(isQuiet: boolean): readonly MappedItem[];
  /**
   * The run has a verdict: every span still held, spans that never ended (marked unfinished), and a synthetic invocation
   * span where a trace has none. Their anchor is the log's length. Called once; call `take(true)` first.
   */
  finish(run: RunSummary): readonly MappedItem[];
  /** Spans now held for late events; bounded. */
  readonly heldCount: number;
}
