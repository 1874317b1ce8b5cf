import type { Request } from 'express';
import { ApiError } from '../api-error.js';

/** The number that a path names. @throws ApiError 404 for what is none: nothing is there either */
export function idIn(request: Request, name: string): number {
  const text = String(request.params[name]);
  if (!/^\d{1,15}$/.test(text)) throw ApiError.notFound();
  return Number(text);
}
