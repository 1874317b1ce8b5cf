import { numberOf, type Parameters, refused, textsOf } from './query-values.js';

/** Which part of a list is asked for, and in which order. */
export interface ListPart<Order> {
  readonly limit: number;
  readonly offset: number;
  readonly orderBy: Order;
  readonly isDescending: boolean;
  /** As it is echoed; `null` where nobody said. */
  readonly order: string | null;
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
  const [order = null] = textsOf(parameters, 'order_by') ?? [];
  const isDescending = order?.startsWith('-') ?? false;
  const name = isDescending ? order?.slice(1) : order;
  if (name != null && !Object.hasOwn(orders, name)) {
    throw refused('order_by', `is not one of ${Object.keys(orders).join(', ')}, with - in front to reverse`);
  }
  const orderBy = orders[name ?? 'id'] ?? orders.id;
  return { limit: Math.min(limit, MAX_LIMIT), offset, orderBy, isDescending, order };
}
