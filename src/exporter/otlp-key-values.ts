/** Pairs read from a text, and what is wrong with it; never names a value, which may be a secret. */
export interface KeyValues {
  readonly pairs: Readonly<Record<string, string>>;
  readonly problems: readonly string[];
}

/**
 * Reads `key=value,key2=value2` with percent-encoded values, as OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES have
 * it (https://opentelemetry.io/docs/specs/otel/protocol/exporter/): W3C baggage without its properties, so a `;` is part of
 * the value.
 * @param variable named in the problems.
 */
export function parseKeyValues(variable: string, text: string): KeyValues {
  const pairs: Record<string, string> = {};
  const problems: string[] = [];
  for (const [index, part] of text.split(',').entries()) {
    if (part.trim() === '') continue;
    const equals = part.indexOf('=');
    const key = decode(part.slice(0, Math.max(0, equals)));
    const value = decode(part.slice(equals + 1));
    if (equals === -1 || key === undefined || key === '' || value === undefined) {
      problems.push(`${variable}: entry ${index + 1} is not "key=value" with a percent-encoded value`);
    } else {
      pairs[key] = value;
    }
  }
  return { pairs, problems };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.trim());
  } catch {
    return undefined;
  }
}
