import { Router } from 'express';
import { authorize, callerOf } from '../../api/authenticator.js';
import { may, Permits, textRedactor, withPermit } from '../../api/permissions.js';
import { cut, distinctTexts } from '../../core/text.js';
import {
  type GraphNode,
  graphLayout,
  graphPart,
  isBadNode,
  isTests,
  type NodeGraph,
  neighbourhood,
  nodeGraph,
  outcomeOf,
} from '../../run/measures/node-graph.js';
import { slowestNodes } from '../../run/measures/time-split.js';
import { labelOf } from '../../run/measures/troubles.js';
import { byVerdict, countVerdicts } from '../../run/verdict.js';
import { countedWords, nodeWord } from '../../run/words.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import { sendPage } from './layout.js';
import type { PageDeps } from './page-deps.js';
import type { PageManifests } from './page-manifests.js';
import { countText, ScrollTable } from './parts.js';
import { VerdictMark } from './run-nodes-page.js';
import { tooMany } from './run-page.js';
import { MAX_NAME } from './run-page-model.js';
import { RunShell, shownRun } from './run-shell.js';
import { NodeLink } from './run-troubles.js';

/** The most nodes that are drawn. */
const MAX_NODES = 2_000;
/** Graphs up to this size are drawn completely if nothing failed. */
const MAX_WHOLE = 150;
/** The most nodes that a text finds, and the most slow nodes whose neighbourhood is shown if nothing failed. */
const MAX_FOUND = 20;
const MAX_TEXT = 200;
/** The most rows of the table. */
const MAX_LISTED = 200;

/** The part of the graph that is shown. */
interface GraphFilter {
  readonly isAll: boolean;
  /** A part of a unique id; empty for the neighbourhood of failures. */
  readonly text: string;
}

/** Serves `/runs/{id}/graph`: the nodes of a step from left to right by their dependencies, drawn by the server. */
export function runGraphRouter(deps: PageDeps, manifests: PageManifests): Router {
  const { measures, redaction, clock, version } = deps;
  const permits = new Permits('requests for graphs');
  const router = Router();
  router.get('/runs/:runId/graph', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const shown = await shownRun(request, response, deps);
    const { run, step } = shown;
    const redactor = textRedactor(caller, redaction);
    const { text, all } = request.query;
    const filter = { isAll: all === '1', text: typeof text === 'string' ? text.trim().slice(0, MAX_TEXT) : '' };
    const mayRead = may(caller, 'artifacts:read');
    const { nodes, manifest } = await withPermit(
      permits,
      response,
      async () => {
        const measured = step === null ? [] : await measures.ofSteps([step]);
        const measuredNodes = measured.flatMap(({ command }) => command.nodes);
        return { nodes: measuredNodes, manifest: step === null || !mayRead ? null : await manifests.of(step) };
      },
      tooMany,
    );
    const whole = nodeGraph(nodes, manifest);
    const slowest = slowestNodes(nodes, MAX_FOUND).map(({ uniqueId }) => uniqueId);
    const part = shownPart(whole, filter, slowest);
    await sendPage(
      response,
      <RunShell {...{ shown, caller, redactor, version }} tab="/graph" nowUnixMs={clock.nowUnixMs()}>
        {manifest === null && <NoManifest runId={run.id} step={step} mayRead={mayRead} />}
        {nodes.length === 0 && <p class="empty">No node has been processed in this step.</p>}
        {nodes.length > 0 && (
          <>
            <GraphForm {...{ filter, whole, part, step }} runId={run.id} />
            <Drawing graph={part} runId={run.id} />
            <GraphTable graph={part} runId={run.id} />
          </>
        )}
      </RunShell>,
    );
  });
  return router;
}

/** Chooses the nodes that are shown at first: the neighbourhood of failures; without failures a small graph completely, else the slowest nodes. */
function shownPart(whole: NodeGraph, { isAll, text }: GraphFilter, slowest: readonly string[]): NodeGraph {
  const ids = [...whole.nodes.keys()];
  const bad = ids.filter((id) => isBad(whole, id));
  if (text !== '') {
    const isFound = (id: string) => id.toLowerCase().includes(text.toLowerCase());
    const tests = (id: string) => (isTests(id) ? (whole.nodes.get(id)?.tests ?? []) : []);
    const found = ids.filter((id) => isFound(id) || tests(id).some(({ uniqueId }) => isFound(uniqueId)));
    found.splice(MAX_FOUND);
    return graphPart(whole, neighbourhood(whole, found));
  }
  if (isAll || (bad.length === 0 && ids.length <= MAX_WHOLE)) {
    // If there are too many, those closest to a failure come first.
    const first = [...neighbourhood(whole, bad), ...ids];
    return graphPart(whole, new Set([...new Set(first)].slice(0, MAX_NODES)));
  }
  const near = [...neighbourhood(whole, bad.length > 0 ? bad : slowest)];
  return graphPart(whole, new Set(near.slice(0, MAX_NODES)));
}

