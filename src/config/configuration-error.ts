/** The configuration cannot be used. Carries every problem found, each a sentence that says where and what to do. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}
