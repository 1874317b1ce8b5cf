import { expect, test } from 'vitest';
import { ByteBudget } from '../../../src/otlp/read-body.js';

test('the budget is given out up to its limit and not beyond', () => {
  const budget = new ByteBudget(100);
  expect(budget.reserve(60)).toBeDefined();
  expect(budget.reserve(41)).toBeUndefined();
  expect(budget.reserve(40)).toBeDefined();
  expect(budget.usedBytes).toBe(100);
});

test('a reservation grows by the difference, or not at all', () => {
  const budget = new ByteBudget(100);
  const reservation = budget.reserve(60);
  expect(reservation?.growTo(50)).toBe(true);
  expect(budget.usedBytes).toBe(60);
  expect(reservation?.growTo(100)).toBe(true);
  expect(reservation?.growTo(101)).toBe(false);
  expect(budget.usedBytes).toBe(100);
});

test('what was released can be reserved again, and releasing twice gives back once', () => {
  const budget = new ByteBudget(100);
  const first = budget.reserve(60);
  const second = budget.reserve(40);
  first?.release();
  first?.release();
  expect(budget.usedBytes).toBe(40);
  second?.release();
  expect(budget.usedBytes).toBe(0);
});
