import { expect, test } from '@jest/globals';
import { deliverWebhook } from '../../src/gateway/deliver-webhook.ts';
import { jobEvent } from '../../src/gateway/job-event.ts';
import type { EndedJob } from '../../src/ports/ended-job.ts';
import type { Telemetry, WebhookTried } from '../../src/ports/telemetry.ts';
import type { WebhookAttempt, WebhookDelivery } from '../../src/ports/webhook-sender.ts';
import { aNewJob } from '../support/queue-fixture.ts';

const job: EndedJob = {
  eventId: 'job-1',
  jobId: 'job',
  sealedAddress: Buffer.from('https://hooks.example/path?token=secret'),
  outcome: 'failed',
  code: 'model_server_timeout',
  message: 'no answer came',
  facts: aNewJob(100, { member: 'ann', model: 'llama' }).facts,
  createdMs: 1_700_000_000_500,
  startedMs: 1_700_000_003_500,
  endedMs: 1_700_000_009_000,
  attempts: 2,
  gpuMs: 5500,
};

async function deliver(came: WebhookAttempt, isLast = false, ended = job) {
  const sent: WebhookDelivery[] = [];
  const told: WebhookTried[] = [];
  const result = await deliverWebhook(
    ended,
    { attempt: 2, isLast },
    {
      sender: {
        send: async (delivery) => {
          sent.push(delivery);
          return Promise.resolve(came);
        },
      },
      openAddress: (_id, sealed) => {
        if (sealed.length === 0) throw new Error('sealed with another key');
        return sealed.toString();
      },
      telemetry: { webhookTried: (fact: WebhookTried) => void told.push(fact) } as Telemetry,
    },
  );
  return { result, sent, told };
}

test.each<[WebhookAttempt, boolean, string]>([
  [{ kind: 'delivered', status: 200 }, false, 'delivered'],
  [{ kind: 'delivered', status: 204 }, true, 'delivered'],
  [{ kind: 'unwanted', status: 410 }, false, 'given_up'],
  [{ kind: 'forbidden', reason: 'private' }, false, 'given_up'],
  [{ kind: 'failed', reason: 'status 503' }, false, 'retried'],
  [{ kind: 'failed', reason: 'timeout' }, true, 'given_up'],
])('an attempt that comes to %j, the last one: %s, is %s', async (came, isLast, expected) => {
  const { result, told } = await deliver(came, isLast);
  expect(result).toBe(expected);
  expect(told).toMatchObject([{ result: expected, attempt: 2, host: 'hooks.example' }]);
  expect(JSON.stringify(told)).not.toMatch(/secret|path/);
});

test('an address that cannot be opened any more is given up unsent', async () => {
  const ended = { ...job, sealedAddress: Buffer.alloc(0) };
  const { result, sent } = await deliver({ kind: 'delivered', status: 200 }, false, ended);
  expect(result).toBe('given_up');
  expect(sent).toEqual([]);
});

test('every attempt sends the same id and the same text', async () => {
  const first = await deliver({ kind: 'failed', reason: 'timeout' });
  const second = await deliver({ kind: 'delivered', status: 200 });
  expect(first.sent).toEqual(second.sent);
});

test('an event says what became of the job, and when, and nothing of its request', () => {
  expect(JSON.parse(jobEvent(job))).toEqual({
    type: 'job.failed',
    timestamp: '2023-11-14T22:13:29.000Z',
    data: {
      id: 'job',
      object: 'job',
      state: 'failed',
      model: 'llama',
      route: '/v1/chat/completions',
      member: 'ann',
      tier: 'free',
      band: 'interactive',
      base_priority: 100,
      created_at: 1_700_000_000,
      started_at: 1_700_000_003,
      completed_at: 1_700_000_009,
      attempts: 2,
      film: null,
      error: { code: 'model_server_timeout', message: 'no answer came' },
      urls: { self: '/berth/jobs/job', result: '/berth/jobs/job/result' },
      metrics: { queue_seconds: 3, gpu_seconds: 5.5 },
    },
  });
});

test('a job that never ran has no start, and waited until its end', () => {
  const event = JSON.parse(jobEvent({ ...job, outcome: 'expired', startedMs: null, gpuMs: 0 })) as {
    data: { started_at: unknown; metrics: object };
  };
  expect(event.data.started_at).toBeNull();
  expect(event.data.metrics).toEqual({ queue_seconds: 8.5, gpu_seconds: 0 });
});
