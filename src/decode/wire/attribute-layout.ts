import { isSame } from '../../record/same-bytes.js';
import type { FieldPlan } from './field-plan.js';
import type { SpanSlice } from './span-slice.js';
import { UNUSUAL } from './wire-cursor.js';

/**
 * Which attributes a span has, in the order in which they came. Spans of one type mostly have the same, so the layout of
 * the latest one is tried first: comparing the names costs a fraction of looking each of them up and sorting them.
 */
export interface AttributeLayout {
  readonly plans: readonly FieldPlan[];
  /** Indices of `plans` in the order of their names, in which they are written. */
  readonly order: readonly number[];
  /** Indices of those that are noted in the page. */
  readonly watched: readonly number[];
}

export const NO_LAYOUT: AttributeLayout = { plans: [], order: [], watched: [] };

/** @throws UNUSUAL when a name occurs twice */
export function attributeLayout(plans: readonly FieldPlan[]): AttributeLayout {
  const name = (index: number) => (plans[index] as FieldPlan).key.name;
  const order = plans.map((_, index) => index).sort((a, b) => (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : 0));
  for (let place = 1; place < order.length; place++) {
    if (name(order[place] as number) === name(order[place - 1] as number)) throw UNUSUAL;
  }
  const watched = plans.flatMap((plan, index) => (plan.isWatched ? [index] : []));
  return { plans, order, watched };
}

/** Whether the span has these attributes, in this order. */
export function isLaidOut(layout: AttributeLayout, from: Buffer, span: SpanSlice): boolean {
  const { plans } = layout;
  if (plans.length !== span.attributeCount) return false;
  for (let index = 0; index < plans.length; index++) {
    const { bytes } = (plans[index] as FieldPlan).key;
    if (!isSame(bytes, from, span.keyStart[index] as number, span.keyEnd[index] as number)) return false;
  }
  return true;
}
