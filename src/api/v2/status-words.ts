import { RUN_STATUS, type RunStatus } from '../../storage/run-status.js';

const WORDS: Readonly<Record<RunStatus, readonly [word: string, color: string]>> = {
  [RUN_STATUS.queued]: ['Queued', '#9e9e9e'],
  [RUN_STATUS.starting]: ['Starting', '#42a5f5'],
  [RUN_STATUS.running]: ['Running', '#1e88e5'],
  [RUN_STATUS.success]: ['Success', '#43a047'],
  [RUN_STATUS.error]: ['Error', '#e53935'],
  [RUN_STATUS.cancelled]: ['Cancelled', '#757575'],
};

/** A status in a word. */
export function statusWord(status: RunStatus): string {
  return WORDS[status][0];
}

/** A status as a colour: `#43a047`. */
export function statusColor(status: RunStatus): string {
  return WORDS[status][1];
}

/** A status by its number or its word, in whatever case; `undefined` for what is none. */
export function parseStatus(text: string): RunStatus | undefined {
  const statuses = Object.values(RUN_STATUS);
  return statuses.find((status) => text === String(status) || text.toLowerCase() === statusWord(status).toLowerCase());
}
