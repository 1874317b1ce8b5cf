import type { MetricName } from '../src/metric/samples.js';

/** A panel: its title is the question that it answers. */
interface Panel {
  readonly title: string;
  readonly type: 'stat' | 'table' | 'timeseries' | 'bargauge';
  /** Columns of the 24 that a dashboard has, and rows of 30 pixels. */
  readonly size: readonly [width: number, height: number];
  readonly queries: readonly Query[];
  /** https://grafana.com/docs/grafana/latest/panels-visualizations/configure-standard-options: `s`, `bytes`, `percentunit`, `none`. */
  readonly unit: string;
  /** Columns of a table from left to right, by their labels, and the letter of their query for values. */
  readonly columns?: readonly Column[];
  /** The title of the column by which a table is sorted, the largest first. */
  readonly sortBy?: string;
  /** From where a value is red. */
  readonly redFrom?: number;
  readonly links?: readonly Link[];
}

interface Query {
  readonly expr: string;
  readonly legend?: string;
  /** Shows traces of single runs beside the values of a histogram. */
  readonly hasExemplars?: boolean;
}

/** A column of a table. */
export interface Column {
  readonly field: string;
  readonly title: string;
  readonly unit?: string;
  readonly links?: readonly Link[];
}

/** Where a value leads to; `${…}` are variables of Grafana. */
export interface Link {
  readonly title: string;
  readonly url: string;
}

/** What is chosen at the top of a dashboard: a value of a label. */
export interface Variable {
  readonly name: string;
  readonly title: string;
  readonly metric: MetricName;
  readonly label: string;
  readonly isMulti: boolean;
}

/** A dashboard: a few panels below each other. */
export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly from: string;
  readonly variables: readonly Variable[];
  readonly panels: readonly Panel[];
}

/** The variable with the address of the pages. */
export const PAGES = `\${bridge}`;

const SOURCE = { type: 'prometheus', uid: 'prometheus' };
const LEGEND = { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] };
const LAST_VALUE = { calcs: ['lastNotNull'], fields: '', values: false };

const OPTIONS: Readonly<Record<Exclude<Panel['type'], 'table'>, object>> = {
  stat: {
    ...{ colorMode: 'value', graphMode: 'none', justifyMode: 'auto', orientation: 'auto', wideLayout: true },
    ...{ textMode: 'auto', showPercentChange: false, percentChangeColorMode: 'standard', reduceOptions: LAST_VALUE },
  },
  timeseries: { legend: LEGEND, tooltip: { mode: 'multi', sort: 'desc' } },
  bargauge: {
    ...{ displayMode: 'basic', valueMode: 'color', namePlacement: 'left', showUnfilled: true, sizing: 'auto' },
    ...{ minVizWidth: 8, minVizHeight: 16, maxVizHeight: 40, orientation: 'horizontal', legend: LEGEND },
    reduceOptions: LAST_VALUE,
  },
};

/** Writes a dashboard in Grafana's model: https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model. */
export function documentOf({ uid, title, description, from, variables: asked, panels }: Dashboard) {
  return {
    ...{ uid, title, description, tags: ['run-bridge'], schemaVersion: 42, version: 1, editable: true },
    ...{ timezone: 'browser', refresh: '30s', time: { from, to: 'now' }, graphTooltip: 1 },
    annotations: { list: [] },
    templating: { list: [bridgeVariable(), ...asked.map(variableOf)] },
    links: [
      linkOf({ title: 'Dashboards', url: '' }, { type: 'dashboards', tags: ['run-bridge'], asDropdown: false }),
      linkOf({ title: 'Pages of run-bridge', url: PAGES }, { targetBlank: true }),
    ],
    panels: placed(panels).map(([panel, gridPos], index) => panelOf(panel, index + 1, gridPos)),
  };
}

/** Where the pages are; to be changed here where others reach them elsewhere. */
function bridgeVariable() {
  const url = 'http://127.0.0.1:4380';
  const current = { selected: false, text: url, value: url };
  return { ...{ type: 'constant', name: 'bridge', label: 'Pages of run-bridge', hide: 2 }, query: url, current };
}

