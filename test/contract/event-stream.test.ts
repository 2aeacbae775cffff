import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { EventStreamReader } from '../../src/gateway/event-stream.ts';
import type { StreamEvent } from '../../src/gateway/event-stream.ts';
import { JsonBalance } from '../../src/gateway/json-balance.ts';

function read(pieces: readonly Buffer[]): { events: StreamEvent[]; borders: number[] } {
  const events: StreamEvent[] = [];
  const reader = new EventStreamReader((event) => events.push(event));
  const borders: number[] = [];
  let offset = 0;
  for (const piece of pieces) {
    const border = reader.push(piece);
    if (border >= 0) borders.push(offset + border);
    offset += piece.length;
  }
  return { events, borders };
}

const cutAt = (bytes: Buffer, cuts: readonly number[]): Buffer[] => {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted(
    (a, b) => a - b,
  );
  return places.slice(1).map((place, index) => bytes.subarray(places[index], place));
};

describe('an event stream that passes by', () => {
  const text = [
    ': hello\n',
    'data: {"a":"北🌍"}\n\n',
    'event: ping\r\ndata: {}\r\n\r\n',
    'error: {"code":400}\n\n',
    'data: one\ndata: two\n\n',
    'id: 7\n\n',
    'data: [DONE]\n\n',
  ].join('');
  const events = [
    { name: '', data: '{"a":"北🌍"}', hasErrorField: false },
    { name: 'ping', data: '{}', hasErrorField: false },
    { name: '', data: '', hasErrorField: true },
    { name: '', data: 'one\ntwo', hasErrorField: false },
    { name: '', data: '', hasErrorField: false },
    { name: '', data: '[DONE]', hasErrorField: false },
  ];

  test('is read the same however it is cut, and every border lies between two events', () => {
    const bytes = Buffer.from(text);
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 40 }), (cuts) => {
        const seen = read(cutAt(bytes, cuts));
        expect(seen.events).toEqual(events);
        for (const border of seen.borders) {
          const whole = [bytes.subarray(0, border), Buffer.from('data: put in\n\n')];
          expect(read(whole).events.at(-1)).toEqual({
            name: '',
            data: 'put in',
            hasErrorField: false,
          });
          expect(read([...whole, bytes.subarray(border)]).events).toHaveLength(events.length + 1);
        }
        expect(seen.borders.at(-1)).toBe(bytes.length);
      }),
    );
  });

  test('understands lines that end in a carriage return alone', () => {
    expect(read([Buffer.from('data: a\r'), Buffer.from('\rdata: b\r\r')]).events).toHaveLength(2);
  });

  test('costs no memory for a line of many megabytes, which has no border inside', () => {
    const events: StreamEvent[] = [];
    const reader = new EventStreamReader((event) => events.push(event));
    const piece = Buffer.alloc(1024 * 1024, 'x');
    expect(reader.push(Buffer.from('data: '))).toBe(-1);
    for (let sent = 0; sent < 12; sent += 1) expect(reader.push(piece)).toBe(-1);
    expect(reader.atBorder).toBe(false);
    expect(reader.push(Buffer.from('\n\n'))).toBe(2);
    expect(events[0]?.data.length).toBeLessThan(32 * 1024);
  });

  test('counts an event without its blank line when it ends', () => {
    const events: StreamEvent[] = [];
    const reader = new EventStreamReader((event) => events.push(event));
    reader.push(Buffer.from('data: [DONE]'));
    reader.end();
    expect(events).toEqual([{ name: '', data: '[DONE]', hasErrorField: false }]);
  });
});

test('JSON is whole exactly when the last of its bytes has come, however it is cut', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.array(fc.nat()), fc.nat(), (value, cuts, end) => {
      const bytes = Buffer.from(JSON.stringify([value, 'a"\\\\', '\\']));
      const whole = new JsonBalance();
      for (const piece of cutAt(bytes, cuts)) whole.push(piece);
      expect(whole.isWhole).toBe(true);
      const short = new JsonBalance();
      short.push(bytes.subarray(0, end % bytes.length));
      expect(short.isWhole).toBe(false);
    }),
  );
});
