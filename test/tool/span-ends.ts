/** The ends of spans among a run's lines, each spelt as JSON.stringify does, in an order of their own: to compare logs. */
export function spanEnds(lines: readonly string[]): readonly string[] {
  return lines
    .filter((line) => line.startsWith('{"record_type":"SpanEnd"'))
    .map((line) => JSON.stringify(JSON.parse(line)))
    .sort();
}
