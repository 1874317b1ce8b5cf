import type { Request } from 'express';

/** Which page of a list an address asks for, from 1; the first where it says nothing that can be read. */
export function pageNumber({ query }: Pick<Request, 'query'>): number {
  const { page } = query;
  return typeof page === 'string' && /^[1-9]\d{0,6}$/.test(page) ? Number(page) : 1;
}
