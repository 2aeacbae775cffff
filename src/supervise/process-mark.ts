import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * What tells a process from a later one that was given the same id: when it started, as the system
 * writes it. Undefined when no process has this id or it has ended and only waits to be collected.
 */
export function processMark(pid: number): string | undefined {
  return process.platform === 'linux' ? linuxMark(pid) : psMark(pid);
}

function linuxMark(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command's name stands in parentheses and may hold anything; the state is the next field.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, started] = [fields[0], fields[19]];
    return state === 'Z' || state === 'X' ? undefined : started;
  } catch {
    return undefined;
  }
}

function psMark(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '');
  } catch {
    return undefined;
  }
}
