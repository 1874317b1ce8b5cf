import { isLoopback } from '../../component/is-loopback.js';
import type { Invocation } from '../command-line.js';
import type { ExitCode } from '../exit-code.js';
import { loggerOf } from '../logger-of.js';
import { resolveForCommand } from '../resolve-for-command.js';
import { pullOnce } from './pull-once.js';
import { planPull } from './pull-plan.js';
import { pullWatch } from './pull-watch.js';

/** What `run-bridge pull` does. @throws CliError, ConfigurationError, PlatformError, StoreError, OutputError, ConsumeError */
export async function pull(invocation: Invocation): Promise<ExitCode> {
  const { stderr } = invocation.context;
  const { configuration, warnings } = await resolveForCommand(invocation);
  for (const warning of warnings) stderr.write(`run-bridge: ${warning}\n`);
  const plan = planPull(invocation, configuration);
  const logger = loggerOf(configuration, invocation.context);
  const url = new URL(plan.configuration['platform-url']);
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    stderr.write(`run-bridge: the token goes to ${url.origin} unencrypted; use https:// where the platform has it\n`);
  }
  return plan.wanted.kind === 'watch'
    ? pullWatch(invocation, { ...plan, wanted: plan.wanted }, logger)
    : pullOnce(invocation, { ...plan, wanted: plan.wanted }, logger);
}
