import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { GatewayError } from '../../src/errors.ts';
import { Gatekeeper } from '../../src/ingress/gatekeeper.ts';
import { identityOf } from '../../src/ingress/identity.ts';
import type { Identity } from '../../src/ingress/identity.ts';
import { KeyRing } from '../../src/ingress/key-ring.ts';
import type { AccessKey } from '../../src/ingress/key-ring.ts';
import { headersUpstream, UpstreamHeaders } from '../../src/ingress/upstream-headers.ts';
import { incomingRequest } from '../support/incoming-request.ts';

type Headers = readonly (readonly [string, string])[];

function aKey(name: string, extra: Partial<AccessKey> = {}): AccessKey {
  return {
    name,
    sha256: createHash('sha256').update(`secret-${name}`).digest('hex'),
    member: name,
    tier: 'free',
    defaultPriority: 0,
    maxPriority: 100,
    mayAssert: [],
    isAdmin: false,
    waitingPerMember: null,
    bytesPerMember: null,
    ...extra,
  };
}

const ann = aKey('ann', { tier: 'pro', defaultPriority: -100, waitingPerMember: 3 });
const mort = aKey('mort', { mayAssert: ['member', 'tier'], maxPriority: null });
const pet = aKey('pet', { mayAssert: ['member'], tier: 'max' });
const root = aKey('root', { isAdmin: true, maxPriority: null });
const bearer = (name: string) => ['Authorization', `Bearer secret-${name}`] as const;
const basic = (pair: string) =>
  ['Authorization', `Basic ${Buffer.from(pair).toString('base64')}`] as const;

function gate(keys: readonly AccessKey[] = [ann, mort, pet, root], allowOpen = false) {
  const ignored: string[] = [];
  const ring = new KeyRing(keys);
  const gatekeeper = new Gatekeeper({
    keys: ring,
    allowOpen,
    identity: {
      tiers: ['free', 'pro', 'max'],
      caps: { waitingPerMember: 500, bytesPerMember: 4096 },
      onIgnored: (header) => ignored.push(header),
    },
  });
  const enter = (
    headers: Headers,
    options: Parameters<typeof incomingRequest>[1] = {},
  ): Identity => {
    const request = incomingRequest(headers, options);
    gatekeeper.admit(request);
    return identityOf(request);
  };
  const refusal = (headers: Headers, options: Parameters<typeof incomingRequest>[1] = {}) => {
    try {
      enter(headers, options);
    } catch (error) {
      return error instanceof GatewayError ? error.code : error;
    }
    return 'admitted';
  };
  return { enter, refusal, ignored, ring };
}

describe('the key a request shows', () => {
  test.each<[string, Headers]>([
    ['Bearer', [bearer('ann')]],
    ['bearer in lower case', [['authorization', 'bearer secret-ann']]],
    ['Basic with any user name', [basic('whoever:secret-ann')]],
    ['Basic without a user name', [basic(':secret-ann')]],
    ['x-api-key', [['X-Api-Key', 'secret-ann']]],
    [
      'x-api-key beside an Authorization of another scheme',
      [
        ['Authorization', 'Digest x="y"'],
        ['x-api-key', 'secret-ann'],
      ],
    ],
  ])('is taken from %s', (_form, headers) => {
    expect(gate().enter(headers)).toMatchObject({ keyName: 'ann', member: 'ann', tier: 'pro' });
  });

  test.each<[string, Headers]>([
    ['nothing', []],
    ['an unknown Bearer', [bearer('eve')]],
    ['an unknown x-api-key', [['x-api-key', 'secret-eve']]],
    ['an unknown Basic', [basic('ann:secret-eve')]],
    ['the key as the user name', [basic('secret-ann:')]],
    ['a Basic that is no pair', [basic('secret-ann')]],
    ['an empty Bearer', [['Authorization', 'Bearer ']]],
    ['a prefix of a key', [['x-api-key', 'secret-an']]],
    ['more than a key', [['x-api-key', 'secret-annn']]],
    ['the hash of a key', [['x-api-key', ann.sha256]]],
    ['another case', [['x-api-key', 'SECRET-ANN']]],
    ['a bad Bearer beside a good x-api-key', [bearer('eve'), ['x-api-key', 'secret-ann']]],
    ['quotes and wildcards', [['x-api-key', "' OR '1'='1*"]]],
  ])('%s: unauthorized', (_form, headers) => {
    expect(gate().refusal(headers)).toBe('unauthorized');
  });

  test('shown twice in one header is refused, even with the same value', () => {
    expect(gate().refusal([bearer('ann'), bearer('ann')])).toBe('bad_request');
    expect(
      gate().refusal([
        ['x-api-key', 'secret-ann'],
        ['x-api-key', 'x'],
      ]),
    ).toBe('bad_request');
  });

  test('may hold a colon and characters beyond ASCII', () => {
    const sha256 = createHash('sha256').update('a:b:ü').digest('hex');
    const { enter } = gate([aKey('odd', { sha256 })]);
    for (const header of [basic('u:a:b:ü'), ['x-api-key', 'a:b:ü'] as const])
      expect(enter([header]).keyName).toBe('odd');
  });

  test('is found wherever in the list it stands, and forgotten with it', () => {
    const { enter, refusal, ring } = gate([
      ...Array.from({ length: 50 }, (_, at) => aKey(`k${at}`)),
    ]);
    for (const at of [0, 25, 49]) expect(enter([bearer(`k${at}`)]).keyName).toBe(`k${at}`);
    ring.replace([ann]);
    expect(refusal([bearer('k0')])).toBe('unauthorized');
    expect(enter([bearer('ann')]).keyName).toBe('ann');
  });
});

