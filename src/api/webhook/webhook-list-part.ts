import { numberOf, type Parameters, refused } from '../v2/query-values.js';

/** As many as the hosted platform gives where nobody says how many. */
const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 100;

/** Reads `limit` (10, at most 100) and `offset` (0). @throws ApiError 400 */
export function webhookListPart(parameters: Parameters): { readonly limit: number; readonly offset: number } {
  const limit = numberOf(parameters, 'limit') ?? DEFAULT_LIMIT;
  if (limit < 1) throw refused('limit', 'is less than 1');
  const offset = numberOf(parameters, 'offset') ?? 0;
  if (offset < 0) throw refused('offset', 'is less than 0');
  return { limit: Math.min(limit, MAX_LIMIT), offset };
}
