import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Environment, nonEmpty } from '../config/environment.js';
import type { TailPosition } from '../files/feature.js';
import { isEngineProgram } from '../run/measures/execution.js';

/** What a command line and its environment tell the engine about its files and its telemetry; a flag comes before a variable. */
export interface EngineSwitches {
  /** Name of the JSONL file that the user asked for; `undefined` where nobody did. */
  readonly fileName: string | undefined;
  readonly logPath: string | undefined;
  readonly projectDir: string | undefined;
  /** Where it writes what it makes; `undefined` where the project says it, or nobody. */
  readonly targetPath: string | undefined;
  /** Whether the user chose the trace id or the parent span. */
  readonly hasOwnTrace: boolean;
}

/** Whether a command may run the engine several times, as far as its first word tells. */
export function mayRunSeveral([program = '']: readonly string[]): boolean {
  return !isEngineProgram(program);
}

/** Reads the engine's switches off a command, as far as they stand in it: those inside a script cannot be seen. */
export function readEngineSwitches(command: readonly string[], environment: Environment): EngineSwitches {
  const value = (flag: string, variable: string) => flagValue(command, flag) ?? nonEmpty(environment[variable]);
  return {
    fileName: value('--otel-file-name', 'DBT_OTEL_FILE_NAME'),
    logPath: value('--log-path', 'DBT_LOG_PATH'),
    projectDir: value('--project-dir', 'DBT_PROJECT_DIR'),
    targetPath: value('--target-path', 'DBT_TARGET_PATH'),
    hasOwnTrace:
      (value('--invocation-id', 'DBT_INVOCATION_ID') ?? value('--parent-span-id', 'DBT_PARENT_SPAN_ID')) !== undefined,
  };
}

function flagValue(command: readonly string[], flag: string): string | undefined {
  const at = command.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const word = command[at];
  if (word === undefined) return undefined;
  return word === flag ? command[at + 1] : word.slice(flag.length + 1);
}

/** A project's own file, by which its folder is known. */
export const PROJECT_FILE = 'dbt_project.yml';

/**
 * The folder of the engine's project: the one in its arguments, else the working folder or the nearest one above it that is
 * a project; `undefined` where none is.
 */
export function findProjectFolder({ projectDir }: EngineSwitches, workingDir: string): string | undefined {
  if (projectDir !== undefined) return resolve(workingDir, projectDir);
  for (let folder = workingDir; ; folder = dirname(folder)) {
    if (existsSync(join(folder, PROJECT_FILE))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** The JSONL file of a command that the engine writes. */
export interface EngineFile {
  readonly path: string;
  /** Its end before the command began: the engine appends. `undefined` for its beginning. */
  readonly from: TailPosition | undefined;
  /** Whether it is the user's own, which other commands write to as well. */
  readonly isShared: boolean;
}

/**
 * Where the engine writes the file that the user asked for: `<log path>/NAME`, the log path being `logs` in the project
 * folder unless its arguments name one. `undefined` where the user asked for none.
 */
export function findUserFile(switches: EngineSwitches, workingDir: string): string | undefined {
  const { fileName, logPath = 'logs' } = switches;
  if (fileName === undefined) return undefined;
  const project = findProjectFolder(switches, workingDir) ?? workingDir;
  return resolve(project, logPath, fileName);
}
