import type { Child } from 'hono/jsx';
import type { Caller } from '../../api/caller.js';
import { earlierRuns } from '../../api/earlier-runs.js';
import { may } from '../../api/permissions.js';
import { cut, lengthText } from '../../core/text.js';
import type { Redactor } from '../../redaction/redactor.js';
import { shareMs } from '../../run/measures/compare-commands.js';
import type { NodeMeasure, NodePhase } from '../../run/measures/node-measure.js';
import { scopeOf } from '../../run/measures/run-scope.js';
import type { CommandMeasures } from '../../run/measures/run-totals.js';
import { lengthOf, shareOf, withoutWaits } from '../../run/measures/time-split.js';
import { labelOf, selectCommand } from '../../run/measures/troubles.js';
import { byVerdict, type NodeVerdict } from '../../run/verdict.js';
import { phaseWords } from '../../run/words.js';
import { encodedArtifactPath, parseArtifactPath } from '../../storage/artifacts.js';
import { isTestId, type Manifest } from '../../storage/manifest.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import { RUN_STATUS } from '../../storage/state-tables.js';
import type { PageDeps } from './page-deps.js';
import type { PageManifests } from './page-manifests.js';
import { countText, Fact, HistoryBars, ScrollTable } from './parts.js';
import { findLines, plainLine } from './run-logs-page.js';
import { type PanelOf, VerdictMark, verdictMood } from './run-nodes-page.js';
import { MAX_NAME, readNodeTrouble } from './run-page-model.js';
import type { ShownRun } from './run-shell.js';
import { Code, Command, Lines, NodeLink, TroubleOfRun } from './run-troubles.js';

/** The most queries, log records, neighbours and runs of a node that are shown. */
const MAX_QUERIES = 20;
const MAX_LINES = 20;
const MAX_NEIGHBOURS = 20;
const MAX_RUNS = 20;
/** The most earlier runs that are looked at. */
const MAX_LOOKED_AT = 30;
/** The part of a compiled file that is shown, in bytes. */
const MAX_SQL_BYTES = 32 * 1024;

/** A node of a step, and who looks at it. */
interface Seen {
  readonly node: NodeMeasure;
  readonly command: CommandMeasures;
  readonly shown: ShownRun;
  readonly step: CatalogStep;
  readonly caller: Caller;
  readonly redactor: Redactor;
}

/** Reads and shows all that is known about a node. */
export function nodePanels(deps: PageDeps, manifests: PageManifests): PanelOf {
  return async ({ closeHref, ...seen }) => {
    const { node, command, shown, step, caller, redactor } = seen;
    const hasArtifacts = may(caller, 'artifacts:read');
    const trouble = await readNodeTrouble(node, { ...shown, command, redactor }, deps);
    const history = await readHistory(seen, deps);
    const lines = await readLines(seen, deps);
    // The page says what it can where artifacts cannot be read just now.
    const unreadable = (error: unknown) => {
      deps.logger.error({ error: String(error) }, 'failed to read artifacts of a node');
      return null;
    };
    const manifest = hasArtifacts ? await manifests.of(step).catch(unreadable) : null;
    const sql = hasArtifacts && trouble?.sql == null ? await readCompiled(seen, deps).catch(unreadable) : null;
    const rerun = trouble?.command ?? selectCommand(command.invocation, [node]);
    const name = cut(labelOf(node), MAX_NAME);
    return (
      <section class="panel" aria-labelledby="node">
        <h2 id="node" class="name">
          {name} <VerdictMark node={node} />
        </h2>
        <p class="hint name">
          {cut(node.uniqueId, MAX_NAME)}{' '}
          <a href={closeHref} data-panel="close">
            Close
          </a>
        </p>
        {trouble !== null && <TroubleOfRun trouble={trouble} run={shown.run} severity="error" id="trouble" isNamed />}
        {trouble === null && node.skipUpstream !== null && (
          <p class="name">
            Skipped because of{' '}
            <NodeLink runId={shown.run.id} uniqueId={node.skipUpstream} text={cut(node.skipUpstream, MAX_NAME)} />
          </p>
        )}
        {trouble?.command == null && rerun !== null && <Command command={rerun} label={`Run ${name} again`} />}
        <Links seen={seen} />
        <Facts node={node} isFileShown={trouble?.location == null} />
        <Phases node={node} command={command} />
        <Queries node={node} command={command} />
        {sql}
        {lines.length > 0 && (
          <Part title="Log records">
            <Code label={`Log records of ${name}`}>{lines.join('')}</Code>
          </Part>
        )}
        <History seen={seen} runs={history} />
        <Neighbours seen={seen} manifest={manifest} />
      </section>
    );
  };
}

function Part({ title, children }: { readonly title: string; readonly children?: Child }) {
  return (
    <>
      <h3>{title}</h3>
      {children}
    </>
  );
}

