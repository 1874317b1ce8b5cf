import type { LoggedRecord } from '../../../../src/log/record-log.js';
import type { NodeMeasure } from '../../../../src/run/measures/node-measure.js';
import { readMeasures } from '../../../../src/run/measures/read-measures.js';
import type { CommandMeasures } from '../../../../src/run/measures/run-totals.js';
import { RunState } from '../../../../src/run/open-run.js';
import { RUN_TRACKER_DEFAULTS } from '../../../../src/run/run-tracker-config.js';
import { fromJsonl } from '../logged-samples.js';

/** Long after every command has ended, or is taken for lost. */
const LONG_AFTER_MS = 10_000_000;

/** What is measured of the commands in a record log of these records, handed out some at a time as a reader does. */
export async function measuresOf(records: readonly LoggedRecord[]): Promise<readonly CommandMeasures[]> {
  const state = new RunState(RUN_TRACKER_DEFAULTS);
  state.add(records, 0);
  const [first] = records;
  if (first === undefined) throw new Error('no record');
  const reader = {
    async *read() {
      for (let at = 0; at < records.length; at += 100) yield records.slice(at, at + 100);
    },
  };
  return readMeasures(reader, {
    traceId: first.record.traceId,
    firstSeenUnixMs: 1,
    lastSeenUnixMs: 2,
    state: 'finished',
    logBytes: records.at(-1)?.endOffset ?? 0,
    invocations: state.judge(LONG_AFTER_MS).invocations,
  });
}

/** What is measured of the first command of a sample's JSONL. */
export async function sampleMeasures(run: string): Promise<CommandMeasures> {
  const [command] = await measuresOf(fromJsonl(run));
  if (command === undefined) throw new Error(`${run} has no command`);
  return command;
}

/** @throws when the command has no such node. */
export function nodeOf({ nodes }: CommandMeasures, uniqueId: string): NodeMeasure {
  const node = nodes.find((each) => each.uniqueId === uniqueId);
  if (node === undefined) throw new Error(`no node ${uniqueId}`);
  return node;
}
