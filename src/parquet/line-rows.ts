import { isUtf8 } from 'node:buffer';
import { isNestedTooDeep, MAX_JSON_LEVELS } from '../record/json-nesting.js';
import { parseRecordLine, RecordParseError } from '../record/record-line.js';
import type { TelemetryRecord } from '../record/telemetry-record.js';
import type { ByteSource } from './byte-source.js';
import { CanonicalRows } from './canonical-rows.js';
import { RecordRows } from './record-rows.js';
import type { RowGroupColumns } from './row-group-columns.js';

/** What else is done with lines that are not laid out as the engine's. */
export interface LineRowsOptions {
  readonly checksNesting: boolean;
  /** Gives a record in the engine's own spelling: records of a record log are in it. */
  readonly toModern: (record: TelemetryRecord) => TelemetryRecord;
}

/** Writes lines of JSONL as rows: from their bytes where they are laid out as the engine's, else by way of a record. */
export class LineRows {
  private readonly canonical: CanonicalRows;
  private readonly general: RecordRows;

  constructor(
    columns: RowGroupColumns,
    private readonly options: LineRowsOptions,
  ) {
    this.canonical = new CanonicalRows(columns);
    this.general = new RecordRows(columns);
  }

  /**
   * Writes the line that lies in `source` from `start` to `end`, without its line feed; a blank one writes nothing.
   * @param isChecked whether the bytes are known to be valid UTF-8
   * @returns why the line is no record and was passed over; `undefined` when all is well
   */
  append(source: ByteSource, start: number, end: number, isChecked: boolean): string | undefined {
    const { bytes } = source;
    if ((isChecked || isUtf8(bytes.subarray(start, end))) && this.canonical.append(source, start, end))
      return undefined;
    return this.appendAny(bytes.toString('utf8', start, end));
  }

  private appendAny(lineText: string): string | undefined {
    const text = lineText.endsWith('\r') ? lineText.slice(0, -1) : lineText;
    if (text.trim() === '') return undefined;
    if (this.options.checksNesting && isNestedTooDeep(text)) return `nested deeper than ${MAX_JSON_LEVELS} levels`;
    try {
      this.general.append(this.options.toModern(parseRecordLine(text)));
      return undefined;
    } catch (error) {
      if (error instanceof RecordParseError) return error.message;
      throw error;
    }
  }
}
