/** The names that `--format` and `exec --report` take. */
export const REPORT_FORMATS = ['text', 'json', 'markdown', 'github', 'junit', 'html', 'perfetto'] as const;