describe('who a request is for', () => {
  const says: Headers = [
    ['X-Berth-Member', 'bob'],
    ['X-Berth-Tier', 'max'],
  ];

  test('an ordinary key is its own member; what it asserts is ignored and counted', () => {
    const { enter, ignored } = gate();
    expect(enter([bearer('ann'), ...says])).toEqual({
      member: 'ann',
      tier: 'pro',
      keyName: 'ann',
      isAdmin: false,
      mayAssert: [],
      defaultPriority: -100,
      maxPriority: 100,
      caps: { waiting: 3, bytes: 4096 },
    });
    expect(ignored).toEqual(['member', 'tier']);
  });

  test('a trusted key speaks for others, and for itself when it names nobody', () => {
    const { enter, ignored } = gate();
    expect(enter([bearer('mort'), ...says])).toMatchObject({
      member: 'bob',
      tier: 'max',
      maxPriority: null,
    });
    expect(enter([bearer('mort')])).toMatchObject({ member: 'mort', tier: 'free' });
    expect(enter([bearer('mort'), ['X-Berth-Member', '']])).toMatchObject({ member: 'mort' });
    expect(ignored).toEqual([]);
  });

  test('a key is believed only what it may assert', () => {
    const { enter, ignored } = gate();
    expect(enter([bearer('pet'), ...says])).toMatchObject({ member: 'bob', tier: 'max' });
    expect(enter([bearer('pet'), says[0]!, ['X-Berth-Tier', 'free']]).tier).toBe('max');
    expect(ignored).toEqual(['tier', 'tier']);
  });

  test('an admin key may do everything but speak for others', () => {
    const { enter } = gate();
    expect(enter([bearer('root'), ...says])).toMatchObject({ member: 'root', isAdmin: true });
  });

  test.each([
    ['PRO', 'pro'],
    ['gold', 'free'],
    ['constructor', 'free'],
    ['', 'free'],
  ])('the tier %j means %s', (text, tier) => {
    expect(gate().enter([bearer('mort'), ['X-Berth-Tier', text]]).tier).toBe(tier);
  });

  test('a tier that came twice is nobody’s, a member that came twice or is endless is refused', () => {
    const { enter, refusal } = gate();
    const twice = (name: string, value: string): Headers => [
      bearer('mort'),
      [name, value],
      [name, value],
    ];
    expect(enter(twice('X-Berth-Tier', 'max')).tier).toBe('free');
    expect(refusal(twice('X-Berth-Member', 'bob'))).toBe('bad_request');
    expect(refusal([bearer('mort'), ['X-Berth-Member', 'x'.repeat(129)]])).toBe('bad_request');
  });

  test('a member in UTF-8 is the one the configuration means', () => {
    expect(gate().enter([bearer('mort'), ['X-Berth-Member', 'jörg']]).member).toBe('jörg');
  });
});

