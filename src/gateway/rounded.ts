/** Rounded to a thousandth: what is shown of seconds and points. */
export const rounded = (value: number): number => Math.round(value * 1000) / 1000;
