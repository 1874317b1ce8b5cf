/** Something that the configuration declares by name, and perhaps by number. */
export interface DeclaredName {
  readonly name: string;
  readonly id: number | null;
}

/** The declarations of the configuration; names of projects and environments are `null` if missing. */
export interface DeclaredNames {
  readonly projects: readonly DeclaredName[];
  readonly environments: readonly (DeclaredName & { readonly project: string | null })[];
  readonly jobs: readonly (DeclaredName & { readonly project: string | null; readonly environment: string | null })[];
}

/** Where projects, environments and jobs are declared before a run names them. */
export interface PlaceStore {
  /**
   * Creates what is declared, in the first account. A configured id is permanent.
   * @returns problems with the ids, a sentence each; nothing was changed then
   */
  declare(declared: DeclaredNames, nowUnixMs: number): Promise<readonly string[]>;
}
