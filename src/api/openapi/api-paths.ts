import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { ARTIFACT_PATHS } from '../artifact/artifact-paths.js';
import { OWN_PATHS } from '../own/own-paths.js';
import { OWN_WEBHOOK_PATHS } from '../own/webhook-paths.js';
import { V2_PATHS } from '../v2/v2-paths.js';
import { V3_PATHS } from '../v3/v3-paths.js';
import { BRIDGE_PATHS } from './bridge-paths.js';

/**
 * Every path of the API. A router is described beside it, in a `…-paths.ts`, and that is named here; a test fails for a
 * route that is mounted and not described, and for one that is described and not mounted.
 */
export const API_PATHS: ZodOpenApiPathsObject = {
  ...BRIDGE_PATHS,
  ...V2_PATHS,
  ...ARTIFACT_PATHS,
  ...OWN_PATHS,
  ...V3_PATHS,
  ...OWN_WEBHOOK_PATHS,
};
