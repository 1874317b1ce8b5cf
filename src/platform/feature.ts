import type { CliCommand } from '../cli/command.js';
import type { Configuration } from '../config/configuration.js';
import { TAKING_SETTINGS } from '../config/settings.js';
import type { Clock } from '../core/clock.js';
import type { Feature } from '../feature.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { CatalogStep } from '../storage/run-catalog.js';
import type { State } from '../storage/state.js';
import type { PullHost } from './open-pull.js';
import type { FactsOf } from './routes.js';

// The door of what has the hosted platform's shapes: no other folder imports anything else of this one. What answers requests, and what
// brings in hosted runs, is loaded when it is needed.

export type { JobFacts } from './documents.js';
export { PlatformError } from './platform-error.js';
export type { FactsOf } from './routes.js';
export { hasRunIdentity, withRunIdentity } from './run-environment.js';

/** What the platform's API needs of the program. */
export interface PlatformHost {
  readonly state: Pick<State, 'catalog' | 'accounts'>;
  readonly reader: RecordLogReader;
  readonly jobs: {
    /** What the configuration says of jobs. */
    readonly factsOf: FactsOf;
    /** The output of a step's command, as far as it is kept: its end, and how many bytes are left out before it. */
    outputOf(stepId: string): Promise<{ readonly text: string; readonly droppedBytes: number } | undefined>;
  };
  readonly clock: Clock;
}

/** Answers as the hosted platform's API, version 2: accounts, jobs, runs and their steps. */
export function createPlatformApi(
  config: Pick<Configuration, 'redaction' | 'public-url'>,
  host: PlatformHost,
): Feature {
  return {
    components: [],
    api: async () => {
      const { platformRouters } = await import('./routes.js');
      const { StepLogReader } = await import('./step-logs.js');
      const { state, reader, jobs, clock } = host;
      const logs = new StepLogReader(reader);
      const logsOf = async (step: CatalogStep) => {
        const [read, output] = await Promise.all([logs.read(step), jobs.outputOf(step.stepId)]);
        if (output === undefined) return read;
        const { text, droppedBytes } = output;
        return {
          ...read,
          logs: droppedBytes === 0 ? text : `… (the first ${droppedBytes} bytes are left out)\n${text}`,
        };
      };
      return platformRouters({
        catalog: state.catalog,
        accounts: state.accounts,
        factsOf: jobs.factsOf,
        logsOf,
        redaction: config.redaction,
        publicUrl: config['public-url'] === 'off' ? null : config['public-url'],
        clock,
      });
    },
    apiPaths: async () => (await import('./routes.js')).V2_PATHS,
  };
}

/** The document of a run, for features that answer with one. */
export async function runShape() {
  const { runContext } = await import('./routes.js');
  const { commandOf, runDocument, runSchema } = await import('./documents.js');
  return { commandOf, runContext, runDocument, runSchema };
}

/** What brings in hosted runs while the program is at work. */
export function loadHostedRuns() {
  return import('./hosted-runs.js');
}

/** `run-bridge pull` */
export function pullCommand(host: PullHost): CliCommand {
  return {
    name: 'pull',
    operands: '',
    summary: 'import runs of a hosted platform through its API; the token comes from RUN_BRIDGE_PLATFORM_TOKEN',
    settings: [...TAKING_SETTINGS, 'jsonl'],
    flags: [
      ['--base-url <URL>', 'the platform, such as https://cloud.example.com (default: the setting platform-url)'],
      ['--account <ID>', "the account's number (default: the setting platform-account)"],
      ['--run <ID>', 'one run'],
      ['--since <TIME>', 'the runs created since a time, such as 24h, 30d or 2026-01-31T08:00Z'],
      ['--job <ID>', 'of these only the runs of one job'],
      ['--watch', 'keep running and import each new run, until SIGINT or SIGTERM; the next start resumes there'],
      ['--interval <TIME>', 'how often to look for new runs, 5s to 1d (default: the setting platform-interval, 1m)'],
      ['--to <URL>', 'send the records to a bridge that is running, instead of writing them here'],
    ],
    examples: [
      ['run-bridge pull --base-url https://cloud.example.com --account 7 --run 1234', 'one run of the hosted platform'],
      [
        'run-bridge pull --base-url https://cloud.example.com --account 7 --job 5 --since 24h',
        'those of a job since yesterday',
      ],
      ['run-bridge pull --base-url https://cloud.example.com --account 7 --watch', 'all new ones, as they complete'],
    ],
    async run(invocation) {
      const { pull } = await import('./command.js');
      return pull(invocation, host);
    },
  };
}
