import { allFields, type MessageName, readFields, writeFields } from './wire-field.js';

/** Bodies that are tried at most. */
const MAX_TRIES = 3_000;

/** Leaves out of a body what it can, as long as it fails: whole fields first, then bytes. */
export function smallest(body: Buffer, signal: MessageName, fails: (body: Buffer) => boolean): Buffer {
  let tries = 0;
  const tryFails = (candidate: Buffer) => candidate.length < found.length && ++tries < MAX_TRIES && fails(candidate);
  let found = body;
  for (let isSmaller = true; isSmaller && tries < MAX_TRIES; ) {
    isSmaller = false;
    for (const candidate of shorter(found, signal)) {
      if (!tryFails(candidate)) continue;
      found = candidate;
      isSmaller = true;
      break;
    }
  }
  return found;
}

function* shorter(body: Buffer, signal: MessageName): Generator<Buffer> {
  const count = allFields(readFields(body, signal)).length;
  for (let index = 0; index < count; index++) {
    const fields = readFields(body, signal);
    const everywhere = allFields(fields);
    const field = everywhere[index];
    if (field === undefined) break;
    const siblings = everywhere.find((each) => each.fields?.includes(field))?.fields ?? fields;
    siblings.splice(siblings.indexOf(field), 1);
    yield writeFields(fields);
  }
  for (let length = body.length >> 1; length > 0; length >>= 1) {
    for (let at = 0; at + length <= body.length; at += length) {
      yield Buffer.concat([body.subarray(0, at), body.subarray(at + length)]);
    }
  }
}
