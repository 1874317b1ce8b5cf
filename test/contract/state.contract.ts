import { systemClock } from '../../src/core/clock.js';
import { silentLogger } from '../../src/core/logger.js';
import { PullStore } from '../../src/platform/pull-store.js';
import { LocalStepRegistry } from '../../src/run/local-step-registry.js';
import type { State } from '../../src/storage/state.js';
import { type FeatureState, withFeatureStores } from '../fake/webhook-facts.js';
import { cursorStoreContract } from './cursor-store.contract.js';
import { jobRunStoreContract } from './job/job-run-store.contract.js';
import { journalStoreContract } from './journal-store.contract.js';
import { leaseStoreContract } from './lease-store.contract.js';
import { pullStoreContract } from './platform/pull-store.contract.js';
import { retentionStoreContract } from './retention-store.contract.js';
import { rowStoreContract } from './row-store.contract.js';
import { runCatalogContract } from './run-catalog.contract.js';
import { runMeasuresStoreContract, runStoreContract } from './run-store.contract.js';
import { runTotalsStoreContract } from './run-totals-store.contract.js';
import { stepRegistryContract } from './step-registry.contract.js';
import { tokenStoreContract } from './token-store.contract.js';
import { unusualValuesContract } from './unusual-values.contract.js';
import { deliveryStoreContract } from './webhook/delivery-store.contract.js';
import { webhookEventStoreContract } from './webhook/event-store.contract.js';
import { webhookNewsContract } from './webhook/outbox.contract.js';
import { webhookOverviewStoreContract } from './webhook/overview.contract.js';
import { webhookSubscriptionStoreContract } from './webhook/subscription-store.contract.js';

/** What every State does, store by store. `withState` gives the body an empty one, with an outbox of webhooks, and clears it away afterwards. */
export function stateContract(withState: (body: (state: State) => Promise<void>) => Promise<void>): void {
  const withFeatures = (body: (state: FeatureState) => Promise<void>) =>
    withState((state) => body(withFeatureStores(state)));
  runStoreContract((body) => withState((state) => body(state.runs)));
  runMeasuresStoreContract((body) => withState((state) => body(state.runs, state.measures)));
  cursorStoreContract((body) => withState(body));
  runCatalogContract(withState);
  rowStoreContract(withState);
  retentionStoreContract(withState);
  runTotalsStoreContract(withState);
  jobRunStoreContract(withFeatures);
  leaseStoreContract((body) => withState((state) => body(state.leases)));
  pullStoreContract((body) => withState((state) => body(new PullStore(state))));
  journalStoreContract(withState);
  tokenStoreContract((body) => withState((state) => body(state)));
  webhookSubscriptionStoreContract(withFeatures);
  webhookNewsContract(withFeatures);
  webhookEventStoreContract(withFeatures);
  webhookOverviewStoreContract(withFeatures);
  deliveryStoreContract(withFeatures);
  unusualValuesContract(withFeatures);
  stepRegistryContract('the registry of a state', (body) =>
    withState(async ({ executions, runs }) => {
      const deps = { store: executions, runs, listeners: [], clock: systemClock, logger: silentLogger };
      const registry = new LocalStepRegistry(deps);
      await registry.start();
      try {
        await body(registry, executions);
      } finally {
        await registry.shutdown();
      }
    }),
  );
}
