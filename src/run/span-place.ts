import type { Resource } from '../record/resource.js';
import type { SpanPage } from '../record/span-page.js';
import { eventName } from './event-name.js';
import type { NodeEndReader } from './node-end-reader.js';

/** What the run model has to know of a span, by its event type. */
export const SPAN_KIND = {
  /** Its records tell more than a page's numbers: a root, a phase, a hook … */
  telling: 0,
  nodeProcessed: 1,
  nodeEvaluated: 2,
  /** Only where it hangs and when it was matters. */
  plain: 3,
  /** Whether it was cancelled, too. */
  query: 4,
} as const;

export type SpanKind = (typeof SPAN_KIND)[keyof typeof SPAN_KIND];

const KINDS: ReadonlyMap<string, SpanKind> = new Map<string, SpanKind>([
  ['Invocation', SPAN_KIND.telling],
  ['Process', SPAN_KIND.telling],
  ['PhaseExecuted', SPAN_KIND.telling],
  ['HookProcessed', SPAN_KIND.telling],
  ['ArtifactWritten', SPAN_KIND.telling],
  ['QueryExecuted', SPAN_KIND.query],
  ['NodeProcessed', SPAN_KIND.nodeProcessed],
  ['NodeEvaluated', SPAN_KIND.nodeEvaluated],
]);

/** @param eventType full name */
export function spanKind(eventType: string): SpanKind {
  return KINDS.get(eventName(eventType)) ?? SPAN_KIND.plain;
}

/** A span in a page, and where its lines stand in the record log. */
export interface SpanPlace {
  readonly page: SpanPage;
  readonly span: number;
  readonly kind: SpanKind;
  readonly resource: Resource;
  /** Added to a place in the page's lines it gives the place in the record log. */
  readonly base: number;
  /** When it came, in monotonic milliseconds. */
  readonly arrivalMs: number;
  readonly nodeEnds: NodeEndReader;
}