/** Links to the other pages about a node. */
function Links({ seen: { node, shown, step } }: { readonly seen: Seen }) {
  const id = encodeURIComponent(node.uniqueId);
  const page = (tab: string, query: string) => `/runs/${shown.run.id}/${tab}?step=${step.index}&${query}=${id}`;
  return (
    <p class="actions-line">
      <a href={page('timeline', 'node')}>Timeline</a>
      <a href={page('graph', 'text')}>Graph</a>
      <a href={`${page('logs', 'node')}&severity=trace`}>Logs</a>
      <a href={`/models?node=${id}`}>History</a>
    </p>
  );
}

function Facts({ node, isFileShown }: { readonly node: NodeMeasure; readonly isFileShown: boolean }) {
  const { relativePath, group, idleTimeMs, durationMs, share, warehouseTimeNano, rows } = node;
  return (
    <dl class="facts">
      {relativePath !== null && isFileShown && (
        <Fact isName name="File">
          <code>{cut(relativePath, MAX_NAME)}</code>
        </Fact>
      )}
      {group !== null && (
        <Fact isName name="Group">
          {cut(group, MAX_NAME)}
        </Fact>
      )}
      <Fact name="Share of the run">{lengthText(Number(shareOf(share)) / 1e6)}</Fact>
      {idleTimeMs !== null && idleTimeMs > 0 && <Fact name="Waiting">{lengthText(idleTimeMs)}</Fact>}
      {durationMs !== null && <Fact name="Work">{lengthText(durationMs)}</Fact>}
      <Fact name="Warehouse">{lengthText(Number(warehouseTimeNano) / 1e6)}</Fact>
      {rows !== null && !isTest(node) && <Fact name="Rows">{rows.toLocaleString('en')}</Fact>}
    </dl>
  );
}

/** Whether a node is a test, whose row count is that of its failures and not shown as rows. */
function isTest({ uniqueId, testOutcome, failingRows }: NodeMeasure): boolean {
  return testOutcome !== null || failingRows !== null || isTestId(uniqueId);
}

function Phases({ node, command }: { readonly node: NodeMeasure; readonly command: CommandMeasures }) {
  if (node.phases.length === 0) return null;
  const from = command.invocation.startTimeUnixNano;
  const columns = ['Phase', { number: 'From' }, { number: 'Wait' }, { number: 'Work' }, { number: 'Warehouse' }];
  return (
    <ScrollTable label="Phases of the node" columns={columns}>
      {node.phases.map((phase) => (
        <tr>
          <th scope="row">{phaseWords(phase.phase)}</th>
          <td class="number nowrap">{nanoText(phase.startTimeUnixNano - from)}</td>
          <td class="number nowrap">{phase.waits.length === 0 ? '–' : nanoText(lengthOf(phase.waits))}</td>
          <td class="number nowrap">{workText(phase)}</td>
          <td class="number nowrap">{nanoText(phase.warehouseTimeNano)}</td>
        </tr>
      ))}
    </ScrollTable>
  );
}

function workText({ endTimeUnixNano, ...phase }: NodePhase): string {
  return endTimeUnixNano === null ? 'did not end' : nanoText(lengthOf(withoutWaits({ ...phase, endTimeUnixNano })));
}

function nanoText(nano: bigint): string {
  return lengthText(Number(nano) / 1e6);
}

/** The telemetry has no rows of a query, only those of its node. */
function Queries({ node, command }: { readonly node: NodeMeasure; readonly command: CommandMeasures }) {
  const { uniqueIds, nodes, startsMs, endsMs } = command.queryTimes;
  const position = uniqueIds.indexOf(node.uniqueId);
  const found = Array.from(nodes.keys()).filter((at) => nodes[at] === position);
  if (position < 0 || found.length === 0) return null;
  return (
    <Part title={countText(found.length, 'query', 'queries')}>
      <ScrollTable label="Queries of the node" columns={['Query', { number: 'From' }, { number: 'Time' }]}>
        {found.slice(0, MAX_QUERIES).map((at, index) => (
          <tr>
            <th scope="row">{index + 1}</th>
            <td class="number nowrap">{lengthText(startsMs[at] ?? 0)}</td>
            <td class="number nowrap">{lengthText((endsMs[at] ?? 0) - (startsMs[at] ?? 0))}</td>
          </tr>
        ))}
      </ScrollTable>
      {found.length > MAX_QUERIES && <p class="hint">and {(found.length - MAX_QUERIES).toLocaleString('en')} more</p>}
    </Part>
  );
}

/** The node's compiled file among the artifacts of its step; nothing if there is none. */
async function readCompiled({ node, step }: Seen, { artifacts }: PageDeps): Promise<Child> {
  const [, project = ''] = node.uniqueId.split('.');
  const path = parseArtifactPath(`compiled/${project}/${node.relativePath ?? ''}`);
  if (path === undefined || !path.endsWith('.sql')) return null;
  const file = await artifacts.stat(step, path);
  if (file === undefined || file.sizeBytes === 0) return null;
  const opened = await artifacts.open(step, path, { from: 0, to: Math.min(file.sizeBytes, MAX_SQL_BYTES) });
  if (opened === undefined) return null;
  const pieces: Buffer[] = [];
  for await (const piece of opened.content) pieces.push(piece as Buffer);
  const lines = Buffer.concat(pieces).toString('utf8').trimEnd().split('\n');
  return (
    <details id="compiled">
      <summary>Compiled SQL, {countText(lines.length, 'line')}</summary>
      <Lines
        lines={lines.map((content, at) => ({ line: at + 1, content }))}
        errorLine={null}
        label={`Compiled SQL of ${cut(labelOf(node), MAX_NAME)}`}
      />
      <a href={`/runs/${step.runId}/artifacts/${encodedArtifactPath(path)}?step=${step.index}`}>The file</a>
    </details>
  );
}

