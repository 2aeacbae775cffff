/** Longest event that is kept, in characters; longer ones (a log's history) are skipped. */
const MOST = 4_000_000;

/** The data of each event of an event stream, as it comes; several data lines are joined by a line end. */
export async function* eventData(body: AsyncIterable<Buffer>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let line = '';
  let data: string[] = [];
  let size = 0;
  for await (const piece of body) {
    const lines = (line + decoder.decode(piece, { stream: true })).split('\n');
    line = lines.pop() ?? '';
    if (line.length > MOST) {
      // What is left of such a line no longer begins like a field, so nobody reads it.
      line = '-';
      size = MOST;
    }
    for (const each of lines) {
      const text = each.endsWith('\r') ? each.slice(0, -1) : each;
      if (text.startsWith('data:')) {
        size += text.length;
        if (size <= MOST) data.push(text.slice(text.startsWith('data: ') ? 6 : 5));
      } else if (text === '') {
        if (data.length > 0 && size <= MOST) yield data.join('\n');
        data = [];
        size = 0;
      }
    }
  }
}
