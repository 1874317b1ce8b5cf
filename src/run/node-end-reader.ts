import { Attributes } from '../record/attributes.js';
import type { JsonObject } from '../record/json.js';
import { CELL, type RecordPage } from '../record/record-page.js';
import { isSame } from '../record/same-bytes.js';
import { type NodeEnd, nodeEndOf } from './node-end.js';

/** How a line of ours says that a node was selected; inside a text the quotation marks would be escaped. */
const IN_SELECTION = Buffer.from('"in_selection":true');

/** Different values, and different combinations of them, that are remembered; a schema has some dozens. */
const MAX_REMEMBERED = 256;
/** The longest of them, as JSON; nodes with longer ones are read from their records. */
const MAX_VALUE_BYTES = 256;

/** Unset, ok, error. */
const STATUS_CODES = [0, 1, 2];

/** What an outcome and a phase mean, without the times. */
type Meaning = Pick<NodeEnd, 'plain' | 'afterCanceledQuery' | 'isLastPhase'>;

/**
 * Reads how nodes ended from a page's cells. Thousands of nodes share a handful of outcomes, phases and details, so each
 * is made once, and what they mean together is found out once.
 */
export class NodeEndReader {
  private readonly values: { readonly bytes: Buffer; readonly json: string }[] = [];
  /** By status code, and by outcome, phase and detail as JSON. */
  private readonly meanings = STATUS_CODES.map(() => new Map<string, Meaning>());
  private meaningCount = 0;

  /** `undefined` where the records have to be asked. */
  read(page: RecordPage, span: number): NodeEnd | undefined {
    const outcome = this.value(page, span, CELL.outcomeStart);
    const phase = this.value(page, span, CELL.phaseStart);
    const detail = this.value(page, span, CELL.detailStart);
    if (outcome === undefined || outcome === '' || phase === undefined || detail === undefined) return undefined;
    const { plain, afterCanceledQuery, isLastPhase } = this.meaning(page, span, outcome, phase, detail);
    return {
      startTimeUnixNano: page.startTimeUnixNano(span),
      endTimeUnixNano: page.endTimeUnixNano(span),
      plain,
      afterCanceledQuery,
      isLastPhase,
      isSelected: page.lines
        .subarray(page.cell(span, CELL.endLine), page.cell(span, CELL.lineEnd))
        .includes(IN_SELECTION),
    };
  }

  private meaning(page: RecordPage, span: number, outcome: string, phase: string, detail: string): Meaning {
    const code = page.cell(span, CELL.statusCode);
    const ofCode = this.meanings[code];
    const members = [`"node_outcome":${outcome}`, `"phase":${phase || '""'}`, ...(detail === '' ? [] : [detail])];
    const json = `{${members.join(',')}}`;
    const known = ofCode?.get(json);
    if (known !== undefined) return known;
    const attributes = Attributes.of(JSON.parse(json) as JsonObject);
    const times = { startTimeUnixNano: 0n, endTimeUnixNano: 0n };
    const meaning = nodeEndOf({ attributes, status: { message: null, code }, ...times });
    if (ofCode !== undefined && this.meaningCount < MAX_REMEMBERED) {
      this.meaningCount += 1;
      ofCode.set(json, meaning);
    }
    return meaning;
  }

  /** What stands between two cells' places; empty where they are zero, `undefined` where it is long. */
  private value(page: RecordPage, span: number, startCell: number): string | undefined {
    const start = page.cell(span, startCell);
    const end = page.cell(span, startCell + 1);
    if (end === 0) return '';
    if (end - start > MAX_VALUE_BYTES) return undefined;
    for (const { bytes, json } of this.values) if (isSame(bytes, page.lines, start, end)) return json;
    const json = page.lines.toString('utf8', start, end);
    if (this.values.length < MAX_REMEMBERED) {
      this.values.push({ bytes: Buffer.from(page.lines.subarray(start, end)), json });
    }
    return json;
  }
}
