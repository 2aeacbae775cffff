import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';

const page = fileURLToPath(new URL('../docs/operations/capacity.md', import.meta.url));
const BEGIN = '<!-- bench:begin, written by npm run bench -->';
const END = '<!-- bench:end -->';

/**
 * What the figures were measured on, as one line. Ask before measuring: the load average then is that of others, whose work
 * ends up in the figures.
 */
export function circumstances(): string {
  const redis = /v=(\S+)/.exec(output('redis-server', ['--version']))?.[1] ?? 'unknown';
  const cores = cpus();
  const changed = output('git', ['status', '--porcelain', '--', 'src', 'workers', 'bench']);
  const commit = `${output('git', ['rev-parse', '--short', 'HEAD']) || 'unknown'}${changed === '' ? '' : ' with uncommitted changes'}`;
  return [
    new Date().toISOString().slice(0, 10),
    `commit ${commit}`,
    `${cores.length} cores (${cores[0]?.model.trim() ?? 'unknown'})`,
    `${Math.round(totalmem() / 1e9)} GB RAM`,
    `Node ${process.versions.node}`,
    `Redis ${redis}`,
    `load average before it ${(loadavg()[0] ?? 0).toFixed(1)}`,
  ].join(', ');
}

/** Replaces the generated section of docs/operations/capacity.md. */
export function writeCapacityPage(section: string): void {
  const text = readFileSync(page, 'utf8');
  const from = text.indexOf(BEGIN);
  const to = text.indexOf(END);
  if (from < 0 || to < from) throw new Error(`${page} has lost the marks of its generated section`);
  writeFileSync(page, `${text.slice(0, from)}${BEGIN}\n\n${section}\n\n${text.slice(to)}`);
}

function output(program: string, args: readonly string[]): string {
  try {
    return execFileSync(program, [...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return '';
  }
}
