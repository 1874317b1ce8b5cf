import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { buildPeer, PeerProcess, peersFolder } from '../tool/peer-process.js';
import { sendSample } from '../tool/send-sample.js';
import { subscribe } from '../tool/subscribe.js';
import { until } from '../tool/until.js';

const PORT = 19_090;
const JAEGER_PORT = 14_338;
const ALERTS = 'deploy/prometheus/alerts.yaml';
const DASHBOARDS = 'deploy/grafana/dashboards';
/** A job whose name is no regular expression that matches it. */
const JOB = 'CI (main)';

/** A dashboard, as far as it is read here. */
interface Dashboard {
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly multi?: boolean;
      readonly query: string | { readonly query: string };
    }[];
  };
  readonly panels: readonly {
    readonly title: string;
    readonly type: string;
    readonly targets: readonly { readonly expr: string; readonly exemplar?: boolean }[];
  }[];
}

interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [unixSeconds: number, text: string];
}

/** Asks Prometheus' API. @param path with its query, below `/api/v1` */
async function ask<Data>(path: string): Promise<Data> {
  const answer = (await (await fetch(`http://127.0.0.1:${PORT}/api/v1${path}`)).json()) as { readonly data: Data };
  return answer.data;
}

/** Returns the trace ids of a metric's exemplars, the latest last. */
async function tracesOf(expression: string): Promise<readonly string[]> {
  const path = `/query_exemplars?query=${encodeURIComponent(expression)}&start=0&end=${Date.now() / 1_000}`;
  const found =
    await ask<readonly { readonly exemplars: readonly { readonly labels: { readonly trace_id: string } }[] }[]>(path);
  return found.flatMap((series) => series.exemplars.map(({ labels }) => labels.trace_id));
}

const query = async (expression: string) =>
  (await ask<{ readonly result: readonly Series[] }>(`/query?query=${encodeURIComponent(expression)}`)).result;

beforeAll(() => {
  buildPeer('prometheus');
  buildPeer('jaeger');
});

it('takes the rules of alerts, which fire as they should, and the configuration of Compose that names them', () => {
  const promtool = (...args: readonly string[]) =>
    execFileSync(join(peersFolder(), 'bin', 'promtool'), args, { encoding: 'utf8' });
  expect(promtool('check', 'rules', ALERTS)).toContain('SUCCESS');
  expect(promtool('test', 'rules', 'test/peers/conf/alerts.yaml')).toContain('SUCCESS');
  expect(promtool('check', 'config', 'deploy/prometheus/prometheus.yaml')).toContain('SUCCESS');
});

