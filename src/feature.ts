import type { Router } from 'express';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import type { Component } from './component/component.js';
import type { MetricSource } from './metric/metric-source.js';

/** What a feature adds to the program. What is a function is called when somebody first asks for it, so that a start loads none of it. */
export interface Feature {
  /** Started with the program, in this order. */
  readonly components: readonly Component[];
  /** Routers of the API, with whole paths; they stand behind its tokens. */
  readonly api?: () => Promise<readonly Router[]>;
  /** Describes those routers for `/api/openapi.json`. */
  readonly apiPaths?: () => Promise<ZodOpenApiPathsObject>;
  /** Pages, with whole paths; they stand behind the sign-in. */
  readonly pages?: () => Promise<Router>;
  readonly metrics?: () => Promise<MetricSource>;
}
