/** A severity of the engine: OTel's number and the text written with it. */
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
/** The name of a severity and its position among OTel's four numbers for it (`ERROR2` is 18). */
const NAME = /^([A-Z]+)([2-4])?$/;

/** Returns the number of a severity that came as text only, in any case; 0 (unspecified) for an unknown text. */
export function severityNumberOf(text: string): number {
  const [, name = '', position = '1'] = NAME.exec(text.toUpperCase()) ?? [];
  const first = BY_TEXT.get(name);
  return first === undefined ? 0 : first + Number(position) - 1;
}
