import { FolderArtifactStore } from '../../src/artifact/folder-artifact-store.js';
import type { Clock } from '../../src/core/clock.js';
import { silentLogger } from '../../src/core/logger.js';
import { PassthroughSegments } from '../../src/log/passthrough-segments.js';
import { createRetention, type RetentionParts } from '../../src/retention/feature.js';
import type { State } from '../../src/storage/state.js';

const OFF = {
  'retain-telemetry': { maxAgeMs: null, maxBytes: null },
  'retain-artifacts': { maxAgeMs: null, maxBytes: null },
  'max-backlog-age': 'off',
} as const;

/** Retention that nobody starts: it removes a run where somebody asks for that, and nothing writes to any. */
export function idleRetention(state: State, clock: Clock, dataFolder: string): RetentionParts {
  return createRetention(
    { ...OFF, 'data-dir': dataFolder },
    {
      state,
      openArtifacts: async () => new FolderArtifactStore(dataFolder),
      sharedFiles: undefined,
      passthrough: new PassthroughSegments(dataFolder, { isSynced: false, listeners: [] }),
      destinations: [],
      rows: [],
      recordLog: { consume: async () => {} },
      localRuns: { whileReleased: (_traceIds, action) => action() },
      clock,
      logger: silentLogger,
      version: '0.0.0',
    },
  );
}
