/** What a sender begins a connection with; `unknown` is none of these. */
export type ConnectionProtocol = 'http2' | 'http1' | 'tls' | 'unknown';

/** Every connection of HTTP/2 begins with these 24 bytes (RFC 9113, 3.4). */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
/** A record of TLS that holds a handshake (RFC 8446, 5.1). */
const TLS_HANDSHAKE = 0x16;

/** Tells the protocol by a connection's first bytes; `undefined` while there are too few of them. */
export function tellProtocol(head: Buffer): ConnectionProtocol | undefined {
  const known = Math.min(head.length, PREFACE.length);
  if (head.subarray(0, known).equals(PREFACE.subarray(0, known))) return known < PREFACE.length ? undefined : 'http2';
  if (head[0] === TLS_HANDSHAKE) return 'tls';
  return /^[A-Z]{3,7} /.test(head.toString('latin1', 0, 8)) ? 'http1' : 'unknown';
}
