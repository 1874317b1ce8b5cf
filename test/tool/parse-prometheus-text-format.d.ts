declare module 'parse-prometheus-text-format' {
  /** What a Prometheus answer says; checked by whoever calls. */
  export default function parse(text: string): unknown;
}
