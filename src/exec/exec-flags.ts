/** The options that have a value, each with its variable: `--run-id` is `RUN_BRIDGE_RUN_ID`. */
export const EXEC_FLAGS: readonly (readonly [name: string, placeholder: string, summary: string])[] = [
  ['to', 'URL', 'hand over to this bridge (default: one that holds the data folder or answers on its port, else none)'],
  ['flush-timeout', 'TIME', 'how long exports may take when the command has ended (default: 10s)'],
  ['run-id', 'ID', 'name of the run; several commands with one name are steps of one run'],
  ['job', 'NAME', 'job that the run belongs to'],
  ['environment', 'NAME', 'environment that the run belongs to, such as production'],
  ['project', 'NAME', 'project that the run belongs to'],
  ['reason', 'TEXT', 'why the run was started'],
  ['step-id', 'ID', 'id of this step, unique and made up by the caller (default: a random one)'],
];

/** The options without a value. */
export const EXEC_SWITCHES: readonly (readonly [name: string, summary: string])[] = [
  ['last', 'the run is finished when this step has ended'],
  ['span', 'add a span for the command itself: exit code, CPU time, peak memory'],
  ['summary', 'say at the end, on standard error, where the run is'],
  ['quiet', 'say nothing, not even what went wrong with the bridge'],
];
