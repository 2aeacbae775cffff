/** Which times a series holds: runs of one model on one route, cold or warm, or loads of one model. */
export type SeriesName =
  | {
      readonly of: 'run';
      readonly model: string;
      readonly route: string;
      readonly kind: string;
      readonly cold: boolean;
    }
  | { readonly of: 'load'; readonly model: string };

/** A series' name as Redis holds it. */
export function formatSeries(name: SeriesName): string {
  return JSON.stringify(
    name.of === 'run'
      ? ['run', name.model, name.route, name.kind, name.cold]
      : ['load', name.model],
  );
}

/** The name that was formatted; undefined for one that this version does not know. */
export function parseSeries(text: string): SeriesName | undefined {
  let parts: unknown;
  try {
    parts = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(parts)) return undefined;
  const [of, model, route, kind, cold] = parts as unknown[];
  if (typeof model !== 'string') return undefined;
  if (of === 'load' && parts.length === 2) return { of, model };
  const isRun = typeof route === 'string' && typeof kind === 'string' && typeof cold === 'boolean';
  return of === 'run' && isRun ? { of, model, route, kind, cold } : undefined;
}
