import type { FilmSummary } from '../gateway/film-view.ts';
import { etaText } from '../gateway/duration-text.ts';

/** One line on where a film stands. */
export function filmLine(film: FilmSummary): string {
  const { state, done, total, eta_seconds: eta, reason } = film;
  const parts = [
    `${state}${reason === null ? '' : ` (${reason})`}`,
    `${done} of ${total} shots done`,
    ...(eta === null || done === total ? [] : [`the rest in ${etaText(eta)}`]),
  ];
  return parts.join(', ');
}

/** How a person goes on with a film that stands still; undefined when it does not. */
export function filmAdvice({ state, id }: FilmSummary): string | undefined {
  if (state === 'failed')
    return `berth film retry ${id} tries that shot again, berth film skip ${id} goes on without it`;
  return state === 'paused' ? `berth film resume ${id} goes on` : undefined;
}
