import type { CatalogStep } from '../../store/run-catalog.js';
import { ApiError } from '../api-error.js';

/**
 * Reads `?step=N`, from 1.
 * @returns `null` where it is left out.
 * @throws ApiError 400
 */
export function readStepParameter(value: unknown): number | null {
  if (value === undefined || value === '') return null;
  if (typeof value === 'string' && /^[1-9]\d{0,8}$/.test(value)) return Number(value);
  throw new ApiError(400, 'step: must be one whole number from 1.');
}

/** The step of that position, or the last one; `undefined` where there is none. */
export function findStep(steps: readonly CatalogStep[], index: number | null): CatalogStep | undefined {
  return index === null ? steps.at(-1) : steps.find((step) => step.index === index);
}