function variableOf({ name, title, metric, label, isMulti }: Variable) {
  return {
    ...{ type: 'query', name, label: title, hide: 0, datasource: SOURCE, refresh: 2, sort: 1 },
    query: { query: `label_values(${metric}, ${label})`, refId: name },
    ...(isMulti
      ? {
          ...{ multi: true, includeAll: true, allValue: '.+' },
          current: { selected: true, text: ['All'], value: ['$__all'] },
        }
      : { multi: false, includeAll: false }),
  };
}

function linkOf({ title, url }: Link, more: object) {
  return {
    ...{ title, url, type: 'link', icon: 'external link', tooltip: '', tags: [] },
    ...{ asDropdown: false, targetBlank: false, includeVars: false, keepTime: false, ...more },
  };
}

interface GridPosition {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** Puts panels side by side, as far as a row of 24 has room. */
function placed(panels: readonly Panel[]): readonly (readonly [Panel, GridPosition])[] {
  let x = 0;
  let y = 0;
  let rowHeight = 0;
  return panels.map((panel) => {
    const [w, h] = panel.size;
    if (x + w > 24) {
      y += rowHeight;
      x = 0;
      rowHeight = 0;
    }
    const position = { x, y, w, h };
    x += w;
    rowHeight = Math.max(rowHeight, h);
    return [panel, position];
  });
}

function panelOf(panel: Panel, id: number, gridPos: GridPosition) {
  const { title, type, queries, unit, columns = [], redFrom, links = [] } = panel;
  const isTable = type === 'table';
  return {
    ...{ id, type, title, gridPos, datasource: SOURCE },
    targets: queries.map(({ expr, legend, hasExemplars = false }, index) => ({
      ...{ refId: String.fromCharCode(65 + index), datasource: SOURCE, expr, editorMode: 'code' },
      ...{
        format: isTable ? 'table' : 'time_series',
        instant: isTable || type === 'stat',
        range: !isTable && type !== 'stat',
      },
      ...(legend !== undefined && { legendFormat: legend }),
      ...(hasExemplars && { exemplar: true }),
    })),
    fieldConfig: {
      defaults: {
        unit,
        ...(links.length > 0 && { links: links.map((link) => linkOf(link, { targetBlank: true })) }),
        ...(type === 'timeseries' && {
          custom: { lineInterpolation: 'stepAfter', fillOpacity: 10, showPoints: 'auto' },
        }),
        thresholds: {
          mode: 'absolute',
          steps: [
            { value: null, color: 'green' },
            ...(redFrom === undefined ? [] : [{ value: redFrom, color: 'red' }]),
          ],
        },
      },
      overrides: columns.map(({ field, title: displayName, unit: ownUnit, links: ownLinks }) => ({
        matcher: { id: 'byName', options: field },
        properties: [
          { id: 'displayName', value: displayName },
          ...(ownUnit === undefined ? [] : [{ id: 'unit', value: ownUnit }]),
          ...(ownLinks === undefined ? [] : [{ id: 'links', value: ownLinks.map((one) => linkOf(one, {})) }]),
        ],
      })),
    },
    ...(isTable
      ? { options: tableOptions(panel), transformations: columnsOf(columns, queries.length > 1) }
      : { options: OPTIONS[type] }),
  };
}

function tableOptions({ sortBy }: Panel) {
  return {
    ...{ frameIndex: 0, showHeader: true, cellHeight: 'sm' },
    ...(sortBy !== undefined && { sortBy: [{ displayName: sortBy, desc: true }] }),
  };
}

/** Joins the answers of several queries by their labels, and keeps the columns in their order. */
function columnsOf(columns: readonly Column[], isJoined: boolean) {
  const names = columns.map(({ field }) => field);
  return [
    ...(isJoined ? [{ id: 'merge', options: {} }] : []),
    { id: 'filterFieldsByName', options: { include: { names } } },
    { id: 'organize', options: { indexByName: Object.fromEntries(names.map((name, index) => [name, index])) } },
  ];
}
