/** Text from elsewhere as a terminal may show it: one line, without anything that would steer the terminal. */
export const printable = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim();
