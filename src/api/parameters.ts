import type { Request } from 'express';
import type { z } from 'zod';
import type { TimeRange } from '../storage/run-catalog.js';
import { ApiError } from './api-error.js';

/** Parameters of a request from Express: a text, or a list if one was repeated. */
export type Parameters = Readonly<Record<string, unknown>>;

/** More values of one parameter than this are refused. */
const MAX_VALUES = 1_000;

/**
 * Reads the texts of a parameter, in any notation: `a,b`, repeated, `["a"]`, `['a']`, `[1, 2]` or empty, with or
 * without `[]` after its name, as some HTTP libraries write lists.
 * `undefined` if it is missing.
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

/** Reads a list of numbers; empty where the parameter is. @throws ApiError 400 */
export function numbersOf(parameters: Parameters, name: string): readonly number[] | undefined {
  return textsOf(parameters, name)?.map((text) => toNumber(name, text));
}

/** Reads one number; an empty parameter counts as none. @throws ApiError 400 */
export function numberOf(parameters: Parameters, name: string): number | undefined {
  const [text] = textsOf(parameters, name) ?? [];
  return text === undefined ? undefined : toNumber(name, text);
}

/** Reads two times, both included. @throws ApiError 400 */
export function rangeOf(parameters: Parameters, name: string): TimeRange | undefined {
  const texts = textsOf(parameters, name);
  if (texts === undefined || texts.length === 0) return undefined;
  const [from, to, ...others] = texts.map((text) => parseTime(text));
  if (from === undefined || to === undefined || others.length > 0) {
    throw refused(name, 'is not two times such as ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"]');
  }
  return [from, to];
}

/** Makes the error that says what is wrong with a parameter. */
export function refused(name: string, problem: string): ApiError {
  return new ApiError(400, `The parameter ${name} ${problem}.`);
}

function toNumber(name: string, text: string): number {
  if (!/^-?\d{1,15}$/.test(text)) throw refused(name, `is not a whole number: ${JSON.stringify(text.slice(0, 50))}`);
  return Number(text);
}

/** Reads ISO 8601 with or without a time and a zone (default UTC); a literal plus was decoded to a blank. */
function parseTime(text: string): number | undefined {
  const parts = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?\s*(Z|[+ -]?\d\d:?\d\d)?)?$/i.exec(text);
  if (parts === null) return undefined;
  const [, date = '', time = '00:00', fraction = '0', zone = 'Z'] = parts;
  const offset = /^[zZ]$/.test(zone) ? 'Z' : zone.replace(/^ ?(?=\d)/, '+').replace(/(\d\d):?(\d\d)$/, '$1:$2');
  const clock = time.length === 5 ? `${time}:00` : time;
  const unixMs = Date.parse(`${date}T${clock}.${fraction.slice(0, 3).padEnd(3, '0')}${offset}`);
  return Number.isNaN(unixMs) ? undefined : unixMs;
}

/** Which part of a list is asked for, and in which order. */
export interface ListPart<Order> {
  readonly limit: number;
  readonly offset: number;
  readonly orderBy: Order;
  readonly isDescending: boolean;
  /** The value that is echoed. */
  readonly order: string;
}

/** The most items of an answer, and as many as there are by default. */
export const MAX_LIMIT = 100;

/**
 * Reads `limit`, `offset` and `order_by`. A limit above the most there is, is the most: clients read it back from the
 * answer. @param orders what the list can be sorted by, `id` among them
 * @throws ApiError 400
 */
export function listPart<Order>(
  parameters: Parameters,
  orders: Readonly<Record<string, Order>> & { readonly id: Order },
): ListPart<Order> {
  const limit = numberOf(parameters, 'limit') ?? MAX_LIMIT;
  if (limit < 1) throw refused('limit', 'is less than 1');
  const offset = numberOf(parameters, 'offset') ?? 0;
  if (offset < 0) throw refused('offset', 'is less than 0');
  const [order = 'id'] = textsOf(parameters, 'order_by') ?? [];
  const isDescending = order.startsWith('-');
  const name = isDescending ? order.slice(1) : order;
  if (!Object.hasOwn(orders, name)) {
    throw refused('order_by', `is not one of ${Object.keys(orders).join(', ')}, with - in front to reverse`);
  }
  const orderBy = orders[name] ?? orders.id;
  return { limit: Math.min(limit, MAX_LIMIT), offset, orderBy, isDescending, order };
}

