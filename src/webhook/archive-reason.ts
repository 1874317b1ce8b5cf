/** Why a subscription was archived, as a closed set. */
export type ArchiveReason = 'gone' | 'failures_in_a_row' | 'failing_too_long';

/** The same in words, as people read it and as the state keeps it. */
export const ARCHIVE_WORDS = {
  gone: () => 'the endpoint answered 410 Gone: it wants nothing more',
  failures_in_a_row: (failedCount: number) => `${failedCount} deliveries in a row have failed`,
  failing_too_long: (failingMs: number) =>
    `every delivery of the last ${Math.round(failingMs / 86_400_000)} days has failed`,
} as const satisfies Readonly<Record<ArchiveReason, (figure: number) => string>>;

/** @returns `undefined` for words that are none of these: of another version of the program, say */
export function archiveReasonOf(words: string): ArchiveReason | undefined {
  if (words.startsWith('the endpoint answered 410')) return 'gone';
  if (words.endsWith('deliveries in a row have failed')) return 'failures_in_a_row';
  return words.startsWith('every delivery of the last') ? 'failing_too_long' : undefined;
}
