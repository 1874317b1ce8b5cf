import parse from 'parse-prometheus-text-format';
import { z } from 'zod';

const familiesSchema = z.array(
  z.object({
    name: z.string(),
    help: z.string(),
    type: z.enum(['COUNTER', 'GAUGE', 'UNTYPED']),
    metrics: z.array(z.object({ value: z.string(), labels: z.record(z.string(), z.string()).default({}) })),
  }),
);

/** The head of a histogram. The parser loses labels of histograms, but reads their lines as metrics without a type. */
const HISTOGRAM_HEAD = /^# HELP (\S+) .*\n# TYPE \1 histogram\n/gm;

/** A metric as another program reads it. */
export type ParsedFamily = z.output<typeof familiesSchema>[number];

/** An answer in Prometheus' text format, read by another's parser. */
export class ParsedMetrics {
  readonly families: readonly ParsedFamily[];

  constructor(readonly text: string) {
    this.families = familiesSchema.parse(parse(text.replaceAll(HISTOGRAM_HEAD, '')));
  }

  /** The value of the one sample that has these labels among its own; `undefined` where there is none. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
    const own = this.families.filter((family) => family.name === name).flatMap(({ metrics }) => metrics);
    const found = own.filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value));
    if (found.length > 1) throw new Error(`${name} has ${found.length} samples with ${JSON.stringify(labels)}`);
    return found[0] && Number(found[0].value);
  }

  /** Labels of the samples of a metric that have a value. */
  labelsWith(name: string, value: number): readonly Readonly<Record<string, string>>[] {
    const own = this.families.find((family) => family.name === name)?.metrics ?? [];
    return own.filter((sample) => Number(sample.value) === value).map(({ labels }) => labels);
  }
}
