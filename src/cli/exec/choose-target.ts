import type { Logger } from '../../component/logger.js';
import { pause } from '../../component/pause.js';
import type { Configuration } from '../../config/configuration.js';
import { DataFolderInUseError } from '../../store/data-folder-in-use-error.js';
import type { ProcessContext } from '../process-context.js';
import type { ExecTarget } from './exec-target.js';
import { handOverTo } from './hand-over.js';
import { announcedAddress, isRunBridge } from './running-bridge.js';

/** What decides where the records go. */
export interface TargetChoice {
  readonly configuration: Configuration;
  /** `--to` */
  readonly to: string | undefined;
  /** Whether the user named the data folder: then a bridge with another one is not meant. */
  readonly isFolderChosen: boolean;
  /** The user's own OTLP endpoint, which may be a bridge. */
  readonly userEndpoint: string | undefined;
  readonly context: ProcessContext;
  readonly logger: Logger;
  /** Ends all waiting. */
  readonly giveUp: AbortSignal;
  /** Something does not work just now, in a sentence. */
  readonly onTrouble: (message: string) => void;
}

/** How often a data folder that another command holds is tried again, in milliseconds. */
const FOLDER_RETRY_MS = 300;

/**
 * Chooses: `--to`, the user's own endpoint if it is a bridge, the bridge that holds the data folder, the one on the default
 * port, else the data folder itself. A folder that another command holds just now is waited for.
 * @throws StoreError, ConfigurationError; DataFolderInUseError when it was waited for in vain.
 */
export async function chooseTarget(choice: TargetChoice): Promise<ExecTarget> {
  const { configuration, context, giveUp } = choice;
  const address = await findBridge(choice);
  if (address !== undefined) return handOverTo(address, context.clock, choice);
  const { openOwnStore } = await import('./own-store.js');
  for (;;) {
    try {
      return await openOwnStore(configuration, context, choice);
    } catch (error) {
      if (!(error instanceof DataFolderInUseError) || giveUp.aborted) throw error;
      choice.onTrouble(error.message);
      const holder = error.holder?.address;
      if (typeof holder === 'string' && (await isRunBridge(holder))) return handOverTo(holder, context.clock, choice);
      await pause(context.clock, FOLDER_RETRY_MS, giveUp);
    }
  }
}

async function findBridge({ configuration, to, isFolderChosen, userEndpoint }: TargetChoice) {
  if (to !== undefined) return to;
  const { host, port } = configuration.http;
  const byDefault =
    isFolderChosen || userEndpoint !== undefined || port === 0 ? [] : [`http://${reachable(host)}:${port}`];
  for (const address of [userEndpoint, announcedAddress(configuration['data-dir']), ...byDefault]) {
    if (address !== undefined && (await isRunBridge(address))) return address;
  }
  return undefined;
}

/** An address that listens everywhere is reached from this machine by its loopback address. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  const address = host === '::' ? '::1' : host;
  return address.includes(':') ? `[${address}]` : address;
}
