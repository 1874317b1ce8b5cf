import type { Health } from '../component/health.js';
import type { MetricSource } from './metric-source.js';
import type { Sample } from './sample.js';

/** What `/readyz` says: of all, and of each part. */
export function healthMetrics(health: Pick<Health, 'report'>): MetricSource {
  return { name: 'health', read };

  function read(): readonly Sample[] {
    const { ready, checks } = health.report();
    return [
      { name: 'run_bridge_ready', value: Number(ready), labels: {} },
      ...checks.map(
        ({ name: check, state }): Sample => ({
          name: 'run_bridge_check_ready',
          value: Number(state.ready),
          labels: { check },
        }),
      ),
    ];
  }
}
