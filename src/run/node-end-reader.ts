import { Attributes } from '../record/attributes.js';
import type { JsonObject } from '../record/json.js';
import { CELL, type RecordPage } from '../record/record-page.js';
import type { Resource } from '../record/resource.js';
import { isSame } from '../record/same-bytes.js';
import { eventName } from './event-name.js';
import { type NodeEnd, nodeEndOf } from './node-facts.js';

/** How our lines mark a selected node; inside a text the quotation marks would be escaped. */
const IN_SELECTION = Buffer.from('"in_selection":true');

/** Different values, and different combinations of them, that are remembered; a schema has some dozens. */
const MAX_REMEMBERED = 256;
/** The longest of them, as JSON; nodes with longer ones are read from their records. */
const MAX_VALUE_BYTES = 256;

/** What an outcome and a phase mean, without the times. */
type Meaning = Pick<NodeEnd, 'plain' | 'afterCanceledQuery' | 'isLastPhase'>;

/** No value. */
const NONE = 0;

/**
 * Reads how nodes ended from a page's cells. Thousands of nodes share a handful of outcomes, phases and details, so each
 * is made once, and what they mean together is found out once.
 */
export class NodeEndReader {
  private readonly values: { readonly bytes: Buffer; readonly json: string }[] = [{ bytes: Buffer.alloc(0), json: '' }];
  /** By status code and the numbers of outcome, phase and detail. */
  private readonly meanings = new Map<number, Meaning>();

  /** `undefined` where the records have to be asked. */
  read(page: RecordPage, span: number): NodeEnd | undefined {
    const outcome = this.value(page, span, CELL.outcomeStart);
    const phase = this.value(page, span, CELL.phaseStart);
    const detail = this.value(page, span, CELL.detailStart);
    if (outcome === undefined || outcome === NONE || phase === undefined || detail === undefined) return undefined;
    const { plain, afterCanceledQuery, isLastPhase } = this.meaning(
      page.cell(span, CELL.statusCode),
      outcome,
      phase,
      detail,
    );
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

  private meaning(code: number, outcome: number, phase: number, detail: number): Meaning {
    const key = ((code * MAX_REMEMBERED + outcome) * MAX_REMEMBERED + phase) * MAX_REMEMBERED + detail;
    const known = this.meanings.get(key);
    if (known !== undefined) return known;
    const json = (value: number) => this.values[value]?.json ?? '';
    const members = [`"node_outcome":${json(outcome)}`, `"phase":${json(phase) || '""'}`];
    if (detail !== NONE) members.push(json(detail));
    const attributes = Attributes.of(JSON.parse(`{${members.join(',')}}`) as JsonObject);
    const times = { startTimeUnixNano: 0n, endTimeUnixNano: 0n };
    const meaning = nodeEndOf({ attributes, status: { message: null, code }, ...times });
    if (this.meanings.size < MAX_REMEMBERED) this.meanings.set(key, meaning);
    return meaning;
  }

  /** The number of what stands between two cells' places; `undefined` where it is long, or one too many. */
  private value(page: RecordPage, span: number, startCell: number): number | undefined {
    const start = page.cell(span, startCell);
    const end = page.cell(span, startCell + 1);
    if (end === 0) return NONE;
    if (end - start > MAX_VALUE_BYTES) return undefined;
    const { values } = this;
    for (let index = 1; index < values.length; index++) {
      if (isSame((values[index] as { bytes: Buffer }).bytes, page.lines, start, end)) return index;
    }
    if (values.length >= MAX_REMEMBERED) return undefined;
    return (
      values.push({
        bytes: Buffer.from(page.lines.subarray(start, end)),
        json: page.lines.toString('utf8', start, end),
      }) - 1
    );
  }
}

/** The properties of a span or log record that the run model uses, by its event type. */
export const ROW_KIND = {
  /** Its records contain more than the numbers of a page: a root, a phase, a hook, a message that may report an interruption … */
  telling: 0,
  nodeProcessed: 1,
  nodeEvaluated: 2,
  /** Only where it hangs and when it was matters (and how severe it is). */
  plain: 3,
  /** Whether it was cancelled, too. */
  query: 4,
} as const;

export type RowKind = (typeof ROW_KIND)[keyof typeof ROW_KIND];

const KINDS: ReadonlyMap<string, RowKind> = new Map<string, RowKind>([
  ['Invocation', ROW_KIND.telling],
  ['Process', ROW_KIND.telling],
  ['PhaseExecuted', ROW_KIND.telling],
  ['HookProcessed', ROW_KIND.telling],
  ['ArtifactWritten', ROW_KIND.telling],
  ['Groups', ROW_KIND.telling],
  ['ProgressMessage', ROW_KIND.telling],
  ['LogMessage', ROW_KIND.telling],
  ['QueryExecuted', ROW_KIND.query],
  ['NodeProcessed', ROW_KIND.nodeProcessed],
  ['NodeEvaluated', ROW_KIND.nodeEvaluated],
]);

/** @param eventType full name */
export function rowKind(eventType: string): RowKind {
  return KINDS.get(eventName(eventType)) ?? ROW_KIND.plain;
}

/** A span or log record in a page, and where its lines stand in the record log. */
export interface RowPlace {
  readonly page: RecordPage;
  readonly row: number;
  readonly kind: RowKind;
  readonly resource: Resource;
  /** Added to a place in the page's lines it gives the place in the record log. */
  readonly base: number;
  /** When it arrived, in monotonic milliseconds. */
  readonly arrivalMs: number;
  readonly nodeEnds: NodeEndReader;
}