describe('what a key opens', () => {
  test('admin routes open to admin keys alone; without a key they ask for one', () => {
    const { refusal } = gate();
    const unload = { target: '/unload' };
    expect(refusal([bearer('root')], unload)).toBe('admitted');
    expect(refusal([bearer('ann')], unload)).toBe('forbidden');
    expect(refusal([bearer('mort')], unload)).toBe('forbidden');
    expect(refusal([], unload)).toBe('unauthorized');
    expect(refusal([bearer('eve')], unload)).toBe('unauthorized');
  });

  test('health and OPTIONS need no key, and a job still does', () => {
    const { ring } = gate();
    const gatekeeper = new Gatekeeper({
      keys: ring,
      allowOpen: false,
      identity: {
        tiers: [],
        caps: { waitingPerMember: 1, bytesPerMember: 1 },
        onIgnored: () => undefined,
      },
    });
    for (const options of [{ target: '/health' }, { method: 'OPTIONS' }]) {
      const request = incomingRequest([bearer('eve')], options);
      expect(() => gatekeeper.admit(request)).not.toThrow();
      expect(() => identityOf(request)).toThrow(/needs an API key/);
    }
  });

  test('keys are asked of other machines and of this one alike', () => {
    const { refusal } = gate();
    expect(refusal([], { from: '10.0.0.9' })).toBe('unauthorized');
    expect(refusal([bearer('ann')], { from: '10.0.0.9' })).toBe('admitted');
  });
});

describe('without keys', () => {
  test('this machine is served and its headers are believed', () => {
    const { enter } = gate([]);
    expect(enter([])).toEqual({
      member: 'shared',
      tier: 'free',
      keyName: null,
      isAdmin: true,
      mayAssert: ['member', 'tier'],
      defaultPriority: 0,
      maxPriority: null,
      caps: { waiting: null, bytes: null },
    });
    expect(
      enter([['X-Berth-Member', 'bob'], ['X-Berth-Tier', 'Max'], bearer('eve')]),
    ).toMatchObject({
      member: 'bob',
      tier: 'max',
      caps: { waiting: 500, bytes: 4096 },
    });
  });

  test('other machines are refused, all but the health of Berth', () => {
    const from = '10.0.0.9';
    const { refusal } = gate([]);
    for (const target of ['/v1/models', '/health', '/berth/metrics', '/berth/board'])
      expect(refusal([], { from, target })).toBe('forbidden');
    expect(refusal([['X-Forwarded-For', '10.0.0.9']])).toBe('forbidden');
    expect(refusal([], { from, target: '/berth/healthz' })).toBe('admitted');
    expect(refusal([], { from, method: 'OPTIONS', target: '/berth/jobs' })).toBe('forbidden');
  });

  test('other machines are served where that was asked for, but not as administrators', () => {
    expect(gate([], true).enter([], { from: '10.0.0.9' })).toMatchObject({ isAdmin: false });
  });
});

describe('the client\u2019s address on its way to the model server', () => {
  test.each([
    [0, ['203.0.113.7'], '10.0.0.9'],
    [1, [], '10.0.0.9'],
    [1, ['made-up, 203.0.113.7'], '203.0.113.7, 10.0.0.9'],
    [2, ['made-up', '203.0.113.7,10.0.0.8'], '203.0.113.7, 10.0.0.8, 10.0.0.9'],
  ])('behind %d trusted proxies, with %j before', (hops, came, sent) => {
    const rules = new UpstreamHeaders(null, () => false, hops);
    const request = incomingRequest(
      came.map((value) => ['X-Forwarded-For', value] as const),
      { from: '::ffff:10.0.0.9' },
    );
    const headers = headersUpstream(request, rules);
    expect(headers.slice(headers.indexOf('X-Forwarded-For'))).toEqual(['X-Forwarded-For', sent]);
  });
});

describe('the credential for the model server', () => {
  test.each([
    [null, false, [], []],
    [null, true, ['authorization', 'x-api-key'], []],
    ['sk', false, ['authorization', 'x-api-key'], ['Authorization', 'Bearer sk']],
    ['sk', true, ['authorization', 'x-api-key'], ['Authorization', 'Bearer sk']],
  ])('with the key %j of its own and keys: %j', (apiKey, hasKeys, dropped, added) => {
    const headers = new UpstreamHeaders(apiKey, () => hasKeys);
    expect([...headers.droppedHeaders]).toEqual(dropped);
    expect(headers.addedHeaders).toEqual(added);
  });
});
