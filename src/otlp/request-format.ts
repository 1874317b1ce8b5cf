import type { IncomingHttpHeaders } from 'node:http';
import type { OtlpEncoding } from './otlp-codec.js';
import { RequestError } from './refusal.js';

/** How a body is packed on its way. `deflate` is zlib's format or the raw one: senders differ. */
export type ContentCoding = 'identity' | 'gzip' | 'deflate';

/** The media types of OTLP over HTTP (OTLP specification, "OTLP/HTTP"). */
export const MEDIA_TYPES: Readonly<Record<OtlpEncoding, string>> = {
  protobuf: 'application/x-protobuf',
  json: 'application/json',
};

/** The encoding of the Content-Type; parameters (`; charset=utf-8`) are ignored. */
export function findEncoding(headers: IncomingHttpHeaders): OtlpEncoding | undefined {
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (mediaType === MEDIA_TYPES.protobuf) return 'protobuf';
  return mediaType === MEDIA_TYPES.json ? 'json' : undefined;
}

/** @throws RequestError `unsupported_type` */
export function parseEncoding(headers: IncomingHttpHeaders): OtlpEncoding {
  const encoding = findEncoding(headers);
  if (encoding !== undefined) return encoding;
  const given = headers['content-type'];
  throw new RequestError(
    'unsupported_type',
    `${given === undefined ? 'A request without Content-Type' : `Content-Type ${quote(given)}`} is not supported; send ${MEDIA_TYPES.protobuf} or ${MEDIA_TYPES.json}.`,
  );
}

/** @param given as the sender names it; none counts as `identity`. @throws RequestError `unsupported_encoding` */
export function parseContentCoding(given = ''): ContentCoding {
  switch (given.trim().toLowerCase()) {
    case '':
    case 'identity':
      return 'identity';
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    case 'deflate':
      return 'deflate';
    default:
      throw new RequestError(
        'unsupported_encoding',
        `The encoding ${quote(given)} is not supported; send gzip, deflate or no compression.`,
      );
  }
}

/** The length that the header announces, in bytes; `undefined` for a chunked body. Node has checked its form already. */
export function parseContentLength(headers: IncomingHttpHeaders): number | undefined {
  const given = headers['content-length'];
  return given === undefined ? undefined : Number(given);
}

/** A sender's own words, cut so that an answer stays short. */
function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
