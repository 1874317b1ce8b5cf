import type { RecordPage } from '../record/record-page.js';
import type { Resource } from '../record/resource.js';
import { eventName } from './event-name.js';
import type { NodeEndReader } from './node-end-reader.js';

/** What the run model has to know of a span or log record, by its event type. */
export const ROW_KIND = {
  /** Its records tell more than a page's numbers: a root, a phase, a hook, a message that may say what was interrupted … */
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
  /** When it came, in monotonic milliseconds. */
  readonly arrivalMs: number;
  readonly nodeEnds: NodeEndReader;
}
