import type { Feature } from '../feature.js';
import type { HistoryConfig, HistoryHost } from './pages.js';

// The door of histories of models and tests: other folders import only this file.

/** Creates the pages with models and tests over all runs of an account, and their costs. */
export function createHistories(config: HistoryConfig, host: HistoryHost): Feature {
  return { components: [], pages: async () => (await import('./pages.js')).historyPages(config, host) };
}
