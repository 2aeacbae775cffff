/** A server-sent event that bears its type as its name too, as Anthropic's and OpenAI's newer streams do. */
export function namedEvent(event: { readonly type: string }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
