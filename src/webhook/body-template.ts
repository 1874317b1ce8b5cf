import { Liquid, type Template } from 'liquidjs';
import { reasonOf } from '../core/errors.js';
import { MAX_TEMPLATE_LENGTH } from './subscription.js';

/** A body template cannot be read, or makes no body. The message says why, as the end of a sentence. */
export class BodyTemplateError extends Error {
  override readonly name = 'BodyTemplateError';
}

/** What a template may make, in characters. */
const MAX_BODY_LENGTH = 256 * 1024;
/** What one rendering may take: milliseconds, parts that are rendered, and objects that are made. */
const LIMITS = { renderLimit: 250, templateLimit: 20_000, memoryLimit: 1_000_000 } as const;

const json = newEngine((value) =>
  typeof value === 'string' ? JSON.stringify(value).slice(1, -1) : JSON.stringify(value),
);
const plain = newEngine();

/**
 * Renders the body of a request from a template in the language Liquid. It sees the given values and nothing else: no file, no
 * prototype, no other template.
 * @param isJson whether the body has to be JSON: then values are escaped for the inside of JSON strings
 * @param isStrict whether names that the values do not have are refused; else they are empty
 * @throws BodyTemplateError
 */
export function renderBody(
  template: string,
  values: object,
  { isJson, isStrict = false }: { readonly isJson: boolean; readonly isStrict?: boolean },
): string {
  const engine = isJson ? json : plain;
  let body: string;
  try {
    const parsed: Template[] = engine.parse(template);
    body = String(engine.renderSync(parsed, values, { ...LIMITS, strictVariables: isStrict }));
  } catch (error) {
    throw new BodyTemplateError(reasonOf(error).replace(/, file:.*?(?=, line|$)/, ''), { cause: error });
  }
  if (body.length > MAX_BODY_LENGTH) {
    throw new BodyTemplateError(`makes more than ${MAX_BODY_LENGTH.toLocaleString('en')} characters`);
  }
  if (isJson) {
    try {
      JSON.parse(body);
    } catch (error) {
      throw new BodyTemplateError(`makes no JSON: ${reasonOf(error)}`, { cause: error });
    }
  }
  return body;
}

function newEngine(outputEscape?: (value: unknown) => string): Liquid {
  const engine = new Liquid({
    ...{ ownPropertyOnly: true, strictFilters: true, lenientIf: true, timezoneOffset: 0 },
    // In place of files: there is no other template.
    ...{ templates: {}, parseLimit: MAX_TEMPLATE_LENGTH },
    ...(outputEscape !== undefined && { outputEscape }),
  });
  for (const tag of ['include', 'render', 'layout', 'block']) delete engine.tags[tag];
  engine.registerFilter('json', { raw: true, handler: (value: unknown) => JSON.stringify(value ?? null) });
  return engine;
}
