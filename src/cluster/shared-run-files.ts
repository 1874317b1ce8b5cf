import type { RunEvent, RunListener } from '../run/run-event.js';
import type { SharedFiles } from './shared-files.js';

const RUN_FILE = 'run.json';

/** Has the files that a run is over with written, and shares them before anybody is told that they can be read. */
export class SharedRunFiles implements RunListener {
  /** @param parquet writes Parquet; `null` where none is wanted */
  constructor(
    private readonly parquet: RunListener | null,
    private readonly files: Pick<SharedFiles, 'share'>,
  ) {}

  /** @throws when something cannot be written or shared: it is told again. */
  async onRunEvent(event: RunEvent): Promise<void> {
    await this.parquet?.onRunEvent(event);
    const { run } = event;
    const { traceId } = run;
    if (event.type === 'finished') {
      await this.files.share(traceId, [...run.invocations.map(({ parquetFile }) => parquetFile), RUN_FILE]);
    } else if (event.type === 'invocationEnded' && run.state === 'open') {
      await this.files.share(traceId, [event.invocation.parquetFile]);
    }
  }
}
