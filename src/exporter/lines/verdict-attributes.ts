import { encodeAttribute } from '../wire/encode-attributes.js';
import { SPAN } from '../wire/encode-span.js';
import { WireWriter } from '../wire/wire-writer.js';

/** Verdicts that need nothing but the line, each as the attribute that says it. */
export const VERDICT_ATTRIBUTES = {
  success: verdictBytes('success'),
  skipped: verdictBytes('skipped'),
  error: verdictBytes('error'),
};

function verdictBytes(verdict: string): Buffer {
  const out = new WireWriter(64);
  encodeAttribute(out, SPAN.attributes, 'run_bridge.node.verdict', verdict);
  return out.bytes.subarray(0, out.length);
}
