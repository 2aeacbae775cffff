import { ROWS } from './goals.ts';
import type { Row } from './goals.ts';
import type { Figures, Fsync } from './pass.ts';
import { spread } from './statistics.ts';

/** One cell of the report. */
export interface Cell {
  row: Row;
  fsync: Fsync;
  text: string;
  verdict: '' | 'met' | 'missed';
}

/** All cells of one setting, from the figures of its passes. */
export function cells(fsync: Fsync, passes: readonly Figures[]): Cell[] {
  return ROWS.map((row) => {
    const { median, least, most } = spread(passes.map(row.of));
    const goal = row.goal?.[fsync];
    const isMet = goal === undefined || (row.isLeast === true ? median >= goal : median <= goal);
    return {
      row,
      fsync,
      text: `${show(median)} (${show(least)}-${show(most)})`,
      verdict: goal === undefined ? '' : isMet ? 'met' : 'missed',
    };
  });
}

/** The whole report as a Markdown table, columns padded so that it also reads well in a terminal. */
export function table(everysec: readonly Cell[], always: readonly Cell[]): string {
  const lines = ROWS.map((row, index) => [
    row.title,
    row.unit,
    withVerdict(everysec[index]),
    withVerdict(always[index]),
    goalText(row),
  ]);
  const head = ['figure: median of the passes (least-most)', 'unit', 'everysec', 'always', 'goal'];
  const widths = head.map((_, column) =>
    Math.max(...[head, ...lines].map((line) => line[column]?.length ?? 0)),
  );
  const show = (line: readonly string[]): string =>
    `| ${line.map((text, column) => text.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [show(head), show(widths.map((width) => '-'.repeat(width))), ...lines.map(show)].join(
    '\n',
  );
}

const withVerdict = (cell: Cell | undefined): string =>
  cell === undefined ? '' : cell.verdict === '' ? cell.text : `${cell.text} ${cell.verdict}`;

function goalText({ goal, isLeast }: Row): string {
  if (goal === undefined) return '';
  const word = isLeast === true ? 'least' : 'most';
  return goal.everysec === goal.always
    ? `at ${word} ${goal.everysec}`
    : `at ${word} ${goal.everysec}; ${goal.always}`;
}

function show(value: number): string {
  if (Number.isNaN(value)) return '?';
  if (Math.abs(value) >= 100) return String(Math.round(value));
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}
