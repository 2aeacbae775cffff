import { expect, test } from '@jest/globals';
import { eventData } from '../../src/adapters/upstream/event-data.ts';

async function read(...pieces: (string | Buffer)[]): Promise<string[]> {
  const body = async function* (): AsyncIterable<Buffer> {
    for (const piece of pieces) yield await Promise.resolve(Buffer.from(piece));
  };
  const found: string[] = [];
  for await (const data of eventData(body())) found.push(data);
  return found;
}

test('each event is told when it is whole, with or without blanks and carriage returns', async () => {
  const text =
    'event:message\ndata:{"a":1}\n\n: comment\r\ndata: two\r\ndata:lines\r\n\r\ndata:not whole\n';
  expect(await read(text)).toEqual(['{"a":1}', 'two\nlines']);
});

test('a stream means the same however it is cut', async () => {
  const bytes = Buffer.from('data:größer\n\ndata: x\n\n');
  expect(await read(...[...bytes].map((byte) => Buffer.from([byte])))).toEqual(['größer', 'x']);
});

test('an event of millions of characters is skipped, the next one is not', async () => {
  const long = Array.from({ length: 50 }, () => 'x'.repeat(100_000));
  expect(await read('data:', ...long, '\n', '\n', 'data:next\n\n')).toEqual(['next']);
});
