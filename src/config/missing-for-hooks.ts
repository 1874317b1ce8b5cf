import type { Configuration } from './configuration.js';

/** What is to be set before webhooks of the hosted platform are taken; empty where all of it is. */
export function missingForHooks(configuration: Configuration): readonly string[] {
  const { 'platform-url': url, platformSecrets } = configuration;
  return [
    ...(platformSecrets.hookSecret === null ? ['RUN_BRIDGE_PLATFORM_HOOK_SECRET'] : []),
    ...(platformSecrets.token === null ? ['RUN_BRIDGE_PLATFORM_TOKEN'] : []),
    ...(url === 'off' ? ['--platform-url'] : []),
  ];
}