function isBad(graph: NodeGraph, id: string): boolean {
  const node = graph.nodes.get(id);
  return node !== undefined && isBadNode(node);
}

function NoManifest(props: { readonly runId: number; readonly step: CatalogStep | null; readonly mayRead: boolean }) {
  const { runId, step, mayRead } = props;
  if (!mayRead) {
    return <p class="notice">Dependencies are in an artifact, which you may not read: only skipped nodes are drawn.</p>;
  }
  return (
    <p class="notice">
      No <code>manifest.json</code> is kept of this step, so only what was skipped because of a failure is drawn. Run
      the command under <code>run-bridge exec</code>, which keeps it, or upload it:{' '}
      <code class="name">
        curl -T target/manifest.json -H "Authorization: Token …" {'<this address>'}/api/run-bridge/v1/runs/{runId}
        /artifacts/manifest.json?step={step?.index ?? 1}
      </code>
    </p>
  );
}

function GraphForm(props: {
  readonly runId: number;
  readonly step: CatalogStep | null;
  readonly filter: GraphFilter;
  readonly whole: NodeGraph;
  readonly part: NodeGraph;
}) {
  const { runId, step, filter, whole, part } = props;
  const [all, shown] = [whole.nodes.size, part.nodes.size];
  const base = `/runs/${runId}/graph?step=${step?.index ?? 1}`;
  return (
    <>
      <form method="get" action={`/runs/${runId}/graph`} class="filter" aria-label="Which part">
        <input type="hidden" name="step" value={String(step?.index ?? 1)} />
        <label class="wide">
          Around a node <input type="search" name="text" value={filter.text} maxlength={MAX_TEXT} />
        </label>
        <button type="submit">Show</button>
      </form>
      <p class="actions-line">
        <span>
          {shown.toLocaleString('en')} of {countText(all, 'node')}
        </span>
        {(filter.isAll || filter.text !== '') && <a href={base}>What matters first</a>}
        {!filter.isAll && shown < all && (
          <a href={`${base}&all=1`}>Show all{all > MAX_NODES ? ` (${MAX_NODES.toLocaleString('en')})` : ''}</a>
        )}
      </p>
    </>
  );
}

/** Sizes in pixels. */
const NODE = { width: 264, height: 24, gap: 56, step: 32 } as const;
const MAX_LABEL = 28;

const SIGNS: Readonly<Record<string, readonly [sign: string, mood: string]>> = {
  success: ['✓', 'well'],
  warned: ['!', 'warned'],
  failed: ['✗', 'broken'],
  error: ['✗', 'broken'],
  canceled: ['–', 'left'],
  skipped: ['–', 'left'],
  unfinished: ['●', 'warned'],
};

/** Names a node with its kind; of models, which most are, a box has the name alone. */
function graphLabel({ uniqueId, measure, tests }: GraphNode, isBox = false): string {
  if (isTests(uniqueId)) {
    const tested = graphLabel({ uniqueId: uniqueId.replace(/^tests of /, ''), measure: null, tests: [] }, isBox);
    const count = tests.filter(({ verdict }) => verdict === tests[0]?.verdict).length;
    return isBox ? `${count} of ${tests.length} tests: ${tested}` : `tests of ${tested}`;
  }
  const label = cut(labelOf(measure ?? { uniqueId, nodeType: null, name: null }), MAX_NAME);
  return isBox ? label.replace(/^model /, '') : label;
}

/** How a node ended, in words. */
function outcomeText({ uniqueId, measure, tests }: GraphNode): string {
  const counts = countedWords(countVerdicts(tests), 0).map(
    ([count, one, many]) => `${count} ${count === 1 ? one : many}`,
  );
  if (isTests(uniqueId)) return counts.join(', ');
  const passed = tests.length === 0 ? '' : `, ${countText(tests.length, 'passed test')}`;
  return `${measure === null ? 'not in this step' : nodeWord(measure.verdict)}${passed}`;
}

