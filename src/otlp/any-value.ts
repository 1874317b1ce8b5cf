/** OTLP's AnyValue: `bigint` is its int, `number` its double, `null` no value at all. */
export type AnyValue = null | string | boolean | bigint | number | Uint8Array | readonly AnyValue[] | KeyValueList;

/** OTLP's KeyValueList; keys may repeat on the wire, the last one counts. */
export interface KeyValueList {
  readonly entries: readonly KeyValue[];
}

/** OTLP's KeyValue. */
export interface KeyValue {
  readonly key: string;
  readonly value: AnyValue;
}
