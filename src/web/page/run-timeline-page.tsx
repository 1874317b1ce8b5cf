import { Router } from 'express';
import { authorize, callerOf } from '../../api/authenticator.js';
import type { Caller } from '../../api/caller.js';
import { Permits, textRedactor, withPermit } from '../../api/permissions.js';
import { cut, visibleText } from '../../core/text.js';
import { paceOf } from '../../run/measures/pace.js';
import type { CommandMeasures } from '../../run/measures/run-totals.js';
import { slowestNodes } from '../../run/measures/time-split.js';
import { LANE_GROUPINGS, type LaneGrouping, type TimelinePiece, timelineOf } from '../../run/measures/timeline.js';
import { labelOf } from '../../run/measures/troubles.js';
import { withDependencies } from '../../run/measures/upstream.js';
import { phaseWords } from '../../run/words.js';
import { sendPage } from './layout.js';
import type { PageDeps } from './page-deps.js';
import type { PageManifests } from './page-manifests.js';
import { readManifestOf, SlowestNodes, tooMany } from './run-page.js';
import { MAX_NAME } from './run-page-model.js';
import { RunShell, type ShownRun, shownRun } from './run-shell.js';
import { ConcurrencyChart, CriticalPathTable, PaceFacts } from './run-time.js';

/** The most nodes and queries that are drawn. */
const MAX_NODES = 35_000;
const MAX_QUERIES = 50_000;
/** The most nodes in the table below. */
const MAX_SLOWEST = 20;
/** The most steps of the critical path in the table. */
const MAX_STEPS = 50;

/** Serves `/runs/{id}/timeline`: a step over time, drawn by a script from `timeline.json`, with a table for visitors who cannot see it. */
export function runTimelineRouter(deps: PageDeps, manifests: PageManifests): Router {
  const { measures, clock, version } = deps;
  const permits = new Permits('requests for timelines');
  const router = Router();
  const commandsOf = async ({ run, step }: ShownRun, caller: Caller) => {
    if (step === null) return [];
    const commands = (await measures.ofSteps([step])).map(({ command }) => command);
    const manifest = await readManifestOf(step, { caller, run, manifests, deps });
    return manifest === undefined ? commands : commands.map((command) => withDependencies(command, manifest));
  };
  router.get('/runs/:runId/timeline.json', authorize('runs:read'), async (request, response) => {
    const shown = await shownRun(request, response, deps);
    const caller = callerOf(response);
    const commands = await withPermit(permits, response, () => commandsOf(shown, caller), tooMany);
    const grouping = LANE_GROUPINGS.find((one) => one === request.query.by) ?? 'thread';
    const [document = EMPTY] = commands.flatMap((command) => timelineDocument(command, grouping) ?? []);
    response.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }).json(document);
  });
  router.get('/runs/:runId/timeline', authorize('runs:read'), async (request, response) => {
    const caller = callerOf(response);
    const shown = await shownRun(request, response, deps);
    const redactor = textRedactor(caller, deps.redaction);
    const commands = await withPermit(permits, response, () => commandsOf(shown, caller), tooMany);
    const shell = { shown, caller, redactor, version, nowUnixMs: clock.nowUnixMs() };
    await sendPage(
      response,
      <RunShell {...shell} tab="/timeline" scripts={['timeline.js']}>
        {commands.map((command) => (
          <Pace command={command} />
        ))}
        <Drawing shown={shown} />
        {commands.map(({ criticalPath, totals: { lengthNano } }, at) => (
          <CriticalPathTable
            path={criticalPath}
            lengthNano={lengthNano}
            limit={MAX_STEPS}
            id={`critical-path-${at + 1}`}
          />
        ))}
        <Slowest commands={commands} runId={shown.run.id} />
      </RunShell>,
    );
  });
  return router;
}

/** What the command is compared by, and how many nodes were worked on at a time. */
function Pace({ command }: { readonly command: CommandMeasures }) {
  const pace = paceOf(command);
  return (
    <>
      <PaceFacts pace={pace} />
      {pace.concurrency !== null && <ConcurrencyChart concurrency={pace.concurrency} />}
    </>
  );
}

