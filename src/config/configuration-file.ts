import { isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { ConfigurationError } from './configuration-error.js';
import type { Environment } from './environment.js';
import type { FoundFile } from './find-configuration-file.js';

/** A configuration file that was found and is YAML. */
export interface ConfigurationFile {
  readonly path: string;
  /** What it holds, `${env:NAME}` filled in; not checked any further. */
  readonly content: unknown;
  /** `path:line` of a key or value in it. */
  locate(keys: readonly PropertyKey[]): string;
}

/** @throws ConfigurationError when the text is not YAML, or names an environment variable that is not set. */
export function parseConfigurationFile({ path, text }: FoundFile, environment: Environment): ConfigurationFile {
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

/** Replaces `${env:NAME}` and `${env:NAME:-default}` in every text, so that secrets can stay out of the file. */
function fillIn(value: unknown, environment: Environment, unset: string[]): unknown {
  if (typeof value === 'string') {
    return value.replaceAll(/\$\{env:([A-Za-z_]\w*)(?::-([^{}]*))?\}/g, (_, name: string, otherwise?: string) => {
      const text = environment[name] === '' && otherwise !== undefined ? undefined : environment[name];
      if (text === undefined && otherwise === undefined) unset.push(name);
      return text ?? otherwise ?? '';
    });
  }
  if (Array.isArray(value)) return value.map((item) => fillIn(item, environment, unset));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillIn(item, environment, unset)]));
}
