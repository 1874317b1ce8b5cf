import type { Configuration } from '../config/configuration.js';
import type { Logger } from '../core/logger.js';
import { createLogger } from './create-logger.js';
import type { ProcessContext } from './process-context.js';

/** The program's logger on standard error, as configured. */
export function loggerOf(
  configuration: Pick<Configuration, 'log-level' | 'log-format'>,
  { stderr, isStderrTerminal }: Pick<ProcessContext, 'stderr' | 'isStderrTerminal'>,
): Logger {
  const { 'log-level': level, 'log-format': format } = configuration;
  return createLogger({ level, format, stream: stderr, isTerminal: isStderrTerminal });
}
