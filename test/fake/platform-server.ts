import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { SAMPLES } from './sample-run.js';

/** A step of a hosted run, and the file that it left. */
export interface HostedStep {
  readonly name?: string;
  readonly status?: number;
  /** A sample's Parquet by the sample's name, or bytes; none where it is left out. */
  readonly telemetry?: string | Uint8Array;
}

/** A hosted run. */
export interface HostedRun {
  readonly id: number;
  readonly jobId?: number;
  readonly status?: number;
  readonly createdAt?: string;
  readonly steps?: readonly HostedStep[];
  readonly artifactsSaved?: boolean;
  readonly finishedAt?: string;
}

/** What the server does in place of its answer. */
export type Fault =
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      /** The envelope's message where it is left out. */
      readonly body?: string;
    }
  /** Closes the connection in the middle of the body. */
  | { readonly cutOff: true }
  /** Takes the request and never answers. */
  | { readonly silent: true };

/** One request that came in. */
export interface AskedRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
}

const RUN_PATH = /^\/runs\/(\d+)\/$/;
const LIST_PATH = /^\/runs\/(\d+)\/artifacts\/$/;
const TELEMETRY_PATH = /^\/runs\/(\d+)\/artifacts\/metadata\/telemetry-(\d+)-otel\.parquet\/$/;

/**
 * A real HTTP server that answers as a hosted platform's v2 API does, with one account, and real Parquet of the samples.
 * What it is asked is kept; `fault` may answer in its place.
 */
export class PlatformServer {
  readonly requests: AskedRequest[] = [];
  runs: HostedRun[] = [];
  token = 'secret-token';
  accountId = 70_471_823;
  /** What lists of runs say that there are altogether, in place of the truth. */
  totalCount: number | undefined;
  /** Whether lists heed the time that is asked for; a server may ignore parameters that it does not know. */
  filtersTime = true;
  fault: (request: AskedRequest) => Fault | undefined = () => undefined;

  static async listen(): Promise<PlatformServer> {
    const server = http.createServer();
    const platform = new PlatformServer(server);
    server.on('request', (request, response) => platform.take(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return platform;
  }

  private constructor(private readonly server: http.Server) {}

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** Paths that were asked for, below the account. */
  get paths(): readonly string[] {
    return this.requests.map(({ path }) => path);
  }

  private take(request: http.IncomingMessage, response: http.ServerResponse): void {
    const url = new URL(request.url ?? '/', this.url);
    const path = url.pathname.replace(`/api/v2/accounts/${this.accountId}`, '').replace(/\/?$/, '/');
    const asked = { path, query: url.searchParams, authorization: request.headers.authorization };
    this.requests.push(asked);
    const fault = this.fault(asked);
    if (fault === undefined) this.answer(asked, response);
    else if ('cutOff' in fault) cutOff(this.telemetryOf(path) ?? Buffer.from('{"status":'), response);
    else if ('status' in fault) {
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      response.end(fault.body ?? JSON.stringify(envelope(fault.status, null, 'asked to fail')));
    }
  }

  private answer({ path, query, authorization }: AskedRequest, response: http.ServerResponse): void {
    const run = this.find(RUN_PATH.exec(path)?.[1]);
    const listed = this.find(LIST_PATH.exec(path)?.[1]);
    const telemetry = this.telemetryOf(path);
    if (authorization !== `Token ${this.token}`) send(response, 401, null, 'Invalid token.');
    else if (path === '/') send(response, 200, { id: this.accountId, name: 'Example' });
    else if (path === '/runs/') this.sendList(query, response);
    else if (run !== undefined) send(response, 200, this.runJson(run, query.get('include_related') ?? ''));
    else if (listed !== undefined) send(response, 200, artifactsOf(listed));
    else if (telemetry === undefined) send(response, 404, null, 'Not found.');
    else {
      response.writeHead(200, { 'content-type': 'application/x-parquet', 'content-length': telemetry.byteLength });
      response.end(telemetry);
    }
  }

  private find(id: string | undefined): HostedRun | undefined {
    return this.runs.find((run) => String(run.id) === id);
  }

  private sendList(query: URLSearchParams, response: http.ServerResponse): void {
    const limit = Math.min(100, Number(query.get('limit') ?? 100));
    const offset = Number(query.get('offset') ?? 0);
    const jobId = query.get('job_definition_id');
    const [from, to] = JSON.parse(query.get('created_at__range') ?? '["1970-01-01","9999-01-01"]') as [string, string];
    const found = this.runs
      .filter((run) => jobId === null || String(run.jobId ?? 1) === jobId)
      .filter((run) => !this.filtersTime || isBetween(createdAt(run), from, to))
      .toSorted((a, b) => a.id - b.id);
    const data = found.slice(offset, offset + limit).map((run) => this.runJson(run, ''));
    const total_count = this.totalCount ?? found.length;
    const extra = {
      filters: { limit, offset },
      order_by: 'id',
      pagination: { count: data.length, total_count },
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ...envelope(200, data, 'Success!'), extra }));
  }

