/** Something that the configuration declares by name, and perhaps by number. */
export interface DeclaredName {
  readonly name: string;
  readonly id: number | null;
}

/** What the configuration declares; names of projects and environments are `null` where it says none. */
export interface DeclaredNames {
  readonly projects: readonly DeclaredName[];
  readonly environments: readonly (DeclaredName & { readonly project: string | null })[];
  readonly jobs: readonly (DeclaredName & { readonly project: string | null; readonly environment: string | null })[];
}

/** Where projects, environments and jobs are declared before a run names them. */
export interface PlaceStore {
  /**
   * Brings what is declared into being, in the first account. A number that was given is kept for good.
   * @returns what is wrong with the numbers, a sentence each; nothing was changed then
   */
  declare(declared: DeclaredNames, nowUnixMs: number): Promise<readonly string[]>;
}
