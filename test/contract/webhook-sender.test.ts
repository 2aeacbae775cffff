import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { HttpWebhookSender } from '../../src/adapters/webhooks/http-webhook-sender.ts';
import { isPublicAddress } from '../../src/adapters/webhooks/public-address.ts';
import { readWebhookAddress } from '../../src/adapters/webhooks/webhook-address.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

const secret = `whsec_${Buffer.from('a key of thirty-two bytes, surely').toString('base64')}`;
const event = { id: 'job-1', body: '{"type":"job.completed","umlaut":"ü"}' };

let receiver: WebhookReceiver;
beforeEach(async () => {
  receiver = await WebhookReceiver.open();
});
afterEach(async () => receiver.close());

const sender = (options: Partial<ConstructorParameters<typeof HttpWebhookSender>[0]> = {}) =>
  new HttpWebhookSender({ secret, mayCallPrivate: true, timeoutMs: 5000, ...options });

describe('a delivery', () => {
  test('is accepted by the verifier of Standard Webhooks, and only with the right secret', async () => {
    const result = await sender().send({ address: receiver.url('/in?token=x'), ...event });
    expect(result).toEqual({ kind: 'delivered', status: 204 });
    const [call] = receiver.calls;
    expect(call?.path).toBe('/in?token=x');
    expect(call?.headers['content-type']).toBe('application/json');
    expect(call?.headers['webhook-id']).toBe('job-1');
    const headers = call?.headers as Record<string, string>;
    expect(new Webhook(secret).verify(call?.body ?? '', headers)).toEqual(JSON.parse(event.body));
    const other = new Webhook(`whsec_${Buffer.from('another').toString('base64')}`);
    expect(() => other.verify(call?.body ?? '', headers)).toThrow();
  });

  test.each([
    [200, { kind: 'delivered', status: 200 }],
    [299, { kind: 'delivered', status: 299 }],
    [410, { kind: 'unwanted', status: 410 }],
    [404, { kind: 'failed', reason: 'status 404' }],
    [429, { kind: 'failed', reason: 'status 429' }],
    [503, { kind: 'failed', reason: 'status 503' }],
  ])('that is answered with %d comes to its end', async (status, expected) => {
    receiver.answer = (response) => void response.writeHead(status).end('whatever');
    expect(await sender().send({ address: receiver.url(), ...event })).toEqual(expected);
  });

  test('does not follow a redirect', async () => {
    receiver.answer = (response) =>
      void response.writeHead(307, { location: receiver.url('/elsewhere') }).end();
    const result = await sender().send({ address: receiver.url('/first'), ...event });
    expect(result).toEqual({ kind: 'failed', reason: 'status 307' });
    expect(receiver.calls.map(({ path }) => path)).toEqual(['/first']);
  });

  test('takes an endless answer no further than its limit', async () => {
    const cut = new Promise<number>((resolve) => {
      receiver.answer = (response) => {
        let sent = 0;
        const pour = (): void => {
          while (response.write(Buffer.alloc(65_536))) sent += 65_536;
        };
        response
          .writeHead(200)
          .on('drain', pour)
          .on('close', () => resolve(sent));
        pour();
      };
    });
    expect(await sender().send({ address: receiver.url(), ...event })).toMatchObject({
      kind: 'delivered',
    });
    expect(await cut).toBeLessThan(16 * 1024 * 1024);
  });

  test('that gets no answer is over after the time limit', async () => {
    receiver.answer = () => undefined;
    const result = await sender({ timeoutMs: 200 }).send({ address: receiver.url(), ...event });
    expect(result).toEqual({ kind: 'failed', reason: 'timeout' });
  });

  test('whose name is not resolved in time is over too', async () => {
    const never = new Promise<never>(() => undefined);
    const resolve = async () => never;
    const slow = sender({ timeoutMs: 100, resolve });
    const result = await slow.send({ address: 'http://slow.example/', ...event });
    expect(result).toEqual({ kind: 'failed', reason: 'timeout' });
  });

  test('to a closed port fails with the code of the error, not its text', async () => {
    const address = receiver.url('/?token=x');
    await receiver.close();
    expect(await sender().send({ address, ...event })).toEqual({
      kind: 'failed',
      reason: 'ECONNREFUSED',
    });
    receiver = await WebhookReceiver.open();
  });
});

