import type { Feature } from '../feature.js';
import type { SettingsConfig, SettingsHost } from './pages.js';

// The door of the settings page: no other folder imports anything else of this one.

/** The page of who runs the bridge: its tokens, destinations, storage and health. */
export function createSettingsPage(config: SettingsConfig, host: SettingsHost): Feature {
  const startedUnixMs = host.clock.nowUnixMs();
  return {
    components: [],
    pages: async () => (await import('./pages.js')).settingsPages(config, { ...host, startedUnixMs }),
  };
}
