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