/** Returns the values that are in all lists; `undefined` if none is given. An empty list counts as not given. */
export function among<Value>(...lists: readonly (readonly Value[] | undefined)[]): readonly Value[] | undefined {
  const [first, ...others] = lists.flatMap((list) => (list === undefined || list.length === 0 ? [] : [list]));
  return first?.filter((value) => others.every((other) => other.includes(value)));
}

/** Reads the filters of a list, and remembers which were given: the answer repeats them. @throws ApiError 400 from each of its methods */
export class ListFilters {
  /** By their names, as they were understood. */
  readonly given: Record<string, unknown> = {};

  constructor(private readonly parameters: Parameters) {}

  /** Reads one number; more of them count as the first. */
  number(name: string): number | undefined {
    return this.remember(name, numberOf(this.parameters, name));
  }

  /** Reads the same as a list of one. */
  oneNumber(name: string): readonly number[] | undefined {
    const value = this.number(name);
    return value === undefined ? undefined : [value];
  }

  numbers(name: string): readonly number[] | undefined {
    return this.remember(name, numbersOf(this.parameters, name));
  }

  /** Reads a text as it stands, blanks and commas too. */
  text(name: string): string | undefined {
    const value = this.parameters[name];
    return this.remember(name, typeof value === 'string' && value !== '' ? value : undefined);
  }

  texts(name: string): readonly string[] | undefined {
    return this.remember(name, textsOf(this.parameters, name));
  }

  flag(name: string): boolean | undefined {
    const [text] = textsOf(this.parameters, name) ?? [];
    if (text !== undefined && !/^(true|false|1|0)$/i.test(text)) throw refused(name, 'is neither true nor false');
    return this.remember(name, text === undefined ? undefined : /^(true|1)$/i.test(text));
  }

  range(name: string): TimeRange | undefined {
    const range = rangeOf(this.parameters, name);
    if (range !== undefined) this.given[name] = textsOf(this.parameters, name);
    return range;
  }

  /** Returns whether what exists is asked for: `active`, `all` or 1. What was deleted is not kept, so `deleted` and any other number have nothing. */
  isActive(name = 'state'): boolean {
    const [text = 'all'] = textsOf(this.parameters, name) ?? [];
    if (/^(active|deleted|all)$/i.test(text)) {
      if (this.parameters[name] !== undefined) this.given[name] = text.toLowerCase();
      return text.toLowerCase() !== 'deleted';
    }
    if (!/^-?\d{1,15}$/.test(text)) throw refused(name, 'is not active (1), deleted (2) or all');
    return this.number(name) === ACTIVE;
  }

  remember<Value>(name: string, value: Value | undefined): Value | undefined {
    if (value !== undefined) this.given[name] = value;
    return value;
  }
}

/** The state of what exists. */
const ACTIVE = 1;

/** Returns whether a client speaks TLS: the bridge does not, a proxy before it does and says so. A wrong header harms only its sender. */
export function isHttps(request: Pick<Request, 'get'>): boolean {
  return request.get('X-Forwarded-Proto')?.split(',')[0]?.trim().toLowerCase() === 'https';
}

/** Reads the id in a path. @throws ApiError 404 if it is invalid, like for a missing object */
export function idIn(request: Request, name: string): number {
  const text = String(request.params[name]);
  if (!/^\d{1,15}$/.test(text)) throw ApiError.notFound();
  return Number(text);
}

/** Reads parameters. @throws ApiError 400 that names what is wrong */
export function parsedParameters<T extends z.ZodType>(schema: T, parameters: unknown): z.output<T> {
  const result = schema.safeParse(parameters);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new ApiError(400, `${issue?.path.join('.') || 'the request'}: ${issue?.message ?? 'cannot be read'}.`);
}
