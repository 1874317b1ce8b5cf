import type { OtlpEncoding } from '../otlp/otlp-codec.js';
import type { Signal } from '../record/record-batch.js';
import type { ResourceValue } from '../record/resource.js';
import type { RedactionLevel } from './redaction/redaction-level.js';

/** PEM files of a TLS connection; relative paths start from the working directory. */
export interface TlsFiles {
  /** Authorities that vouch for the receiver, in place of the usual ones. */
  readonly caFile?: string;
  /** The sender's own certificate and its key. */
  readonly certFile?: string;
  readonly keyFile?: string;
}

/** Where and how one signal is sent. */
export interface SignalEndpoint {
  /** Used as it is: it has its `/v1/traces` or `/v1/logs`. */
  readonly url: string;
  /** Header names in lower case; values are secrets. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly compression: 'none' | 'gzip';
  readonly encoding: OtlpEncoding;
  readonly tls: TlsFiles;
}

/** A place that runs are exported to by OTLP over HTTP. */
export interface DestinationConfig {
  readonly name: string;
  /** What it gets; a signal that is left out is not sent. */
  readonly endpoints: Readonly<Partial<Record<Signal, SignalEndpoint>>>;
  /** What was not taken for this long, in milliseconds, is given up; `off`: nothing is; left out: as everywhere. */
  readonly maxBacklogAgeMs?: number | 'off';
  /** `null`: as everywhere. */
  readonly redaction: RedactionLevel | null;
  /** Mapping switches that differ from those set for every destination, by name. */
  readonly mapping: Readonly<Record<string, boolean>>;
  /** Resource attributes of its own, above all others. */
  readonly resource?: Readonly<Record<string, ResourceValue>>;
}
