/** How much one step may leave behind. */
export interface ArtifactLimits {
  /** Files. */
  readonly maxCount: number;
  /** Each file, in bytes. */
  readonly maxFileBytes: number;
  /** All of them, in bytes. */
  readonly maxTotalBytes: number;
}

/** The limits of a step beside that of each file, which is a setting: 20,000 files of 1 GiB together. */
export const STEP_LIMITS = { maxCount: 20_000, maxTotalBytes: 1024 ** 3 } as const;
