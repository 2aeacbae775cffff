import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { guest, WaitingRoom, type Guest } from '../support/waiting-room.ts';

let room: WaitingRoom;

beforeAll(async () => {
  room = await WaitingRoom.open('model-floors.config.json');
});
afterAll(async () => room.close());

const priority = (value: string): Record<string, string> => ({ 'x-llamaswap-priority': value });
/** Runs on a model that none of the others wants: being loaded counts ten points, as much as one of X-Priority. */
const elsewhere = guest('elsewhere', {}, { model: 'demo-embed', input: 'x' }, '/v1/embeddings');
const orderOf = async (guests: Guest[], running?: Guest): Promise<string[]> =>
  (await room.queueUp(guests, undefined, running)).order.slice(1);

/** A guest at one of the places where a model is named; the model's floor is +5. */
type Route = (name: string, headers: Record<string, string>) => Guest;

function form(path: string, fields: Record<string, string>): Route {
  return (name, headers) => {
    const body = new FormData();
    for (const [field, value] of Object.entries({ prompt: name, size: '1x1', ...fields })) {
      body.append(field, value);
    }
    body.append('image', new Blob(['png']), 'a.png');
    return {
      name,
      path,
      init: { method: 'POST', headers: { 'x-test-name': name, ...headers }, body },
    };
  };
}

const routes: [string, Route][] = [
  ['in a JSON body', (name, headers) => guest(name, headers, { model: 'demo-chat-large' })],
  ['in a multipart body', form('/v1/images/edits', { model: 'demo-image' })],
  ['in the query of a multipart request', form('/v1/images/edits?model=demo-image', {})],
  [
    'in the query of a GET',
    (name, headers) => ({
      name,
      path: '/v1/audio/voices?model=demo-audio',
      init: { headers: { 'x-test-name': name, ...headers } },
    }),
  ],
  [
    'below /upstream',
    (name, headers) =>
      guest(
        name,
        headers,
        { prompt: name, size: '1x1' },
        '/upstream/demo-image/v1/images/generations',
      ),
  ],
  [
    'below /upstream with a slash in its id',
    (name, headers) => guest(name, headers, {}, '/upstream/demo/org-chat/v1/chat/completions'),
  ],
];

describe.each(routes)('a model named %s', (_, route) => {
  test.each<[string, Record<string, string>, string]>([
    ['no header: its floor', {}, '50'],
    ['a header of -10: max() is its floor of +5', { 'x-priority': '-10' }, '50'],
    ['a header of +8: max() is the header', { 'x-priority': '8' }, '80'],
    ['batch by the other header: its floor', priority('batch'), '50'],
    ['interactive by name: the name', priority('Interactive'), '100'],
    ['an unreadable header: its floor', priority('1e2'), '50'],
  ])('ranks with %s', async (__, headers, base) => {
    const served = await room.serve(route('ranked', headers));
    expect(served.headers.get('x-berth-priority')).toBe(base);
    expect(served.headers.get('x-berth-band')).toBe(Number(base) < 50 ? 'normal' : 'interactive');
  });

  test('low enqueued first, high second: high is granted first', async () => {
    const low = guest('low', { 'x-priority': '4' });
    const floored = route('high', { 'x-priority': '-10' });
    expect(await orderOf([low, floored], elsewhere)).toEqual(['high', 'low']);
    const high = guest('high', { 'x-priority': '10' });
    expect(await orderOf([route('low', {}), high], elsewhere)).toEqual(['high', 'low']);
  });
});