function Drawing({ graph, runId }: { readonly graph: NodeGraph; readonly runId: number }) {
  const cells = graphLayout(graph);
  if (cells.length === 0) return <p class="empty">Nothing failed, and no node is like that.</p>;
  const at = new Map(
    cells.map(({ uniqueId, column, row }) => [
      uniqueId,
      { x: column * (NODE.width + NODE.gap) + 1, y: row * NODE.step + 1 },
    ]),
  );
  const width = Math.max(...cells.map(({ column }) => column)) * (NODE.width + NODE.gap) + NODE.width + 2;
  const height = cells.reduce((most, { row }) => Math.max(most, row), 0) * NODE.step + NODE.height + 2;
  const isTrouble = (id: string) => isBad(graph, id) || graph.nodes.get(id)?.measure?.verdict === 'skipped';
  const labels = distinctTexts(
    [...graph.nodes.values()].map((node) => graphLabel(node, true)),
    MAX_LABEL,
  );
  const lines = [...graph.parents].flatMap(([id, parents]) =>
    parents.map((parent) => ({ parent, id, isHot: isTrouble(parent) && isTrouble(id) })),
  );
  const line = ({ parent, id, isHot }: (typeof lines)[number]) => {
    const [from, to] = [at.get(parent) ?? { x: 0, y: 0 }, at.get(id) ?? { x: 0, y: 0 }];
    const [x1, y1, y2] = [from.x + NODE.width, from.y + NODE.height / 2, to.y + NODE.height / 2];
    const middle = (x1 + to.x) / 2;
    return <path {...(isHot && { class: 'hot' })} d={`M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${to.x} ${y2}`} />;
  };
  return (
    <section class="scroll graph" tabindex={0} aria-label="Nodes from left to right, by what they depend on">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        <title>Nodes and what they depend on</title>
        <g class="lines">{[...lines].sort((a, b) => Number(a.isHot) - Number(b.isHot)).map(line)}</g>
        {[...graph.nodes.values()].map((node) => {
          const { x, y } = at.get(node.uniqueId) ?? { x: 0, y: 0 };
          return <DrawnNode {...{ node, x, y, runId }} label={labels.get(graphLabel(node, true)) ?? ''} />;
        })}
      </svg>
    </section>
  );
}

function DrawnNode(props: {
  readonly node: GraphNode;
  readonly x: number;
  readonly y: number;
  readonly runId: number;
  /** Its name as it has room. */
  readonly label: string;
}) {
  const { node, x, y, runId, label } = props;
  const outcome = outcomeOf(node);
  const [sign, mood] = outcome === null ? ['', 'outside'] : (SIGNS[outcome.verdict] ?? ['', 'left']);
  const passedCount = isTests(node.uniqueId) ? 0 : node.tests.length;
  const drawn = (
    <>
      <title>{`${cut(node.uniqueId, MAX_NAME)}: ${outcomeText(node)}`}</title>
      <rect x={x} y={y} width={NODE.width} height={NODE.height} rx="4" />
      <text x={x + 8} y={y + 16}>
        {`${sign} ${label}`.trim()}
      </text>
      {passedCount > 0 && (
        <text class="soft" x={x + NODE.width - 8} y={y + 16} text-anchor="end">
          {passedCount} ✓
        </text>
      )}
    </>
  );
  const uniqueId = outcome?.uniqueId ?? '';
  const isLink = uniqueId !== '' && uniqueId.length <= MAX_NAME && !/\p{Cs}/u.test(uniqueId);
  if (!isLink) return <g class={mood}>{drawn}</g>;
  return (
    <a class={mood} href={`/runs/${runId}/nodes?node=${encodeURIComponent(uniqueId)}`}>
      {drawn}
    </a>
  );
}

/** Lists the failures with their dependencies, for visitors who cannot see the drawing, and for narrow windows. */
function GraphTable({ graph, runId }: { readonly graph: NodeGraph; readonly runId: number }) {
  const nodes = [...graph.nodes.values()].flatMap((node) => {
    const outcome = outcomeOf(node);
    return outcome === null ? [] : [{ node, outcome }];
  });
  const rows = nodes.toSorted((a, b) => byVerdict(a.outcome, b.outcome)).slice(0, MAX_LISTED);
  if (rows.length === 0) return null;
  const names = (ids: readonly string[]) =>
    ids
      .slice(0, 5)
      .map((id) => graphLabel(graph.nodes.get(id) ?? { uniqueId: id, measure: null, tests: [] }))
      .join(', ') + (ids.length > 5 ? ` and ${ids.length - 5} more` : '');
  return (
    <section aria-labelledby="as-table">
      <h2 id="as-table">As a table</h2>
      <ScrollTable label="Nodes with what they depend on" columns={['Node', 'Status', 'Depends on', 'Used by']} isCards>
        {rows.map(({ node, outcome }) => (
          <tr>
            <th scope="row" class="name">
              <NodeLink runId={runId} uniqueId={outcome.uniqueId} text={graphLabel(node)} />
              {isTests(node.uniqueId) && <span class="sub">{outcomeText(node)}</span>}
            </th>
            <td>
              <VerdictMark node={outcome} />
            </td>
            <Names what="depends on" text={names(graph.parents.get(node.uniqueId) ?? [])} />
            <Names what="used by" text={names(graph.children.get(node.uniqueId) ?? [])} />
          </tr>
        ))}
      </ScrollTable>
      {nodes.length > rows.length && <p class="hint">and {(nodes.length - rows.length).toLocaleString('en')} more</p>}
    </section>
  );
}

/** @param props.what the kind of names in a card, which has no headings */
function Names({ what, text }: { readonly what: string; readonly text: string }) {
  return (
    <td class="name wide">
      {text !== '' && (
        <>
          <span class="on-card">{what} </span>
          {text}
        </>
      )}
    </td>
  );
}
