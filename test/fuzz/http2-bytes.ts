import { gzipSync } from 'node:zlib';
import { frame, LOGS_PATH, TRACES_PATH } from '../fake/grpc-client.js';
import type { Dice } from './dice.js';
import { mutateBytes } from './mutate.js';

/** Frame types of HTTP/2 (RFC 9113, 6), and one that nobody has defined. */
const DATA = 0;
const HEADERS = 1;
const PRIORITY = 2;
const RST_STREAM = 3;
const SETTINGS = 4;
const PUSH_PROMISE = 5;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const CONTINUATION = 9;
const UNDEFINED = 0xbe;

const END_STREAM = 1;
const END_HEADERS = 4;
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** A frame of HTTP/2. @param streamId 0 for the connection's own */
function http2Frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.byteLength, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** Header fields as HPACK's literals without indexing (RFC 7541, 6.2.2). */
function headerBlock(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  const literal = (text: string) => {
    const bytes = Buffer.from(text, 'latin1');
    // Lengths of 127 bytes and more go on in groups of seven bits.
    const length = bytes.length < 127 ? [bytes.length] : [127, ...groups(bytes.length - 127)];
    return Buffer.concat([Buffer.from(length), bytes]);
  };
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.of(0), literal(name), literal(value)]));
}

function groups(rest: number): number[] {
  return rest < 128 ? [rest] : [(rest & 127) | 128, ...groups(rest >>> 7)];
}

/** What begins a connection, and one call on it that its sender resets in the same segment. */
export function resetCall(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  const request = [[':method', 'POST'], [':scheme', 'http'], [':authority', 'a'], ...fields] as const;
  return Buffer.concat([
    PREFACE,
    http2Frame(SETTINGS, 0, 0, Buffer.alloc(0)),
    http2Frame(HEADERS, END_HEADERS, 1, headerBlock(request)),
    http2Frame(RST_STREAM, 0, 1, Buffer.from([0, 0, 0, 8])),
  ]);
}

/** What one connection sends, in the pieces in which it is written, and how it ends. */
export interface ConnectionPlay {
  readonly pieces: readonly Buffer[];
  readonly end: (typeof END_OF_PLAY)[number];
}

/** How a connection ends. */
export const END_OF_PLAY = ['close', 'drop', 'reset', 'wait'] as const;

/**
 * A connection that begins as HTTP/2 does and goes on with calls, frames and resets in any order: some of it what a client sends, some odd, some damaged.
 * @param messages requests of OTLP, which calls carry
 */
export function randomConnection(messages: readonly Buffer[], dice: Dice): ConnectionPlay {
  const frames: Buffer[] = [dice.oneIn(20) ? mutateBytes(PREFACE, messages, dice) : PREFACE];
  if (!dice.oneIn(10)) frames.push(http2Frame(SETTINGS, 0, 0, randomSettings(dice)));
  let nextStreamId = 1;
  for (let count = 1 + dice.below(12); count > 0; count--) {
    // A frame on a stream that nobody has opened ends the connection: few are tried.
    const streamId = dice.oneIn(8) ? nextStreamId : Math.max(1, nextStreamId - 2 * (1 + dice.below(3)));
    if (nextStreamId === 1 || dice.oneIn(2)) {
      frames.push(...randomCall(nextStreamId, messages, dice));
      nextStreamId += 2;
    } else frames.push(randomFrame(streamId, messages, dice));
  }
  let bytes: Buffer = Buffer.concat(frames);
  if (dice.oneIn(6)) bytes = mutateBytes(bytes, messages, dice);
  return { pieces: cut(bytes, dice), end: dice.pick(END_OF_PLAY) };
}

function randomCall(streamId: number, messages: readonly Buffer[], dice: Dice): Buffer[] {
  const endsAtOnce = dice.oneIn(6);
  const block = headerBlock(randomHeaders(dice));
  const frames: Buffer[] = [];
  if (dice.oneIn(10)) {
    const at = dice.below(block.length);
    frames.push(http2Frame(HEADERS, endsAtOnce ? END_STREAM : 0, streamId, block.subarray(0, at)));
    if (!dice.oneIn(8)) frames.push(http2Frame(CONTINUATION, END_HEADERS, streamId, block.subarray(at)));
  } else frames.push(http2Frame(HEADERS, END_HEADERS | (endsAtOnce ? END_STREAM : 0), streamId, block));
  if (dice.oneIn(2)) frames.push(reset(streamId, dice));
  if (dice.oneIn(2)) {
    const message = randomMessage(messages, dice);
    const at = dice.oneIn(3) ? dice.below(message.length) : message.length;
    frames.push(http2Frame(DATA, at === message.length ? END_STREAM : 0, streamId, message.subarray(0, at)));
    if (at < message.length) frames.push(http2Frame(DATA, END_STREAM, streamId, message.subarray(at)));
    if (dice.oneIn(3)) frames.push(reset(streamId, dice));
  }
  return frames;
}

