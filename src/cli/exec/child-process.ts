import { spawn } from 'node:child_process';
import { errorCode } from '../../component/error-code.js';
import { fileMask } from '../../component/file-mask.js';
import type { Environment } from '../../config/environment.js';
import type { ChildEnding } from './child-ending.js';

/** A command that runs on the standard input, output and error of this process, in its process group. */
export interface ChildProcess {
  /** `undefined` where it could not be started. */
  readonly pid: number | undefined;
  readonly ended: Promise<ChildEnding>;
  /** Sends it a signal; does nothing once it has ended. */
  signal(signal: NodeJS.Signals): void;
}

/**
 * Starts a command as a shell would: found on the environment's PATH, a script without an interpreter line run by `sh`.
 * It inherits the descriptors themselves, so a terminal stays a terminal, and stays in the process group, so the terminal's
 * job control goes on to work.
 * @param extraDescriptors descriptors beyond standard error that it inherits, too
 */
export function startChild(
  [program = '', ...args]: readonly string[],
  environment: Environment,
  extraDescriptors: readonly number[] = [],
): ChildProcess {
  let child: ReturnType<typeof spawn>;
  try {
    child = fileMask.asCaller(() => spawn(program, args, { stdio: stdioOf(extraDescriptors), env: environment }));
  } catch (error) {
    // What the system refuses before it even looks: an argument list that is too long, for example.
    return { pid: undefined, ended: Promise.resolve(notStarted(program, error)), signal() {} };
  }
  const ended = new Promise<ChildEnding>((resolve) => {
    // Also each signal that may not be sent, to a program of another user for example, is such an event.
    child.on('error', (error) => {
      if (child.pid === undefined) resolve(notStarted(program, error));
    });
    child.once('exit', (exitCode, signal) => {
      resolve(signal === null ? { kind: 'exited', exitCode: exitCode ?? 0 } : { kind: 'killed', signal });
    });
  });
  // Node 20 sends it to the process group of this one until it reports that no more files could be opened for a child.
  return { pid: child.pid, ended, signal: (signal) => void (child.pid !== undefined && child.kill(signal)) };
}

function stdioOf(extraDescriptors: readonly number[]): ('inherit' | 'ignore' | number | null)[] {
  const stdio: ('inherit' | 'ignore' | number | null)[] = ['inherit', 'inherit', 'inherit'];
  for (const descriptor of extraDescriptors) stdio[descriptor] = descriptor;
  return stdio;
}

function notStarted(program: string, error: unknown): ChildEnding {
  const code = errorCode(error);
  if (code === 'ENOENT') return { kind: 'notStarted', exitCode: 127, reason: `${program}: command not found` };
  const reason = code === 'EACCES' ? 'permission denied; is it an executable file?' : (code ?? String(error));
  return { kind: 'notStarted', exitCode: 126, reason: `${program}: cannot be run: ${reason}` };
}
