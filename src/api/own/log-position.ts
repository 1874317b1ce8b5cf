import { ApiError } from '../api-error.js';

/** A place in the record logs of a run: how far each of its traces was read, in bytes. What is missing is 0. */
export type LogPosition = readonly number[];

/** As cursors and event ids have it: `4711.0.33`. */
export function formatPosition(place: LogPosition): string {
  return place.join('.');
}

/** @param traceCount how many traces the run has @throws ApiError 400 */
export function parsePosition(text: string, traceCount: number): LogPosition {
  const place = text.split('.').map(Number);
  if (!/^[0-9]{1,15}(\.[0-9]{1,15})*$/.test(text) || place.length > Math.max(traceCount, 1)) {
    throw new ApiError(400, 'cursor: is not a cursor of this run; leave it out to begin at the first record.');
  }
  return place;
}

/** The place with one trace read as far as `offset`. */
export function movedPosition(place: LogPosition, trace: number, offset: number): LogPosition {
  return Array.from({ length: Math.max(place.length, trace + 1) }, (_, at) =>
    at === trace ? offset : (place[at] ?? 0),
  );
}