  private runJson(run: HostedRun, related: string): Readonly<Record<string, unknown>> {
    const { id, jobId = 1, status = 10, steps = [] } = run;
    const isComplete = status >= 10;
    const created = createdAt(run);
    return {
      id,
      account_id: this.accountId,
      project_id: 300,
      environment_id: 200,
      job_definition_id: jobId,
      job_id: jobId,
      status,
      status_humanized: { 3: 'Running', 10: 'Success', 20: 'Error', 30: 'Cancelled' }[status] ?? 'Queued',
      status_message: null,
      is_complete: isComplete,
      is_success: status === 10,
      artifacts_saved: run.artifactsSaved ?? isComplete,
      git_sha: '0123456789abcdef0123456789abcdef01234567',
      git_branch: 'main',
      href: `${this.url}/deploy/${this.accountId}/projects/300/runs/${id}/`,
      created_at: created,
      started_at: created,
      finished_at: isComplete ? (run.finishedAt ?? created) : null,
      duration: '00:01:50',
      job: related.includes('job') ? { id: jobId, name: `job ${jobId}` } : null,
      environment: related.includes('environment') ? { id: 200, name: 'Production' } : null,
      trigger: related.includes('trigger') ? { id: 1, cause: 'scheduled' } : null,
      run_steps: related.includes('run_steps') ? steps.map((step, at) => stepJson(run, step, at + 1)) : [],
    };
  }

  private telemetryOf(path: string): Buffer | undefined {
    const [, id, index] = TELEMETRY_PATH.exec(path) ?? [];
    const telemetry = this.find(id)?.steps?.[Number(index) - 1]?.telemetry;
    if (typeof telemetry === 'string') return readFileSync(join(SAMPLES, telemetry, 'otel.parquet'));
    return telemetry && Buffer.from(telemetry);
  }
}

function createdAt({ createdAt: text }: HostedRun): string {
  return text ?? '2026-01-02 10:32:24.326116+00:00';
}

function isBetween(created: string, from: string, to: string): boolean {
  const unixMs = Date.parse(created.replace(' ', 'T'));
  return unixMs >= Date.parse(from) && unixMs <= Date.parse(to);
}

function stepJson(run: HostedRun, step: HostedStep, index: number): Readonly<Record<string, unknown>> {
  return {
    id: run.id * 100 + index,
    run_id: run.id,
    index,
    status: step.status ?? 10,
    name: step.name ?? 'Invoke dbt with `dbt build`',
    logs: 'many lines',
    debug_logs: '',
    started_at: createdAt(run),
    finished_at: createdAt(run),
    status_humanized: 'Success',
  };
}

function artifactsOf({ steps = [] }: HostedRun): readonly string[] | null {
  return (steps.at(-1)?.telemetry ?? null) === null ? null : [`metadata/telemetry-${steps.length}-otel.parquet`];
}

function envelope(code: number, data: unknown, message: string): Readonly<Record<string, unknown>> {
  const is_success = code < 400;
  return { status: { code, is_success, user_message: message, developer_message: is_success ? '' : null }, data };
}

function send(response: http.ServerResponse, code: number, data: unknown, message = 'Success!'): void {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify(envelope(code, data, message)));
}

function cutOff(body: Buffer, response: http.ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/x-parquet', 'content-length': body.byteLength * 2 });
  response.write(body, () => response.destroy());
}
