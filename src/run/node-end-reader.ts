import { Attributes } from '../record/attributes.js';
import { isSame } from '../record/same-bytes.js';
import { CELL, type SpanPage } from '../record/span-page.js';
import { type NodeEnd, nodeEndOf } from './node-end.js';

/** How a line of ours says that a node was selected; inside a text the quotation marks would be escaped. */
const IN_SELECTION = Buffer.from('"in_selection":true');

/** Different texts, and different pairs of them, that are remembered; a schema has some dozens. */
const MAX_REMEMBERED = 256;
/** The longest of them, as JSON; nodes with longer ones are read from their records. */
const MAX_TEXT_BYTES = 256;

/** Unset, ok, error. */
const STATUS_CODES = [0, 1, 2];

/** What an outcome and a phase mean, without the times. */
type Meaning = Pick<NodeEnd, 'plain' | 'afterCanceledQuery' | 'isLastPhase'>;

/**
 * Reads how nodes ended from a page's cells. Thousands of nodes share a handful of outcomes and phases, so each text is
 * made once, and what two of them mean is found out once.
 */
export class NodeEndReader {
  private readonly texts: { readonly bytes: Buffer; readonly text: string }[] = [];
  /** By status code, outcome and phase. */
  private readonly meanings = STATUS_CODES.map(() => new Map<string, Map<string, Meaning>>());
  private meaningCount = 0;

  /** `undefined` where the records have to be asked. */
  read(page: SpanPage, span: number): NodeEnd | undefined {
    if (isLong(page, span, CELL.outcomeStart) || isLong(page, span, CELL.phaseStart)) return undefined;
    const outcome = this.text(page, span, CELL.outcomeStart, CELL.outcomeEnd);
    const phase = this.text(page, span, CELL.phaseStart, CELL.phaseEnd) ?? '';
    if (outcome === undefined) return undefined;
    const { plain, afterCanceledQuery, isLastPhase } = this.meaning(page, span, outcome, phase);
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

  private meaning(page: SpanPage, span: number, outcome: string, phase: string): Meaning {
    const code = page.cell(span, CELL.statusCode);
    const ofCode = this.meanings[code];
    const known = ofCode?.get(outcome)?.get(phase);
    if (known !== undefined) return known;
    const attributes = Attributes.of({ node_outcome: outcome, phase });
    const times = { startTimeUnixNano: 0n, endTimeUnixNano: 0n };
    const meaning = nodeEndOf({ attributes, status: { message: null, code }, ...times });
    if (ofCode !== undefined && this.meaningCount < MAX_REMEMBERED) {
      this.meaningCount += 1;
      const byPhase = ofCode.get(outcome) ?? new Map<string, Meaning>();
      ofCode.set(outcome, byPhase.set(phase, meaning));
    }
    return meaning;
  }

  private text(page: SpanPage, span: number, startCell: number, endCell: number): string | undefined {
    const start = page.cell(span, startCell);
    const end = page.cell(span, endCell);
    if (end === 0) return undefined;
    for (const { bytes, text } of this.texts) {
      if (isSame(bytes, page.lines, start, end)) return text;
    }
    const text = page.text(span, startCell, endCell);
    if (text !== undefined && this.texts.length < MAX_REMEMBERED) {
      this.texts.push({ bytes: Buffer.from(page.lines.subarray(start, end)), text });
    }
    return text;
  }
}

/** Of a text's JSON. @param start the cell for where it begins; the next one is for where it ends */
function isLong(page: SpanPage, span: number, start: number): boolean {
  return page.cell(span, start + 1) - page.cell(span, start) > MAX_TEXT_BYTES;
}
