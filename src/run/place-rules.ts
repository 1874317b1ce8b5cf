/** Which invocations something is meant for: all that is given must match. `*` stands for any text. */
export interface MatchRule {
  /** Matches the whole command line, for example `dbt build*`. */
  readonly command?: string | undefined;
  /** Matches what `--target` says. */
  readonly target?: string | undefined;
  /** Resource attributes by name. */
  readonly resource?: Readonly<Record<string, string>> | undefined;
}

/** A job, environment or project that the configuration declares. */
export interface DeclaredPlace {
  readonly name: string;
  /** Its number, where the configuration says it. */
  readonly id: number | null;
  /** An invocation that one of these matches belongs to it. */
  readonly match: readonly MatchRule[];
}

/** A declared job also says where its runs belong: names, `null` where nothing is said. */
export interface DeclaredJob extends DeclaredPlace {
  readonly environment: string | null;
  readonly project: string | null;
}

/** A declared environment says which project it is part of. */
export interface DeclaredEnvironment extends DeclaredPlace {
  readonly project: string | null;
}

/** Everything that the configuration declares of them, in its order: the first that matches counts. */
export interface DeclaredPlaces {
  readonly jobs: readonly DeclaredJob[];
  readonly environments: readonly DeclaredEnvironment[];
  readonly projects: readonly DeclaredPlace[];
}
