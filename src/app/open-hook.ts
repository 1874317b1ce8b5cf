import type { Router } from 'express';
import type { Configuration } from '../config/configuration.js';
import { missingForHooks } from '../config/missing-for-hooks.js';
import type { Component } from '../core/lifecycle.js';
import { loadHostedRuns } from '../platform/feature.js';
import type { Host } from './host.js';

/** Creates the router for webhooks of the hosted platform and the components that import the reported runs; loaded only if this is configured. */
export async function openHook(
  config: Configuration,
  host: Host,
): Promise<{ readonly hook: Router; readonly components: readonly Component[] }> {
  const missing = missingForHooks(config);
  if (missing.length > 0) {
    // It brings Express along, which a store without ports does without.
    const { platformHookOff } = await import('../web/platform-hook-off.js');
    return { hook: platformHookOff(missing), components: [] };
  }
  const { HostedRuns } = await loadHostedRuns();
  const runs = new HostedRuns(config, { ...host, openConsumer: () => host.consumer });
  return { hook: runs.openHook(host.health), components: host.leased('hosted runs', runs.components) };
}
