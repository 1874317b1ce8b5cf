import type { Caller } from '../../api/caller.js';
import type { CatalogRun, CatalogStep } from '../../storage/run-catalog.js';
import { isFinal } from '../../storage/run-status.js';
import { Layout } from './layout.js';
import { RunDownloads } from './run-download-list.js';
import type { Download } from './run-downloads.js';
import { RunFacts } from './run-facts.js';
import { RunMark } from './run-mark.js';
import type { RunPageModel } from './run-page-model.js';
import { RunSteps } from './run-steps.js';
import { RunTroubles } from './run-troubles.js';
import { RunVerdict } from './run-verdict.js';
import { SlowestNodes } from './slowest-nodes.js';

/** A run and what was found of it. */
export interface SeenRun {
  readonly run: CatalogRun;
  readonly steps: readonly CatalogStep[];
  readonly sight: RunPageModel;
  readonly downloads: readonly Download[] | 'unreadable' | null;
}

/** One run: how it ended and why, then what failed, what took long, what was run, and where everything else is. */
export function RunPage(props: {
  readonly caller: Caller;
  readonly seen: SeenRun;
  readonly nowUnixMs: number;
  readonly version: string;
}) {
  const { caller, seen, nowUnixMs, version } = props;
  const { run, steps, sight, downloads } = seen;
  const isLive = !isFinal(run.status);
  return (
    <Layout title={`${run.job.name} #${run.id}`} caller={caller} version={version} isLive={isLive}>
      <div id="live" {...(isLive && { 'data-live': '2000' })}>
        <h1>
          <span class="name">{run.job.name}</span> #{run.id} <RunMark status={run.status} />
        </h1>
        <RunVerdict run={run} sight={sight} nowUnixMs={nowUnixMs} />
        <RunFacts run={run} nowUnixMs={nowUnixMs} />
        <RunTroubles sight={sight} runId={run.id} />
        <SlowestNodes nodes={sight.slowest} lengthNano={sight.lengthNano} />
        <RunSteps steps={steps} sight={sight} nowUnixMs={nowUnixMs} />
        <RunDownloads downloads={downloads} steps={steps} />
        <Documents runId={run.id} />
      </div>
    </Layout>
  );
}

function Documents({ runId }: { readonly runId: number }) {
  const base = `/api/run-bridge/v1/runs/${runId}`;
  return (
    <section aria-labelledby="documents">
      <h2 id="documents">For programs</h2>
      <ul>
        <li>
          <a href={base}>The run</a>, <a href={`${base}/nodes`}>every node with its errors</a>,{' '}
          <a href={`${base}/measures`}>measures</a>, <a href={`${base}/records`}>records</a> (JSON)
        </li>
        <li>
          <a href="/api/openapi.json">What the API has</a> (OpenAPI)
        </li>
      </ul>
    </section>
  );
}