describe('an address of somebody else’s choice', () => {
  const strict = (...addresses: string[]) =>
    sender({
      mayCallPrivate: false,
      resolve: async () =>
        Promise.resolve(
          addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        ),
    });

  test.each(['127.0.0.1', '10.1.2.3', '169.254.169.254', '::1', 'fd00:ec2::254', '::ffff:7f00:1'])(
    'is not called when its name leads to %s',
    async (inside) => {
      const result = await strict(inside).send({ address: 'http://innocent.example/', ...event });
      expect(result).toMatchObject({ kind: 'forbidden' });
      const mixed = await strict('93.184.216.34', inside).send({
        address: 'http://innocent.example/',
        ...event,
      });
      expect(mixed).toMatchObject({ kind: 'forbidden' });
    },
  );

  test('is looked up once, and the call goes where that look-up led', async () => {
    let count = 0;
    const once = sender({
      resolve: async () => {
        count += 1;
        const address = count === 1 ? '127.0.0.1' : '192.0.2.1';
        return Promise.resolve([{ address, family: 4 }]);
      },
    });
    const address = `http://no-such-name.invalid:${receiver.port}/`;
    expect(await once.send({ address, ...event })).toMatchObject({ kind: 'delivered' });
    expect(count).toBe(1);
    expect(receiver.calls[0]?.headers.host).toBe(`no-such-name.invalid:${receiver.port}`);
  });

  test.each([
    'http://127.0.0.1/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://0.0.0.0/',
    'http://[::]/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[fe80::1]/',
    'http://169.254.169.254/latest/meta-data/',
    'http://localhost/',
    'http://LOCALHOST./',
    'http://a.localhost/',
    'https://hooks.example:6379/',
    'https://hooks.example:22/',
    'https://user:pass@hooks.example/',
    'https://user@hooks.example/',
    'ftp://hooks.example/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'hooks.example',
    '',
    'http://',
    'http:///',
    'http://a b/',
    'http://hooks.example\\@127.0.0.1/',
    'http://①②⑦.0.0.1/',
  ])('is refused at once when it reads %s', (address) => {
    expect(readWebhookAddress(address, false)).toHaveProperty('fault');
  });

  test.each([
    'https://hooks.example/services/T0/B0?key=1',
    'http://hooks.example:8080/',
    'https://8.8.8.8/',
    'https://[2606:4700::1111]:8443/',
  ])('is taken when it reads %s', (address) => {
    expect(readWebhookAddress(address, false)).toHaveProperty('url');
  });

  test('is refused when it is longer than 2048 characters', () => {
    const address = `https://hooks.example/${'a'.repeat(2048)}`;
    expect(readWebhookAddress(address, false)).toHaveProperty('fault');
  });

  test('may be private, on any port, where the operator allows that', () => {
    expect(readWebhookAddress('http://127.0.0.1:3000/', true)).toHaveProperty('url');
    expect(readWebhookAddress('http://user:pass@127.0.0.1:3000/', true)).toHaveProperty('fault');
  });

  test.each([
    ['8.8.8.8', true],
    ['2606:4700::1111', true],
    ['::ffff:8.8.8.8', true],
    ['100.64.0.1', false],
    ['192.168.0.1', false],
    ['172.31.255.255', false],
    ['198.18.0.1', false],
    ['224.0.0.1', false],
    ['240.0.0.1', false],
    ['255.255.255.255', false],
    ['fc00::1', false],
    ['fec0::1', false],
    ['2002:7f00:1::', false],
    ['2001:0:1::', false],
    ['::127.0.0.1', false],
    ['4000::1', false],
    ['nonsense', false],
  ])('of %s counts as public: %s', (address, expected) => {
    expect(isPublicAddress(address)).toBe(expected);
  });
});
