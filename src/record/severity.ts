/** The engine's severities: OTel's numbers and the texts written beside them. */
export interface Severity {
  readonly number: number;
  readonly text: string;
}

export const TRACE: Severity = { number: 1, text: 'TRACE' };
export const DEBUG: Severity = { number: 5, text: 'DEBUG' };
export const INFO: Severity = { number: 9, text: 'INFO' };
export const WARN: Severity = { number: 13, text: 'WARN' };
export const ERROR: Severity = { number: 17, text: 'ERROR' };
export const FATAL: Severity = { number: 21, text: 'FATAL' };

const BY_TEXT: ReadonlyMap<string, number> = new Map([
  ...[TRACE, DEBUG, INFO, WARN, ERROR, FATAL].map(({ text, number }) => [text, number] as const),
  ['WARNING', WARN.number],
]);
/** A severity's name, and its place among the four numbers that OTel has for it (`ERROR2` is 18). */
const NAME = /^([A-Z]+)([2-4])?$/;

/** The number of a severity that came with its text alone, in capitals or not; 0, which says nothing, for another text. */
export function severityNumberOf(text: string): number {
  const [, name = '', place = '1'] = NAME.exec(text.toUpperCase()) ?? [];
  const first = BY_TEXT.get(name);
  return first === undefined ? 0 : first + Number(place) - 1;
}
