import type { Rules } from '../policy/rules.ts';
import type { Outcome } from './report.ts';

const plotWidth = 1200;
const labelWidth = 150;
const rowHeight = 18;
const gap = 30;
const colours = ['#c2410c', '#2563eb', '#64748b', '#15803d', '#7e22ce', '#a16207'];

/** The simulations as an SVG picture: a row for each member, a bar for each run, swaps in black. */
export function timelineOf(outcomes: readonly Outcome[], rules: Rules): string {
  const endMs = Math.max(1, ...outcomes.map(({ simulation }) => simulation.endMs));
  const bands = Object.entries(rules.bands).sort((a, b) => b[1] - a[1]);
  const colourOf = new Map(
    bands.map(([band], index) => [band, colours[index % colours.length] ?? 'grey']),
  );
  const x = (ms: number): string => (labelWidth + (ms / endMs) * plotWidth).toFixed(2);
  const parts: string[] = [];
  let top = 20;
  for (const { name, simulation } of outcomes) {
    parts.push(text(4, top, name, 'bold'));
    const members = [...new Set<string>(simulation.ran.map(({ job }) => job.member))];
    members.sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
    const rowOf = new Map(members.map((member, row) => [member, top + 8 + row * rowHeight]));
    for (const [member, y] of rowOf) parts.push(text(4, y + 12, member));
    for (const { job, startMs, endMs: runEndMs, swapMs } of simulation.ran) {
      const y = rowOf.get(job.member) ?? top;
      const waitedMinutes = ((startMs - job.arrivalMs) / 60_000).toFixed(1);
      const title = `${job.member}, ${job.band}, ${job.model}: waited ${waitedMinutes} min`;
      parts.push(bar(x(startMs), x(startMs + swapMs), y, 'black', title));
      parts.push(bar(x(startMs + swapMs), x(runEndMs), y, colourOf.get(job.band) ?? 'grey', title));
    }
    top += 8 + members.length * rowHeight + gap;
  }
  parts.push(...axis(endMs, x, top));
  bands.forEach(([band], index) => {
    parts.push(text(labelWidth + index * 120, top + 34, band, 'normal', colourOf.get(band)));
  });
  const width = labelWidth + plotWidth + 20;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top + 44}" ` +
    `font-family="sans-serif" font-size="12">\n` +
    `<rect width="100%" height="100%" fill="white"/>\n${parts.join('\n')}\n</svg>\n`
  );
}

function bar(from: string, to: string, y: number, fill: string, title: string): string {
  const width = (Number(to) - Number(from)).toFixed(2);
  if (Number(width) === 0) return '';
  return (
    `<rect x="${from}" y="${y}" width="${width}" height="${rowHeight - 4}" fill="${fill}">` +
    `<title>${escape(title)}</title></rect>`
  );
}

function text(x: number, y: number, words: string, weight = 'normal', fill = 'black'): string {
  return `<text x="${x}" y="${y}" font-weight="${weight}" fill="${fill}">${escape(words)}</text>`;
}

/** Hours, or minutes while there is less than two hours to show; about ten marks. */
function axis(endMs: number, x: (ms: number) => string, y: number): string[] {
  const [unitMs, unit] = endMs < 7_200_000 ? [60_000, 'min'] : [3_600_000, 'h'];
  const step = Math.max(1, Math.ceil(endMs / unitMs / 10));
  const marks: string[] = [];
  for (let mark = 0; mark * unitMs <= endMs; mark += step) {
    const at = Number(x(mark * unitMs));
    marks.push(`<line x1="${at}" x2="${at}" y1="14" y2="${y}" stroke="#ddd"/>`);
    marks.push(text(at + 2, y + 12, `${mark} ${unit}`));
  }
  return marks;
}

function escape(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
