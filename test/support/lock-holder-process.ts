import { acquireKernelLock } from '../../src/adapters/process/kernel-lock.ts';

/** Takes the lock named by its first argument for the owner in the second, says so, and stays. */
const [name = '', ownerLine = ''] = process.argv.slice(2);
const lock = await acquireKernelLock(name, ownerLine);
process.stdout.write('release' in lock ? 'held\n' : `${lock.heldBy}\n`);
// The lock alone does not keep a process alive.
setInterval(() => undefined, 1000);
