import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { ConfigurationError } from './configuration-error.js';

/** The process's environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A configuration file that was found and is YAML. */
export interface ConfigurationFile {
  readonly path: string;
  /** What it holds, `${env:NAME}` filled in; not checked any further. */
  readonly content: unknown;
  /** `path:line` of a key or value in it. */
  locate(keys: readonly PropertyKey[]): string;
}

/** Where to look for the file. */
export interface FileSearch {
  /** From `--config`. */
  readonly flag: string | undefined;
  readonly environment: Environment;
  readonly workingDir: string;
  readonly homeDir: string;
}

const FILE_NAME = 'run-bridge.yaml';

/**
 * The first of `--config`, RUN_BRIDGE_CONFIG, `./run-bridge.yaml` and `$XDG_CONFIG_HOME/run-bridge/run-bridge.yaml`;
 * `undefined` when neither is named and none of the two is there.
 * @throws ConfigurationError when a named file cannot be read, or one is not YAML.
 */
export function findConfigurationFile(search: FileSearch): ConfigurationFile | undefined {
  const { environment, workingDir, homeDir } = search;
  const named = search.flag ?? nonEmpty(environment.RUN_BRIDGE_CONFIG);
  const configHome = nonEmpty(environment.XDG_CONFIG_HOME) ?? join(homeDir, '.config');
  const candidates = [named ?? FILE_NAME, ...(named === undefined ? [join(configHome, 'run-bridge', FILE_NAME)] : [])];
  for (const candidate of candidates) {
    const path = resolve(workingDir, candidate);
    const text = readIfThere(path, named !== undefined);
    if (text !== undefined) return parseConfigurationFile(path, text, environment);
  }
  return undefined;
}

/** @throws ConfigurationError when the text is not YAML, or names an environment variable that is not set. */
export function parseConfigurationFile(path: string, text: string, environment: Environment): ConfigurationFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const lineOf = (offset: number) => `${path}:${lines.linePos(offset).line}`;
  if (document.errors.length > 0) {
    throw new ConfigurationError(document.errors.map((error) => `${lineOf(error.pos[0])}: ${error.message}`));
  }
  const unset: string[] = [];
  const content = fillIn(document.toJS({ maxAliasCount: 100 }) ?? {}, environment, unset);
  if (unset.length > 0) {
    throw new ConfigurationError(
      unset.map((name) => `${path}: \${env:${name}} stands for an environment variable that is not set; set ${name}`),
    );
  }
  return {
    path,
    content,
    locate(keys) {
      let node: unknown = document.contents;
      let place = path;
      for (const key of keys) {
        if (isMap(node)) {
          const pair = node.items.find((item) => (isScalar(item.key) ? String(item.key.value) : '') === String(key));
          if (pair === undefined) return place;
          if (isNode(pair.key) && pair.key.range) place = lineOf(pair.key.range[0]);
          node = pair.value;
        } else return place;
      }
      return place;
    },
  };
}

function readIfThere(path: string, isNamed: boolean): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    if (code === 'ENOENT' && !isNamed) return undefined;
    const why = code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${code})`;
    throw new ConfigurationError([`configuration file ${path}: ${why}`]);
  }
}

/** Replaces `${env:NAME}` in every text, so that secrets can stay out of the file. */
function fillIn(value: unknown, environment: Environment, unset: string[]): unknown {
  if (typeof value === 'string') {
    return value.replaceAll(/\$\{env:([A-Za-z_]\w*)\}/g, (_, name: string) => {
      const text = environment[name];
      if (text === undefined) unset.push(name);
      return text ?? '';
    });
  }
  if (Array.isArray(value)) return value.map((item) => fillIn(item, environment, unset));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillIn(item, environment, unset)]));
}

/** The value of a variable; an empty one counts as unset, as OpenTelemetry has it. */
export function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === '' ? undefined : text;
}
