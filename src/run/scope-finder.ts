import { MAX_SCOPE_NAME_LENGTH, type Resource, SCOPE_ATTRIBUTES } from '../record/attributes.js';
import type { RunScope } from '../storage/scope-store.js';
import { DEFAULT_JOB } from '../storage/steps.js';

/** The properties of an invocation that rules match. */
export interface ScopedCommand {
  /** The command line; `null` until known. */
  readonly rawCommand: string | null;
  readonly resource: Resource;
}

/**
 * Finds the job, environment and project of an invocation without a name: from its resource
 * (`run_bridge.job`, `run_bridge.environment`, `run_bridge.project`), else the first declared one whose rule matches, else
 * the job `adhoc`.
 */
export class ScopeFinder {
  constructor(private readonly declared: DeclaredScopes) {}

  scopeOf(command: ScopedCommand): RunScope {
    const { jobs, environments, projects } = this.declared;
    const attribute = (name: string) => nameIn(command.resource, name);
    const job = attribute(SCOPE_ATTRIBUTES.job) ?? first(jobs, command)?.name ?? DEFAULT_JOB;
    const declared = jobs.find(({ name }) => name === job);
    const environment =
      attribute(SCOPE_ATTRIBUTES.environment) ?? declared?.environment ?? first(environments, command)?.name ?? null;
    const ofEnvironment = environments.find(({ name }) => name === environment)?.project;
    const project =
      attribute(SCOPE_ATTRIBUTES.project) ??
      declared?.project ??
      ofEnvironment ??
      first(projects, command)?.name ??
      null;
    return { job, environment, project };
  }
}

function nameIn({ attributes }: Resource, name: string): string | undefined {
  const value = attributes[name];
  const text = typeof value === 'string' ? value.trim().slice(0, MAX_SCOPE_NAME_LENGTH) : '';
  return text === '' ? undefined : text;
}

function first<Scope extends DeclaredScope>(scopes: readonly Scope[], command: ScopedCommand): Scope | undefined {
  return scopes.find(({ match }) => match.some((rule) => isMatch(rule, command)));
}

function isMatch({ command, target, resource }: MatchRule, { rawCommand, resource: { attributes } }: ScopedCommand) {
  if (command !== undefined && !matches(command, rawCommand)) return false;
  if (target !== undefined && !matches(target, targetIn(rawCommand))) return false;
  return Object.entries(resource ?? {}).every(([name, pattern]) => {
    const value = attributes[name];
    return value !== undefined && matches(pattern, String(value));
  });
}

/** By hand, without backtracking: a pattern with many stars on a long command line costs no more than one with few. */
function matches(pattern: string, text: string | null): boolean {
  if (text === null) return false;
  const parts = pattern.split('*');
  const head = parts[0] ?? '';
  if (parts.length === 1) return text === pattern;
  const tail = parts.at(-1) ?? '';
  if (!text.startsWith(head) || text.length < head.length + tail.length || !text.endsWith(tail)) return false;
  let at = head.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > text.length - tail.length) return false;
    at = found + part.length;
  }
  return true;
}

/** Returns the engine's `--target NAME`, `--target=NAME` or `-t NAME`. */
function targetIn(rawCommand: string | null): string | null {
  return /(?:^|\s)(?:--target[=\s]|-t\s)\s*["']?([^\s"']+)/.exec(rawCommand ?? '')?.[1] ?? null;
}

/** Selects invocations: all given patterns must match. `*` matches any text. */
export interface MatchRule {
  /** Matches the whole command line, for example `dbt build*`. */
  readonly command?: string | undefined;
  /** Matches the value of `--target`. */
  readonly target?: string | undefined;
  /** Resource attributes by name. */
  readonly resource?: Readonly<Record<string, string>> | undefined;
}

/** A job, environment or project that the configuration declares. */
export interface DeclaredScope {
  readonly name: string;
  /** Its id, if configured. */
  readonly id: number | null;
  /** An invocation that one of these matches belongs to it. */
  readonly match: readonly MatchRule[];
}

/** A declared job also names the environment and project of its runs; `null` if not configured. */
export interface DeclaredJob extends DeclaredScope {
  readonly environment: string | null;
  readonly project: string | null;
}

/** A declared environment names its project. */
export interface DeclaredEnvironment extends DeclaredScope {
  readonly project: string | null;
}

/** Everything that the configuration declares of them, in its order: the first that matches counts. */
export interface DeclaredScopes {
  readonly jobs: readonly DeclaredJob[];
  readonly environments: readonly DeclaredEnvironment[];
  readonly projects: readonly DeclaredScope[];
}
