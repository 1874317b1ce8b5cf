import type { Response } from 'express';
import { QueryError } from '../query/query-error.js';
import type { QueryPlaces } from '../query/query-places.js';
import type { ApiError } from './api-error.js';
import { goneOf } from './gone-of.js';

/**
 * Does what reads whole record logs only as often at a time as there are places.
 * @param toApiError what is answered where no place became free
 */
export async function inPlace<T>(
  places: QueryPlaces,
  response: Response,
  work: () => Promise<T>,
  toApiError: (error: QueryError) => ApiError,
): Promise<T> {
  let leave: () => void;
  try {
    leave = await places.take(goneOf(response));
  } catch (error) {
    throw error instanceof QueryError ? toApiError(error) : error;
  }
  try {
    return await work();
  } finally {
    leave();
  }
}
