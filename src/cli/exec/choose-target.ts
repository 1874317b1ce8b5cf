import { pause } from '../../component/pause.js';
import { askBridge } from '../../source/ask-bridge.js';
import { DataFolderInUseError } from '../../store/data-folder-in-use-error.js';
import { reachableUrl } from '../reachable-url.js';
import { announcedAddress } from './announced-address.js';
import type { ExecTarget } from './exec-target.js';
import type { TargetChoice } from './target-choice.js';

/** How often a data folder that another command holds is tried again, in milliseconds. */
const FOLDER_RETRY_MS = 300;

/** A bridge that takes the records: `--to`, the user's own endpoint, the one that holds the data folder, the one on the default port. */
export async function chooseBridge(choice: TargetChoice): Promise<ExecTarget | undefined> {
  const found = await findBridge(choice);
  return found === undefined ? undefined : handOver(found.url, choice, found.hasAnswered);
}

/**
 * The data folder, where no bridge was found. One that another command holds just now is waited for; where a bridge has
 * come to hold it meanwhile, that one takes the records.
 * @param open opens the folder, or as much of it as is needed
 * @throws StoreError, ConfigurationError; DataFolderInUseError when it was waited for in vain.
 */
export async function openFolder<Target>(
  choice: TargetChoice,
  open: () => Promise<Target>,
): Promise<Target | ExecTarget> {
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof DataFolderInUseError) || choice.giveUp.aborted) throw error;
      choice.onTrouble(error.message);
      const holder = error.holder?.address;
      const found = typeof holder === 'string' ? await askBridge(reachableUrl(holder)) : undefined;
      if (found !== undefined) return await handOver(found.otlpUrl, choice, true);
      await pause(choice.context.clock, FOLDER_RETRY_MS, choice.giveUp);
    }
  }
}

async function handOver(url: string, choice: TargetChoice, hasAnswered: boolean): Promise<ExecTarget> {
  const { handOverTo } = await import('./hand-over.js');
  return await handOverTo(url, choice, hasAnswered);
}

async function findBridge({ configuration, to, isFolderChosen, userEndpoint }: TargetChoice) {
  // One that does not answer yet may be starting.
  if (to !== undefined) {
    const found = await askBridge(to);
    return { url: found?.otlpUrl ?? to, hasAnswered: found !== undefined };
  }
  const { host, port } = configuration.http;
  const byDefault = isFolderChosen || userEndpoint !== undefined || port === 0 ? [] : [urlOf(host, port)];
  const announced = announcedAddress(configuration['data-dir']);
  for (const address of [userEndpoint, announced, ...byDefault]) {
    const found = address === undefined ? undefined : await askBridge(address);
    if (found !== undefined) return { url: found.otlpUrl, hasAnswered: true };
  }
  return undefined;
}

function urlOf(host: string, port: number): string {
  return reachableUrl(`http://${host.includes(':') ? `[${host}]` : host}:${port}`);
}
