/** Different kinds of failures that are kept, and how many of each. */
const MAX_KINDS = 12;
const MAX_OF_KIND = 3;

/** Failures by kind, the first few of each with how they are had again, so that one run shows several. */
export class Findings {
  private readonly byKind = new Map<string, { readonly texts: Set<string>; count: number }>();

  /** @param text says what is wrong; made only where it is kept */
  add(kind: string, text: () => string): void {
    let known = this.byKind.get(kind);
    if (known === undefined) {
      if (this.byKind.size === MAX_KINDS) return;
      known = { texts: new Set(), count: 0 };
      this.byKind.set(kind, known);
    }
    known.count += 1;
    if (known.texts.size < MAX_OF_KIND) known.texts.add(text());
  }

  /** @throws Error that tells them all, when there are any */
  expectNone(): void {
    if (this.byKind.size === 0) return;
    const all = [...this.byKind].map(([kind, { texts, count }]) => `${count} × ${kind}\n${[...texts].join('\n\n')}`);
    throw new Error(all.join('\n\n'));
  }
}
