/** A chat request of the demo model server, recognisable there by its `x-test-name`. */
export function chat(
  text: string,
  extra: Record<string, unknown> = {},
): RequestInit & { body: string } {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-test-name': text.slice(0, 100) },
    body: JSON.stringify({
      model: 'demo-chat-small',
      messages: [{ role: 'user', content: text }],
      max_tokens: 4,
      ...extra,
    }),
  };
}

/** The same with a priority header. */
export function ranked(
  text: string,
  priority: string,
  extra: Record<string, unknown> = {},
): RequestInit & { body: string } {
  const request = chat(text, extra);
  return {
    ...request,
    headers: {
      'content-type': 'application/json',
      'x-test-name': text.slice(0, 100),
      'x-llamaswap-priority': priority,
    },
  };
}

/** The test names of generations that were not aborted, in the order in which they began. */
export function namesOf(
  generations: readonly { aborted: boolean; headers: Readonly<Record<string, unknown>> }[],
): string[] {
  return generations
    .filter(({ aborted }) => !aborted)
    .map(({ headers }) => String(headers['x-test-name']));
}
