import { pause } from '../../component/pause.js';
import { askBridge } from '../../source/ask-bridge.js';
import { DataFolderInUseError } from '../../store/data-folder-in-use-error.js';
import { reachableUrl } from '../reachable-url.js';
import { announcedAddress } from './announced-address.js';
import type { ExecTarget } from './exec-target.js';
import { handOverTo } from './hand-over.js';
import type { TargetChoice } from './target-choice.js';

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
  if (address !== undefined) return handOverTo(address, choice);
  const { openOwnStore } = await import('./own-store.js');
  for (;;) {
    try {
      return await openOwnStore(configuration, context, choice);
    } catch (error) {
      if (!(error instanceof DataFolderInUseError) || giveUp.aborted) throw error;
      choice.onTrouble(error.message);
      const holder = error.holder?.address;
      const found = typeof holder === 'string' ? await askBridge(reachableUrl(holder)) : undefined;
      if (found !== undefined) return handOverTo(found.otlpUrl, choice);
      await pause(context.clock, FOLDER_RETRY_MS, giveUp);
    }
  }
}

async function findBridge({ configuration, to, isFolderChosen, userEndpoint }: TargetChoice) {
  // One that does not answer yet may be starting.
  if (to !== undefined) return (await askBridge(to))?.otlpUrl ?? to;
  const { host, port } = configuration.http;
  const byDefault = isFolderChosen || userEndpoint !== undefined || port === 0 ? [] : [urlOf(host, port)];
  const announced = announcedAddress(configuration['data-dir']);
  for (const address of [userEndpoint, announced, ...byDefault]) {
    const found = address === undefined ? undefined : await askBridge(address);
    if (found !== undefined) return found.otlpUrl;
  }
  return undefined;
}

function urlOf(host: string, port: number): string {
  return reachableUrl(`http://${host.includes(':') ? `[${host}]` : host}:${port}`);
}
