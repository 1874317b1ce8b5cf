import type { RedactionLevel } from '../../src/redaction/known-names.js';
import { mapRun } from '../unit/export/mapping/mapped-run.js';
import { loggedLines } from '../unit/export/mapping/read-sample.js';
import { ERROR_MARKERS, type ErrorCase, type ErrorDatabase } from './error-cases.js';
import { traceOfCase } from './error-runs.js';

/** A text that is exported of a failure, and of what. */
interface ExportedText {
  readonly traceId: string;
  readonly uniqueId: unknown;
  readonly text: string;
}

/**
 * Cases in whose redacted texts a person does not find the cause: what is missing, and the texts. A case is found where
 * one text, of a span's failure or of a message, says all of it.
 */
export function findCauses(lines: readonly string[], database: ErrorDatabase, cases: readonly ErrorCase[]): unknown[] {
  const texts = exportedTexts(lines);
  return cases.flatMap((one) => {
    const wanted = one.shown[database] ?? [];
    const traceId = traceOfCase(one);
    const uniqueId = one.command === undefined ? (one.uniqueId ?? `model.shop.${one.name}`) : undefined;
    const mine = texts
      .filter((text) => text.traceId === traceId && (uniqueId === undefined || text.uniqueId === uniqueId))
      .map(({ text }) => text);
    return mine.some((text) => wanted.every((part) => text.includes(part)))
      ? []
      : [{ name: one.name, wanted, texts: [...new Set(mine)] }];
  });
}

/** The values of the cases that are exported at a level. */
export function markersShown(lines: readonly string[], level: RedactionLevel): readonly string[] {
  const all = runs(lines).map((log) => {
    const { spans, logs } = mapRun(log, { redaction: level }, []);
    return JSON.stringify([
      ...spans.map(({ name, attributes, events, links, status }) => ({ name, attributes, events, links, status })),
      ...logs.map(({ body, attributes }) => ({ body, attributes })),
    ]);
  });
  return [...new Set(all.join('\n').toLowerCase().match(ERROR_MARKERS))].sort();
}

function exportedTexts(lines: readonly string[]): readonly ExportedText[] {
  return runs(lines).flatMap((log) => {
    const { spans, logs } = mapRun(log);
    return [
      ...spans.flatMap((span) => {
        const of = { traceId: span.spanContext().traceId, uniqueId: span.attributes.unique_id };
        const exceptions = span.events.flatMap(({ attributes }) => attributes?.['exception.message'] ?? []);
        return [span.status.message, ...exceptions].flatMap((text) =>
          typeof text === 'string' ? [{ ...of, text }] : [],
        );
      }),
      ...logs.map(({ spanContext, attributes, body }) => ({
        traceId: spanContext?.traceId ?? '',
        uniqueId: attributes.unique_id,
        text: String(body),
      })),
    ];
  });
}

function runs(lines: readonly string[]) {
  const all = loggedLines(lines);
  const traceIds = [...new Set(all.map(({ record }) => record.traceId))];
  return traceIds.map((traceId) => all.filter(({ record }) => record.traceId === traceId));
}
