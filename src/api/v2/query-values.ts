import type { TimeRange } from '../../storage/run-catalog.js';
import { ApiError } from '../api-error.js';

/** Parameters of a request as Express gives them: a text, or a list of them where one came several times. */
export type Parameters = Readonly<Record<string, unknown>>;

/** More values of one parameter than this are refused. */
const MAX_VALUES = 1_000;

/**
 * The texts that a parameter holds, however it is written: `a,b`, repeated, `["a"]`, `['a']`, `[1, 2]` or empty, with or
 * without `[]` behind its name, as some HTTP libraries write lists.
 * `undefined` where it did not come at all.
 */
export function textsOf(parameters: Parameters, name: string): readonly string[] | undefined {
  const value = parameters[name] ?? parameters[`${name}[]`];
  if (value === undefined) return undefined;
  const texts = (Array.isArray(value) ? value : [value]).flatMap((one) =>
    String(one)
      .replaceAll(/[[\]]/g, '')
      .split(',')
      .map((text) => text.trim().replace(/^(["'])(.*)\1$/, '$2'))
      .filter((text) => text !== ''),
  );
  if (texts.length > MAX_VALUES) throw refused(name, `has more than ${MAX_VALUES} values`);
  return texts;
}

/** A list of numbers; empty where the parameter is. @throws ApiError 400 */
export function numbersOf(parameters: Parameters, name: string): readonly number[] | undefined {
  return textsOf(parameters, name)?.map((text) => toNumber(name, text));
}

/** One number; an empty parameter counts as none. @throws ApiError 400 */
export function numberOf(parameters: Parameters, name: string): number | undefined {
  const [text] = textsOf(parameters, name) ?? [];
  return text === undefined ? undefined : toNumber(name, text);
}

/** Two times, both included. @throws ApiError 400 */
export function rangeOf(parameters: Parameters, name: string): TimeRange | undefined {
  const texts = textsOf(parameters, name);
  if (texts === undefined || texts.length === 0) return undefined;
  const [from, to, ...others] = texts.map((text) => parseTime(text));
  if (from === undefined || to === undefined || others.length > 0) {
    throw refused(name, 'is not two times such as ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"]');
  }
  return [from, to];
}

/** What is wrong with a parameter. */
export function refused(name: string, problem: string): ApiError {
  return new ApiError(400, `The parameter ${name} ${problem}.`);
}

function toNumber(name: string, text: string): number {
  if (!/^-?\d{1,15}$/.test(text)) throw refused(name, `is not a whole number: ${JSON.stringify(text.slice(0, 50))}`);
  return Number(text);
}

/** ISO 8601 with or without a time and a zone (UTC then); a plus that came as it is reads as a blank. */
function parseTime(text: string): number | undefined {
  const parts = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?\s*(Z|[+ -]?\d\d:?\d\d)?)?$/i.exec(text);
  if (parts === null) return undefined;
  const [, date = '', time = '00:00', fraction = '0', zone = 'Z'] = parts;
  const offset = /^[zZ]$/.test(zone) ? 'Z' : zone.replace(/^ ?(?=\d)/, '+').replace(/(\d\d):?(\d\d)$/, '$1:$2');
  const clock = time.length === 5 ? `${time}:00` : time;
  const unixMs = Date.parse(`${date}T${clock}.${fraction.slice(0, 3).padEnd(3, '0')}${offset}`);
  return Number.isNaN(unixMs) ? undefined : unixMs;
}