/** Its first log records, as text. */
async function readLines({ node, step, redactor }: Seen, { measures }: PageDeps): Promise<readonly string[]> {
  const logs = await measures.logsOf([step], redactor);
  const filter = {
    severity: 'info',
    text: '',
    node: node.uniqueId,
    isNewestFirst: false,
    page: 1,
    step: null,
  } as const;
  const { lines } = await findLines(logs, filter, redactor);
  return lines
    .filter((line) => line.node?.uniqueId === node.uniqueId)
    .slice(0, MAX_LINES)
    .map((line) => plainLine({ ...line, node: null }));
}

/** What became of a node in a run, and what of the run's length fell to it. */
interface NodeRun {
  readonly runId: number;
  readonly verdict: NodeVerdict;
  readonly shareMs: number;
}

/** Its last runs that may be compared with this one, which is the first of them. */
async function readHistory({ node, command, shown: { run } }: Seen, deps: PageDeps): Promise<readonly NodeRun[]> {
  const found: NodeRun[] = [{ runId: run.id, verdict: node.verdict, shareMs: shareMs(node) }];
  const query = { statuses: [RUN_STATUS.error, RUN_STATUS.success], limit: MAX_LOOKED_AT };
  const { runs } = await earlierRuns(run, [scopeOf(command)], query, deps);
  for await (const { run: one, digests } of runs) {
    for (const { work } of digests ?? []) {
      const at = work.uniqueIds.indexOf(node.uniqueId);
      const verdict = work.verdicts[at];
      if (verdict !== undefined) found.push({ runId: one.id, verdict, shareMs: work.sharesMs[at] ?? 0 });
    }
    if (found.length >= MAX_RUNS) break;
  }
  return found;
}

function History({ seen: { node }, runs }: { readonly seen: Seen; readonly runs: readonly NodeRun[] }) {
  if (runs.length < 2) return null;
  const bars = runs.toReversed().map(({ runId, verdict, shareMs: lengthMs }) => ({
    href: `/runs/${runId}/nodes?node=${encodeURIComponent(node.uniqueId)}`,
    text: `#${runId}: ${verdict}, ${lengthText(lengthMs)}`,
    mood: verdictMood(verdict),
    lengthMs,
  }));
  return (
    <Part title={`Last ${countText(runs.length, 'run')}`}>
      <section class="scroll" tabindex={0} aria-label="Last runs of the node">
        <HistoryBars bars={bars} size="large" label="Share of each run, oldest first" />
      </section>
    </Part>
  );
}

/** What a node depends on, its tests, and what depends on it. */
function Neighbours({ seen, manifest }: { readonly seen: Seen; readonly manifest: Manifest | null }) {
  const { node, command } = seen;
  if (manifest === null) return null;
  const id = node.uniqueId;
  const using = [...manifest].filter(([, { dependsOn }]) => dependsOn.includes(id)).map(([one]) => one);
  const parts = [
    ['Depends on', manifest.get(id)?.dependsOn ?? []],
    ['Tests', using.filter(isTestId)],
    ['Used by', using.filter((one) => !isTestId(one))],
  ] as const;
  const measures = new Map(command.nodes.map((one) => [one.uniqueId, one]));
  return (
    <>
      {parts.map(([title, ids]) => (
        <NodeList title={title} ids={ids} runId={seen.shown.run.id} measures={measures} />
      ))}
    </>
  );
}

function NodeList(props: {
  readonly title: string;
  readonly ids: readonly string[];
  readonly runId: number;
  readonly measures: ReadonlyMap<string, NodeMeasure>;
}) {
  const { title, ids, runId, measures } = props;
  if (ids.length === 0) return null;
  const known = ids.flatMap((id) => measures.get(id) ?? []).sort(byVerdict);
  const others = ids.filter((id) => !measures.has(id));
  const rest = Math.max(0, ids.length - MAX_NEIGHBOURS);
  return (
    <Part title={`${title} (${ids.length.toLocaleString('en')})`}>
      <ul class="tree">
        {known.slice(0, MAX_NEIGHBOURS).map((node) => (
          <li>
            <NodeLink runId={runId} uniqueId={node.uniqueId} text={cut(labelOf(node), MAX_NAME)} />{' '}
            <VerdictMark node={node} />
          </li>
        ))}
        {others.slice(0, Math.max(0, MAX_NEIGHBOURS - known.length)).map((uniqueId) => (
          <li class="name soft">{cut(labelOf({ uniqueId, nodeType: null, name: null }), MAX_NAME)}</li>
        ))}
        {rest > 0 && <li>and {rest.toLocaleString('en')} more</li>}
      </ul>
    </Part>
  );
}
