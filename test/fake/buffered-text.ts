import type { PassThrough } from 'node:stream';

/** All that was written to a stream and not read yet; a single `read()` gives all of it only up to Node 24. */
export function bufferedText(stream: PassThrough): string {
  let text = '';
  for (let chunk: unknown = stream.read(); chunk !== null; chunk = stream.read()) text += String(chunk);
  return text;
}
