import { until } from '../tool/until.js';
import type { ClusterStage } from './cluster-stage.js';

/**
 * Stops the process of a stage that has the most traces, as a machine that hangs does, until the others have all of them; then
 * lets it go on, which it does as if nothing had been.
 * @returns what was done, in words
 */
export async function suspendOne(stage: ClusterStage): Promise<readonly string[]> {
  const { processes, peers } = stage;
  const [first] = processes;
  if (first === undefined) throw new Error('there is no process');
  const id = await stage.processIdOf(first);
  const parts = `select partition_index from journal_partitions where process_id = '${id}'`;
  const ownedCount = () => stage.count(`journal_traces where is_open = 1 and partition_index in (${parts})`);
  const partCount = () => stage.count(`journal_partitions where process_id = '${id}'`);
  await until('traces of its own', async () => (await ownedCount()) >= 3);
  peers.sink.noteKill();
  first.victim.signal('SIGSTOP');
  const count = await ownedCount();
  await until('the take-over', async () => (await partCount()) === 0);
  first.victim.signal('SIGCONT');
  await until('partitions of its own again', async () => (await partCount()) > 0);
  return [`process 0, which had ${count} traces, was suspended until others had them`];
}
