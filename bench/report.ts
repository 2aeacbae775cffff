import type { Row } from './goals.ts';
import type { Figures } from './pass.ts';
import { spread } from './statistics.ts';

/** One column of a table: a setting, and what its passes measured. */
export interface Column<Name extends string> {
  readonly name: Name;
  readonly passes: readonly Figures[];
}

/** A Markdown table, columns padded so that it also reads well in a terminal; rows that nothing was measured for are left out. */
export function table<Name extends string>(
  rows: readonly Row<Name>[],
  columns: readonly Column<Name>[],
): string {
  const lines = rows
    .map((row) => [
      row.title,
      row.unit,
      ...columns.map((column) => cell(row, column)),
      goalText(row),
    ])
    .filter(([, , ...cells]) => cells.slice(0, columns.length).some((text) => text !== ''));
  const head = [
    'figure: median of the passes (least-most)',
    'unit',
    ...columns.map(({ name }) => name),
    'goal',
  ];
  const widths = head.map((_, column) =>
    Math.max(...[head, ...lines].map((line) => line[column]?.length ?? 0)),
  );
  const padded = (line: readonly string[]): string =>
    `| ${line.map((text, column) => text.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const rule = widths.map((width) => '-'.repeat(width));
  return [head, rule, ...lines].map(padded).join('\n');
}

function cell<Name extends string>(row: Row<Name>, { name, passes }: Column<Name>): string {
  const figures = passes.map(row.of);
  if (figures.some(Number.isNaN)) return '';
  const { median, least, most } = spread(figures);
  const text = least === most ? show(median) : `${show(median)} (${show(least)}-${show(most)})`;
  const goal = row.goal?.[name];
  if (goal === undefined) return text;
  return `${text} ${(row.isLeast === true ? median >= goal : median <= goal) ? 'met' : 'missed'}`;
}

function goalText<Name extends string>({ goal = {}, isLeast }: Row<Name>): string {
  const bounds = [...new Set(Object.values(goal))].join('; ');
  return bounds === '' ? '' : `at ${isLeast === true ? 'least' : 'most'} ${bounds}`;
}

function show(value: number): string {
  if (Math.abs(value) >= 100) return String(Math.round(value));
  return value.toFixed(Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 0.1 ? 2 : 4);
}
