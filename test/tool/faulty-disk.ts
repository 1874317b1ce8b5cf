import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What a disk may do (`test/fixture/faults`). */
const MODES = { healthy: 0, failsWritesAndSyncs: 1, failsSyncs: 2, failsReads: 5 } as const;

const CONTROL_BYTES = 4_096;
const PREFIX_AT = 16;

/** A disk that fails for the programs that are started with its environment, for files below a path. Needs a C compiler. */
export class FaultyDisk {
  /** @returns `undefined` where nothing can be compiled or loaded so. */
  static create(): FaultyDisk | undefined {
    const folder = mkdtempSync(join(tmpdir(), 'run-bridge-faults-'));
    try {
      const library = join(folder, 'faults.so');
      execFileSync('cc', ['-shared', '-fPIC', '-o', library, 'test/fixture/faults/faults.c', '-ldl'], {
        stdio: 'ignore',
      });
      return new FaultyDisk(folder, library);
    } catch {
      rmSync(folder, { recursive: true });
      return undefined;
    }
  }

  /** Of a program that is to meet the faults. */
  readonly env: Readonly<Record<string, string>>;
  private readonly control: string;

  private constructor(
    private readonly folder: string,
    library: string,
  ) {
    this.control = join(folder, 'control');
    this.env = { LD_PRELOAD: library, SHIM_CTL: this.control };
    writeFileSync(this.control, Buffer.alloc(CONTROL_BYTES));
  }

  /** Applies at once, also to files that are open. */
  fail(mode: keyof typeof MODES, path: string): void {
    const control = Buffer.alloc(CONTROL_BYTES);
    control.writeInt32LE(MODES[mode], 0);
    control.write(path, PREFIX_AT, 'utf8');
    // In place: programs have it mapped.
    writeFileSync(this.control, control, { flag: 'r+' });
  }

  heal(): void {
    this.fail('healthy', '');
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
