import { pathToFileURL } from 'node:url';
import type { SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { reasonOf } from '../component/reason-of.js';
import { SpanProcessorExporter } from './span-processor-exporter.js';

/**
 * Loads an exporter of one's own: an ES module whose default export is a SpanExporter, a SpanProcessor, or a function
 * that makes one (see `docs/examples/custom-exporter.mjs`).
 * @param path absolute.
 * @throws Error naming the file and what is wrong with it.
 */
export async function loadExporterModule(path: string): Promise<SpanExporter> {
  const made = await make(path);
  if (isSpanExporter(made)) return made;
  if (isSpanProcessor(made)) return new SpanProcessorExporter(made);
  throw new Error(
    `the exporter ${path} has no default export that is, or makes, an OpenTelemetry SpanExporter or SpanProcessor`,
  );
}

async function make(path: string): Promise<unknown> {
  try {
    const module: unknown = await import(pathToFileURL(path).href);
    const exported = typeof module === 'object' && module !== null && 'default' in module ? module.default : undefined;
    return typeof exported === 'function' ? await exported() : exported;
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new Error(`the exporter ${path} cannot be loaded: ${reason}`, { cause });
  }
}

function isSpanExporter(value: unknown): value is SpanExporter {
  return hasMethods(value, ['export', 'shutdown']);
}

function isSpanProcessor(value: unknown): value is SpanProcessor {
  return hasMethods(value, ['onStart', 'onEnd', 'forceFlush', 'shutdown']);
}

function hasMethods(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return names.every((name) => typeof Reflect.get(value, name) === 'function');
}