function Drawing({ shown: { run, step } }: { readonly shown: ShownRun }) {
  return (
    <>
      <noscript>
        <p class="hint">The drawing needs JavaScript; the slowest nodes stand below, all of them under Nodes.</p>
      </noscript>
      <section id="timeline" aria-label="Timeline" hidden>
        <div class="filter">
          <label class="wide">
            Find a node <input type="search" id="timeline-search" maxlength={200} />
          </label>
          <label>
            Lanes{' '}
            <select id="timeline-by">
              {LANE_GROUPINGS.map((one) => (
                <option value={one}>{one === 'thread' ? 'by thread' : `grouped by ${one}`}</option>
              ))}
            </select>
          </label>
          <button type="button" data-key="n">
            Next failure
          </button>
          <button type="button" data-key="+">
            Zoom in
          </button>
          <button type="button" data-key="-">
            Zoom out
          </button>
          <button type="button" data-key="0">
            All
          </button>
        </div>
        <div class="timeline">
          <canvas
            tabindex={0}
            aria-label="Phases and nodes over time. Arrow keys go from node to node, N to the next failure, Enter opens one, plus and minus zoom."
            aria-describedby="timeline-status"
            data-timeline={`/runs/${run.id}/timeline.json?step=${step?.index ?? 1}`}
            data-node={`/runs/${run.id}/nodes?step=${step?.index ?? 1}&node=`}
          />
          <p id="timeline-tip" aria-hidden="true" hidden />
        </div>
        <p class="hint">
          Bars: at work, without waits; below them their queries. Outlined: on the critical path. What was worked on at
          once stands in different lanes, since the engine does not tell threads. Drag to move, drag across the times
          above to zoom (or Ctrl and the wheel), arrow keys from node to node, N to the next failure, Enter to open one.
        </p>
      </section>
      <p id="timeline-status" role="status" class="name strong" />
    </>
  );
}

function Slowest({ commands, runId }: { readonly commands: readonly CommandMeasures[]; readonly runId: number }) {
  const nodes = slowestNodes(
    commands.flatMap((command) => command.nodes),
    MAX_SLOWEST,
  );
  if (nodes.length === 0) return <p class="empty">No node ran in this step.</p>;
  const critical = new Set(commands.flatMap(({ criticalPath }) => criticalPath.links.map(({ step }) => step.uniqueId)));
  const lengthNano = commands.reduce((sum, { totals }) => sum + totals.lengthNano, 0n);
  return <SlowestNodes {...{ nodes, lengthNano, runId, critical }} />;
}

const EMPTY = { lengthMs: 0, omittedCount: 0, phases: [], nodes: [], groups: [] };

const MOODS: Readonly<Record<string, 'good' | 'bad' | 'busy'>> = {
  success: 'good',
  warned: 'busy',
  failed: 'bad',
  error: 'bad',
};

/** A command in the data of the script. Times are milliseconds since its start, in hundredths. */
function timelineDocument(command: CommandMeasures, grouping: LaneGrouping) {
  const timeline = timelineOf(command, MAX_NODES, grouping);
  if (timeline === null) return null;
  const { start: origin, end: until, phaseRows, groups, nodes, omittedCount, critical } = timeline;
  const ms = (nano: bigint) => Math.round(Number(nano - origin) / 1e4) / 100;
  const queries = queriesByNode(command);
  const positions = new Map(nodes.map((node, at) => [node, at]));
  /** For each piece the position of its node, its start and its end. */
  const numbers = (pieces: readonly TimelinePiece[]) =>
    pieces.flatMap(({ node, start, end }) => [positions.get(node) ?? 0, ms(start), ms(end)]);
  return {
    lengthMs: ms(until),
    omittedCount,
    phases: phaseRows.map((row) =>
      row.map(({ phase, start, end }) => ({
        name: visibleText(cut(phaseWords(phase.phase), MAX_NAME)),
        start: ms(start),
        end: ms(end),
      })),
    ),
    nodes: nodes.map((node) => ({
      id: cut(node.uniqueId, MAX_NAME),
      name: visibleText(cut(labelOf(node), MAX_NAME)),
      verdict: node.verdict,
      mood: MOODS[node.verdict] ?? 'neutral',
      isCritical: critical.has(node.uniqueId),
      queries: queries.get(node.uniqueId) ?? [],
    })),
    groups: groups.map(({ name, lanes, crowds }) => ({
      name: visibleText(cut(name, MAX_NAME)),
      lanes: lanes.map(numbers),
      crowds: crowds.map(({ start, end, slices }) => ({ start: ms(start), end: ms(end), pieces: numbers(slices) })),
    })),
  };
}

/** Returns the starts and ends of nodes' queries, in milliseconds since the command's start. */
function queriesByNode({ queryTimes }: CommandMeasures): ReadonlyMap<string, readonly number[]> {
  const { uniqueIds, nodes, startsMs, endsMs } = queryTimes;
  const found = new Map<string, number[]>();
  for (let at = 0; at < Math.min(nodes.length, MAX_QUERIES); at += 1) {
    const uniqueId = uniqueIds[nodes[at] ?? 0] ?? '';
    const known = found.get(uniqueId);
    const times = [startsMs[at] ?? 0, endsMs[at] ?? 0].map((ms) => Math.round(ms * 100) / 100);
    if (known === undefined) found.set(uniqueId, times);
    else known.push(...times);
  }
  return found;
}
