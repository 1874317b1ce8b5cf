import type { Feature } from '../feature.js';
import type { HistoryConfig, HistoryHost } from './pages.js';

// The door of histories of models and tests: no other folder imports anything else of this one.

/** Models and tests over all runs of an account, and what they cost. */
export function createHistories(config: HistoryConfig, host: HistoryHost): Feature {
  return { components: [], pages: async () => (await import('./pages.js')).historyPages(config, host) };
}