describe('the number is the interface', () => {
  test('any integer works, and higher goes first', async () => {
    const values = ['-10000', '-777', '-1', '0', '+1', '42', '250', '9999'];
    const guests = values.map((value) =>
      guest(value, { ...priority(value), 'x-berth-member': value }),
    );
    const { order, served } = await room.queueUp(guests);
    expect(order.slice(1)).toEqual(values.toReversed());
    expect(served.map(({ headers }) => headers.get('x-berth-priority'))).toEqual(
      values.map((value) => String(Number(value))),
    );
  });

  test('aliases resolve to their numbers in any case', async () => {
    const values = { batch: '-100', NORMAL: '0', ' Interactive ': '100' };
    const bases = Object.keys(values).map(async (value) => {
      const served = await room.serve(guest('alias', priority(value)));
      return served.headers.get('x-berth-priority');
    });
    expect(await Promise.all(bases)).toEqual(Object.values(values));
  });

  test('-98, -99 and -100 without tiers run in that order', async () => {
    for (const member of [(): string => 'one', (value: string): string => value]) {
      const guests = ['-100', '-99', '-98'].map((value) =>
        guest(value, { ...priority(value), 'x-berth-member': member(value) }),
      );
      expect(await orderOf(guests)).toEqual(['-98', '-99', '-100']);
    }
  });

  test('an absent, a repeated and an unreadable header mean 0', async () => {
    const bases = [{}, priority('high'), priority('100, 100')].map(async (headers) => {
      const served = await room.serve(guest('zero', headers));
      return served.headers.get('x-berth-priority');
    });
    expect(await Promise.all(bases)).toEqual(['0', '0', '0']);
  });
});

describe('composition', () => {
  test.each(['batch', 'normal', 'interactive'])(
    'max goes before pro before free within %s',
    async (band) => {
      const guests = ['free', 'pro', 'max'].map((tier) =>
        guest(tier, { ...priority(band), 'x-berth-member': tier, 'x-berth-tier': tier }),
      );
      expect(await orderOf(guests)).toEqual(['max', 'pro', 'free']);
    },
  );

  test('a max member\u2019s batch job stays below any normal one, and max normal below free interactive', async () => {
    const of = (name: string, band: string, tier: string): Guest =>
      guest(name, { ...priority(band), 'x-berth-member': name, 'x-berth-tier': tier });
    const guests = [
      of('max batch', 'batch', 'max'),
      of('max normal', 'normal', 'max'),
      of('free normal', 'normal', 'free'),
      of('free interactive', 'interactive', 'free'),
    ];
    expect(await orderOf(guests)).toEqual([
      'free interactive',
      'max normal',
      'free normal',
      'max batch',
    ]);
  });

  test('affinity goes first among equals and never lifts batch over interactive', async () => {
    const of = (name: string, band: string, model: string): Guest =>
      guest(name, { ...priority(band), 'x-berth-member': name }, { model });
    const guests = [
      of('batch cold', 'batch', 'demo-embed'),
      of('batch warm', 'batch', 'demo-chat-small'),
      of('interactive cold', 'interactive', 'demo-embed'),
    ];
    expect(await orderOf(guests.slice(0, 2))).toEqual(['batch warm', 'batch cold']);
    expect((await orderOf(guests))[0]).toBe('interactive cold');
  });

  test('equal priority of one identity keeps arrival order', async () => {
    const names = ['1', '2', '3', '4', '5', '6'];
    expect(await orderOf(names.map((name) => guest(name, priority('7'))))).toEqual(names);
  });

  test('one member\u2019s many batch jobs do not starve another\u2019s', async () => {
    const of = (member: string, count: number): Guest[] =>
      Array.from({ length: count }, (_, index) =>
        guest(`${member}${index + 1}`, { ...priority('batch'), 'x-berth-member': member }),
      );
    const order = await orderOf([...of('a', 12), ...of('b', 3)]);
    expect(order.findIndex((name) => name === 'b3')).toBeLessThan(7);
  });
});

describe('priority decides only what goes next', () => {
  test('a running low-priority job is not interrupted by one of high priority', async () => {
    const low = guest('running low', priority('-10000'));
    const guests = [guest('low', priority('-5')), guest('high', priority('10000'))];
    const { order, first } = await room.queueUp(
      guests,
      async () => {
        await room.waiting(2);
        expect(room.demo.record.at(-1)?.aborted).toBe(false);
      },
      low,
    );
    expect(order).toEqual(['running low', 'high', 'low']);
    expect(first.aborted).toBe(false);
    expect(first.status).toBe(200);
    expect(room.demo.overlaps).toBe(0);
  });
});
