import Table from 'cli-table3';
import { printable } from './printable.ts';

const NO_LINES = Object.fromEntries(
  ['top', 'bottom', 'left', 'mid', 'right'].flatMap((side) =>
    [side, `${side}-mid`, `${side}-left`, `${side}-right`].map((name) => [name, '']),
  ),
);

/** Rows as a table without lines, its head first, each line with an end; cells are made printable. */
export function textTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({
    head: [...head],
    chars: { ...NO_LINES, middle: '  ' },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  table.push(...rows.map((row) => row.map(printable)));
  return table
    .toString()
    .split('\n')
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}
