import { accessSync, constants, mkdirSync, realpathSync } from 'node:fs';
import { acquireKernelLock, type KernelLock } from '../adapters/process/kernel-lock.ts';
import { StartRefused } from '../adapters/process/start-refused.ts';

/** A DATA_DIR that this supervisor alone uses, until it releases it or ends. */
export interface HeldDataDir extends KernelLock {
  /** Its real path. */
  readonly dir: string;
}

/**
 * Makes DATA_DIR (0700) if it is missing and takes its lock, named from the real path so that two
 * names of one folder are one.
 *
 * @param ownerLine names this supervisor to a second one.
 * @throws StartRefused when it cannot be used, or a live supervisor uses it.
 */
export async function holdDataDir(dataDir: string, ownerLine: string): Promise<HeldDataDir> {
  const dir = usableFolder(dataDir);
  const lock = await acquireKernelLock(`data-dir:${dir}`, ownerLine);
  if ('heldBy' in lock) throw new StartRefused(`DATA_DIR ${dir} is in use by ${lock.heldBy}`);
  return { dir, release: lock.release.bind(lock) };
}

function usableFolder(dataDir: string): string {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const dir = realpathSync(dataDir);
    accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
    return dir;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartRefused(`DATA_DIR ${dataDir} cannot be used: ${reason}`);
  }
}