function randomMessage(messages: readonly Buffer[], dice: Dice): Buffer {
  const message = dice.pick(messages);
  switch (dice.below(6)) {
    case 0:
      return frame(gzipSync(message), 1);
    case 1:
      return frame(message, dice.below(3), dice.bits());
    case 2:
      return mutateBytes(frame(message), messages, dice);
    default:
      return frame(message);
  }
}

function randomHeaders(dice: Dice): (readonly [string, string])[] {
  const fields: (readonly [string, string])[] = [
    [':method', dice.oneIn(12) ? dice.pick(['GET', 'CONNECT', 'PRI', '']) : 'POST'],
    [':scheme', 'http'],
    [':authority', dice.oneIn(12) ? '\xff\x00:x' : 'a'],
    [':path', dice.oneIn(3) ? dice.pick(['/', '', '*', '/\xe4\xff', '/a.b/C', `/${'x'.repeat(3_000)}`]) : TRACES_PATH],
  ];
  if (dice.oneIn(4)) fields[3] = [':path', LOGS_PATH];
  if (!dice.oneIn(4)) fields.push(['content-type', dice.oneIn(6) ? 'text/\xff' : 'application/grpc']);
  if (dice.oneIn(4)) fields.push(['te', dice.oneIn(6) ? 'gzip' : 'trailers']);
  if (dice.oneIn(4)) fields.push(['grpc-timeout', dice.pick(['0m', '1n', '5m', '99999999H', '\xff\xfe', '-1S', ''])]);
  if (dice.oneIn(3))
    fields.push(['grpc-encoding', dice.pick(['gzip', 'gzip', 'deflate', 'identity', 'br', '\xff', ''])]);
  if (dice.oneIn(8)) fields.push([dice.pick(['a-bin', 'grpc-trace-bin']), dice.pick(['', '!', 'AAAA', '\xff'])]);
  if (dice.oneIn(8)) fields.push(['content-length', dice.pick(['0', '3', '-1', '99999999999999999999', 'x'])]);
  if (dice.oneIn(10)) fields.push(['authorization', dice.pick(['Bearer x', '\xff', 'x'.repeat(9_000)])]);
  if (dice.oneIn(20)) fields.push([dice.pick(['Upper', 'connection', 'a b', '\xff', '', ':late', 'x']), 'v\r\n']);
  if (dice.oneIn(20)) fields.splice(dice.below(fields.length), 1);
  return fields;
}

function randomFrame(streamId: number, messages: readonly Buffer[], dice: Dice): Buffer {
  const flags = dice.oneIn(6) ? dice.below(256) : 0;
  switch (dice.below(11)) {
    case DATA:
      return http2Frame(DATA, flags, streamId, randomMessage(messages, dice));
    case HEADERS:
      return http2Frame(HEADERS, END_HEADERS | flags, streamId, headerBlock(randomHeaders(dice)));
    case PRIORITY:
      return http2Frame(PRIORITY, flags, streamId, dice.bytes(dice.oneIn(4) ? dice.below(9) : 5));
    case SETTINGS:
      return http2Frame(SETTINGS, dice.below(2), 0, randomSettings(dice));
    case PUSH_PROMISE:
      return http2Frame(PUSH_PROMISE, END_HEADERS, streamId, dice.bytes(12));
    case PING:
      return http2Frame(PING, dice.below(2), 0, dice.bytes(dice.oneIn(6) ? dice.below(12) : 8));
    case GOAWAY:
      return http2Frame(GOAWAY, flags, 0, Buffer.concat([Buffer.alloc(4), dice.bytes(4 + dice.below(9))]));
    case WINDOW_UPDATE:
      return http2Frame(WINDOW_UPDATE, flags, dice.oneIn(2) ? 0 : streamId, dice.pick(WINDOW_INCREMENTS));
    case CONTINUATION:
      return http2Frame(CONTINUATION, flags, streamId, dice.bytes(10));
    case RST_STREAM:
      return reset(streamId, dice);
    default:
      return http2Frame(UNDEFINED, flags, streamId, dice.bytes(dice.below(40)));
  }
}

const WINDOW_INCREMENTS = [1, 65_535, 0x7fff_ffff, 0].map((bytes) => {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return payload;
});

function reset(streamId: number, dice: Dice): Buffer {
  return http2Frame(RST_STREAM, 0, streamId, Buffer.from([0, 0, 0, dice.oneIn(4) ? dice.below(256) : dice.below(14)]));
}

function randomSettings(dice: Dice): Buffer {
  const settings = Array.from({ length: dice.below(4) }, () => {
    const setting = Buffer.alloc(6);
    setting.writeUInt16BE(1 + dice.below(9));
    setting.writeUInt32BE(dice.pick([0, 1, 100, 16_384, 65_535, 0x7fff_ffff, 0xffff_ffff]), 2);
    return setting;
  });
  return Buffer.concat(settings);
}

/** Whole, or in some pieces anywhere. */
export function cut(bytes: Buffer, dice: Dice): Buffer[] {
  const ends = Array.from({ length: dice.oneIn(2) ? 0 : 1 + dice.below(4) }, () => dice.below(bytes.length));
  const places = [0, ...ends.sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}
