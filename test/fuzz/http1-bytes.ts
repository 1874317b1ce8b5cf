import { gzipSync } from 'node:zlib';
import type { Dice } from './dice.js';
import { type ConnectionPlay, cut, END_OF_PLAY } from './http2-bytes.js';
import { mutateBytes } from './mutate.js';

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'HEAD', 'PATCH', 'TRACE', 'CONNECT', 'PRI', '', 'G\x00T'];
const HTTP2_PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

/**
 * A connection of HTTP/1.1 that carries one to four requests, one behind the other: some of them what a client sends, some
 * odd, half or damaged.
 * @param paths what the port answers at
 * @param messages requests of OTLP, which bodies are made of
 */
export function randomHttp1Connection(
  paths: readonly string[],
  messages: readonly Buffer[],
  dice: Dice,
): ConnectionPlay {
  const requests = Array.from({ length: 1 + dice.below(4) }, () => randomRequest(paths, messages, dice));
  if (dice.oneIn(20)) requests.splice(dice.below(requests.length), 0, Buffer.from(HTTP2_PREFACE));
  let bytes: Buffer = Buffer.concat(requests);
  if (dice.oneIn(5)) bytes = mutateBytes(bytes, messages, dice);
  if (dice.oneIn(4)) bytes = bytes.subarray(0, dice.below(bytes.length));
  return { pieces: cut(bytes, dice), end: dice.pick(END_OF_PLAY) };
}

function randomRequest(paths: readonly string[], messages: readonly Buffer[], dice: Dice): Buffer {
  const method = dice.oneIn(2) ? 'POST' : dice.pick(METHODS);
  const version = dice.oneIn(12) ? dice.pick(['HTTP/1.0', 'HTTP/2.0', 'HTTP/9', '', 'http/1.1']) : 'HTTP/1.1';
  const body = randomBody(messages, dice);
  const isChunked = dice.oneIn(3);
  const fields = [...randomFields(dice), isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`];
  if (dice.oneIn(20)) fields.push(dice.pick(['Content-Length: 7', 'Transfer-Encoding: gzip, chunked']));
  const lineEnd = dice.oneIn(20) ? '\n' : '\r\n';
  const head = [`${method} ${randomTarget(paths, dice)} ${version}`, ...fields, '', ''].join(lineEnd);
  return Buffer.concat([Buffer.from(head, 'latin1'), isChunked ? chunked(body, dice) : body]);
}

function randomTarget(paths: readonly string[], dice: Dice): string {
  if (!dice.oneIn(4)) return dice.pick(paths);
  const odd = [
    '*',
    '',
    '//',
    '/%',
    '/%00',
    '/%ff',
    '/..%2f..',
    'http://[',
    'http://a:b@c/',
    'a:99999',
    '?',
    '/?a[]=%',
    '/\xff',
  ];
  return dice.oneIn(8) ? `/${'x'.repeat(dice.below(40_000))}` : dice.pick(odd);
}

function randomBody(messages: readonly Buffer[], dice: Dice): Buffer {
  const message = dice.pick(messages);
  switch (dice.below(6)) {
    case 0:
      return gzipSync(message);
    case 1:
      return mutateBytes(message, messages, dice);
    case 2:
      return Buffer.from(dice.pick(['{}', '[', '{"resourceSpans":[{}]}', '{"a":'.repeat(200), 'null', '\ufeff{}']));
    case 3:
      return Buffer.alloc(0);
    default:
      return message;
  }
}

function randomFields(dice: Dice): string[] {
  const fields = [`Host: ${dice.oneIn(8) ? dice.pick(['', 'evil.example', '[::1', 'a b', '\xff']) : '127.0.0.1'}`];
  const maybe = (times: number, name: string, values: readonly string[]) => {
    if (dice.oneIn(times)) fields.push(`${name}: ${dice.pick(values)}`);
  };
  maybe(2, 'Content-Type', ['application/x-protobuf', 'application/json', 'text/html', ';', '\xff']);
  maybe(4, 'Content-Encoding', ['gzip', 'gzip', 'br', 'deflate', 'identity', 'gzip, gzip', '']);
  maybe(8, 'Expect', ['100-continue', '200-ok', '']);
  maybe(8, 'Upgrade', ['websocket', 'h2c', 'TLS/1.0', '']);
  maybe(8, 'Connection', ['Upgrade', 'Upgrade, HTTP2-Settings', 'close', 'keep-alive', 'Content-Length', '\x01']);
  maybe(12, 'HTTP2-Settings', ['AAMAAABkAAQAAP__', '!']);
  maybe(12, 'Authorization', ['Bearer x', 'Basic !', 'Token', '\xff', 'x'.repeat(9_000)]);
  maybe(12, 'Cookie', ['a=%', '=;;=', 'x'.repeat(20_000)]);
  maybe(12, 'Range', ['bytes=0-', 'bytes=-1,-2', 'bytes=9-1', 'lines=1']);
  maybe(12, 'If-None-Match', ['*', 'W/', '"']);
  maybe(12, 'Accept', ['text/html', '*/*;q=x', ',;,']);
  maybe(12, 'Origin', ['null', 'http://[', 'http://evil.example']);
  maybe(12, 'traceparent', ['00-0-0-0', 'x']);
  maybe(16, dice.pick(['', ' a', 'a b', '__proto__', 'Content-Length']), ['x', '-1', '99999999999999999999', '1, 2']);
  return fields;
}

function chunked(body: Buffer, dice: Dice): Buffer {
  const at = dice.below(body.length);
  const parts = [body.subarray(0, at), body.subarray(at)].filter(({ length }) => length > 0);
  const chunk = (part: Buffer) => {
    const length = dice.oneIn(10)
      ? dice.pick(['', '-1', 'ffffffffffffffff', 'x', '7fffffff'])
      : part.length.toString(16);
    const extension = dice.oneIn(10) ? `;a="${'x'.repeat(dice.below(20_000))}"` : '';
    return Buffer.concat([Buffer.from(`${length}${extension}\r\n`), part, Buffer.from(dice.oneIn(20) ? '' : '\r\n')]);
  };
  const trailer = dice.oneIn(8) ? dice.pick(['a: b\r\n', 'Content-Length: 3\r\n', '\xff\r\n', ':\r\n']) : '';
  const end = dice.oneIn(8) ? '' : `0\r\n${trailer}\r\n`;
  return Buffer.concat([...parts.map(chunk), Buffer.from(end, 'latin1')]);
}
