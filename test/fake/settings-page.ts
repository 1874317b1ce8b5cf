import type { Clock } from '../../src/core/clock.js';
import type { Feature } from '../../src/feature.js';
import type { RetainedKind } from '../../src/retention/feature.js';
import { createSettingsPage } from '../../src/settings/feature.js';
import type { State } from '../../src/storage/state.js';

const SIGNAL = {
  state: 'ready',
  sentCount: 12,
  refusedCount: 1,
  rejectedCount: 0,
  forwardedCount: 0,
  failedAttemptCount: 3,
} as const;

/** The settings page of a bridge with one destination, which is down. */
export function settingsPage(state: State, clock: Clock, kinds: readonly RetainedKind[]): Feature {
  return createSettingsPage(
    { 'data-dir': '/data', 'database-url': 'off', processes: 'one' },
    {
      state,
      health: {
        report: () => ({
          ready: false,
          checks: [{ name: 'disk', state: { ready: false, reason: 'the disk is full; free some space' } }],
        }),
      },
      sightings: { list: () => [] },
      memory: { usage: { usedBytes: 2 ** 20, residentBytes: 2 ** 21, limitBytes: 2 ** 30 } },
      disk: {
        usage: { freeBytes: 0, totalBytes: 2 ** 40, reserveBytes: 0, usedBytes: undefined, limitBytes: undefined },
      },
      destinations: ['tempo'],
      exports: {
        destinations: [['tempo', 'http://tempo:4318']],
        statuses: () => [
          {
            name: 'tempo',
            state: 'waiting',
            ...{ pendingRuns: 2, lagBytes: 4_096, oldestUnsentSeconds: 90 },
            ...{ givenUpRunCount: 0, givenUpSpanCount: 0, givenUpLogCount: 0 },
            signals: { traces: SIGNAL, logs: SIGNAL },
            lastError: 'connection refused <script>',
          },
        ],
        test: async (name) =>
          name === 'tempo'
            ? {
                traceId: '0af7651916cd43dd8448eb211c80319c',
                answers: [
                  {
                    signal: 'traces',
                    result: { kind: 'accepted', status: 200, rejectedCount: 0, message: '' },
                    durationMs: 12,
                  },
                  {
                    signal: 'logs',
                    result: { kind: 'refused', status: 404, message: 'no <script> here' },
                    durationMs: 7,
                  },
                ],
              }
            : undefined,
      },
      retention: { kinds },
      ports: () => ({ otlpUrl: 'http://127.0.0.1:4318', grpcUrl: null, webUrl: 'http://127.0.0.1:4380' }),
      nodeVersion: '20.19.0',
      clock,
      version: '0.0.0',
    },
  );
}