describe('Prometheus, of real runs', () => {
  const PAGES = 'http://localhost:4380';
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-prometheus-'));
  const adminToken = () => readFileSync(join(bridge.dataFolder, 'admin-token'), 'utf8').trim();
  let bridge: BridgeProcess;
  let prometheus: PeerProcess;
  let jaeger: PeerProcess;

  beforeAll(async () => {
    jaeger = await PeerProcess.start('jaeger', 'test/tool/peers/conf/jaeger.yaml', JAEGER_PORT, {
      OTLP_HTTP_PORT: String(JAEGER_PORT),
      OTLP_GRPC_PORT: '14337',
    });
    bridge = await BridgeProcess.start({
      args: ['--node-metrics', '20', '--public-url', PAGES],
      env: {
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${JAEGER_PORT}/v1/traces`,
        OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `http://127.0.0.1:${PORT}/api/v1/otlp/v1/metrics`,
        OTEL_METRIC_EXPORT_INTERVAL: '500',
      },
    });
    const endpoint = `${bridge.otlpUrl}/job/${encodeURIComponent(JOB)}`;
    await sendSample(endpoint, 'build-clean');
    await sendSample(endpoint, 'fail-fast');
    await bridge.finished(sampleTraceId('fail-fast'));
    cpSync(ALERTS, join(folder, 'alerts.yaml'));
    await subscribe(bridge, adminToken(), 'chat', 'https://chat.example.com/hook');
    await fetch(`${bridge.otlpUrl}/v1/traces`, { method: 'POST', body: 'no telemetry' });
    const configuration = parse(readFileSync('deploy/prometheus/prometheus.yaml', 'utf8').replaceAll('15s', '1s'));
    // There is one bridge, which has no name here.
    const [{ job_name }] = configuration.scrape_configs;
    configuration.scrape_configs = [{ job_name, static_configs: [{ targets: [new URL(bridge.webUrl).host] }] }];
    writeFileSync(join(folder, 'prometheus.yaml'), stringify(configuration));
    const args = [
      `--config.file=${join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${PORT}`,
      '--enable-feature=exemplar-storage',
      '--web.enable-otlp-receiver',
    ];
    prometheus = await PeerProcess.startWith('prometheus', args, PORT, {});
    await until('Prometheus', async () => (await fetch(`http://127.0.0.1:${PORT}/-/ready`)).ok);
  });
  afterAll(async () => {
    await prometheus?.stop();
    await bridge?.remove();
    await jaeger?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('has how they ended and how long they took, with a trace to look at', async () => {
    const counts = await until('both runs', async () => {
      const found = await query('cicd_pipeline_run_duration_seconds_count{job="run-bridge"}');
      return found.length === 2 && found;
    });
    expect(Object.fromEntries(counts.map(({ metric, value }) => [metric.cicd_pipeline_result, value[1]]))).toEqual({
      success: '1',
      failure: '1',
    });
    const p95 = 'histogram_quantile(0.95, sum by (le) (cicd_pipeline_run_duration_seconds_bucket{job="run-bridge"}))';
    expect(Number((await query(p95))[0]?.value[1])).toBeGreaterThan(0);
    const exemplars = await until('a trace for each', async () => {
      const traces = await tracesOf('cicd_pipeline_run_duration_seconds_bucket');
      return traces.length > 0 && traces;
    });
    expect([sampleTraceId('build-clean'), sampleTraceId('fail-fast')]).toContain(exemplars[0]);
  });

  it('fires for a run that failed and its failing test, and for nothing else', async () => {
    const alerts = await until('two alerts', async () => {
      const { alerts: all } = await ask<{
        readonly alerts: readonly {
          readonly state: string;
          readonly labels: { readonly alertname: string };
          readonly annotations: { readonly summary: string };
        }[];
      }>('/alerts');
      // Before the first scrape there seems to be no bridge.
      const isSettled = all.every(({ state }) => state === 'firing');
      return isSettled && new Set(all.map(({ labels }) => labels.alertname)).size > 1 && all;
    });
    // Of what was pushed, too, where both have come.
    expect([...new Set(alerts.map(({ labels }) => labels.alertname))].toSorted()).toEqual([
      'RunFailed',
      'TestsFailing',
    ]);
    expect(alerts.map(({ annotations }) => annotations.summary)).toContain(`the last run of ${JOB} failed`);
  });

  it.each(readdirSync(DASHBOARDS))('answers every query of %s', async (name) => {
    const { templating, panels }: Dashboard = JSON.parse(readFileSync(join(DASHBOARDS, name), 'utf8'));
    const chosen = new Map<string, string>();
    for (const { name: variable, multi, query: asked } of templating.list) {
      if (typeof asked === 'string') continue;
      const [, metric, label] = /^label_values\((\w+), (\w+)\)$/.exec(asked.query) ?? [];
      const values = await ask<readonly string[]>(`/label/${label}/values?match[]=${metric}`);
      expect(values).toHaveLength(1);
      // Grafana leaves a name as it is where only one can be chosen.
      chosen.set(variable, multi === true ? '.+' : String(values[0]));
    }
    for (const { title, type, targets } of panels) {
      const answers: (readonly Series[])[] = [];
      for (const { expr, exemplar } of targets) {
        const expression = expr
          .replaceAll('$__rate_interval', '1m')
          .replaceAll(/\$(\w+)/g, (_, variable: string) => String(chosen.get(variable)));
        // What only several processes have is understood, and not there.
        if (title.includes('(several processes)')) expect(await query(expression)).toEqual([]);
        else {
          const found = await until(`${title}: ${expression}`, async () => {
            const series = await query(expression);
            return series.length > 0 && series;
          });
          answers.push(found);
        }
        const [, buckets] = /^histogram_quantile\([\d.]+, (.+)\)$/.exec(expression) ?? [];
        // Of the run that succeeded and of the one that failed.
        if (buckets !== undefined) {
          const counts = (await query(buckets)).map(({ value }) => Number(value[1]));
          expect(Math.max(...counts)).toBe(2);
        }
        if (exemplar === true) expect(await tracesOf(expression)).toContain(sampleTraceId('fail-fast'));
      }
      // Rows of a table are joined by their labels.
      if (type !== 'table') continue;
      const rows = answers.map((series) => series.map(({ metric: { __name__, ...labels } }) => JSON.stringify(labels)));
      for (const one of rows) expect(one.toSorted()).toEqual(rows[0]?.toSorted());
    }
  });

  it('leads from a run that failed to its page, from its trace as well, and from there to the page again', async () => {
    const [failed] = await until('the number', () =>
      query('run_bridge_run_last_id{job="run-bridge", instance=~"127.*", cicd_pipeline_result="failure"}'),
    );
    const page = async (path: string) => {
      const headers = { accept: 'text/html', authorization: `Token ${adminToken()}` };
      const { status, url } = await fetch(`${bridge.webUrl}${path}`, { headers });
      return [status, new URL(url).pathname];
    };
    const path = `/runs/${failed?.value[1]}`;
    expect(await page(path)).toEqual([200, path]);
    expect(await page(`/runs/by-trace/${sampleTraceId('fail-fast')}`)).toEqual([200, path]);
    const trace = await until('the trace in Jaeger', async () => {
      const response = await fetch(`http://127.0.0.1:16686/api/traces/${sampleTraceId('fail-fast')}`);
      return response.ok && (await response.text());
    });
    expect(trace).toContain(`"${PAGES}${path}"`);
  });

  it('gets the same by OTLP', async () => {
    const pushed = await until('what was pushed', async () => {
      const found = await query(
        '{__name__=~"cicd_pipeline_run_duration_seconds_count", job="run-bridge", instance!~"127.*"}',
      );
      return found.length === 2 && found;
    });
    expect(pushed.map(({ metric, value }) => [metric.cicd_pipeline_name, value[1]])).toEqual([
      [JOB, '1'],
      [JOB, '1'],
    ]);
  });
});
