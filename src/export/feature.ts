// The door of exports: no other folder imports anything else of this one. What maps and sends runs is loaded in the thread that exports alone.

export type { DestinationStatus, SignalStatus } from './destination.js';
export type { DestinationTest, TestAnswer } from './destination-test.js';
export type { ExportThread } from './export-thread.js';
export type { ExportWorker } from './export-worker.js';
export type { OpenedExport } from './exports.js';
export type { ExportStarterCalls, ExportThreadCalls, ThreadCluster, ThreadSetup } from './thread-messages.js';

/** What starts the thread that exports, and keeps it going. */
export function loadExportThread() {
  return import('./export-thread.js');
}

/** What the thread that exports works with: its destinations and their workers. */
export function loadExports() {
  return import('./exports.js');
}
