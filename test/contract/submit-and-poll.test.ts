import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { HttpModelServer } from '../../src/adapters/upstream/http-model-server.ts';
import { defaultDocument } from '../../src/config/default-document.ts';
import { asyncUpstreamFor, relativeTo } from '../../src/gateway/async-upstream.ts';
import type { AsyncUpstream } from '../../src/gateway/async-upstream.ts';
import { loadFirst, submitAndPoll, takeUp } from '../../src/gateway/submit-and-poll.ts';
import type { Submission } from '../../src/gateway/submit-and-poll.ts';
import { RunAborted } from '../../src/ports/job-queue.ts';
import type { RunResult, TakenWork } from '../../src/ports/job-queue.ts';
import type { ResponseHead, ResponseLogWriter } from '../../src/ports/response-log.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';

const upstreams: readonly AsyncUpstream[] = defaultDocument.asyncUpstreams.map((entry) => ({
  ...entry,
  pollSeconds: 0.02,
}));

let demo: ScriptedModelServer;
let modelServer: HttpModelServer;

beforeEach(async () => {
  demo = await startDemoModelServer();
  modelServer = new HttpModelServer({ url: demo.url });
});

afterEach(async () => {
  await modelServer.close();
  await demo.close();
});

/** What the client would have got. */
class Log implements ResponseLogWriter {
  sent: ResponseHead | undefined;
  text = '';
  bytes = 0;
  head(head: ResponseHead): void {
    this.sent = head;
  }
  async write(bytes: Buffer): Promise<void> {
    this.text += bytes.toString();
    this.bytes += bytes.length;
    return Promise.resolve();
  }
  async drain(): Promise<void> {
    return Promise.resolve();
  }
}

/** Submits a prompt and holds the GPU for it. */
function submit(ms: number, extra: Partial<AsyncUpstream> = {}, target = '/comfyui/prompt') {
  const abort = new AbortController();
  const log = new Log();
  let submission: Submission | undefined;
  const kept: { work: TakenWork; told: string }[] = [];
  const keep = async (work: TakenWork): Promise<void> => {
    kept.push({ work, told: log.text });
    return Promise.resolve();
  };
  /** As the next worker does it, with a log of its own. */
  const again = (): { log: Log; abort: AbortController; result: Promise<RunResult> } => {
    const [later, end] = [new Log(), new AbortController()];
    const work = kept[0]?.work;
    if (submission === undefined || work === undefined) throw new Error('nothing was kept');
    return {
      log: later,
      abort: end,
      result: takeUp({ ...submission, log: later }, work, end.signal),
    };
  };
  const run = async (): Promise<RunResult> => {
    const found = asyncUpstreamFor('POST', target, upstreams);
    if (found === undefined) throw new Error('no entry');
    const upstream = { ...found, ...extra };
    const request = {
      method: 'POST',
      target,
      headers: ['Content-Type', 'application/json', 'X-Berth-Job-Id', 'j1'],
      body: Buffer.from(JSON.stringify({ prompt: {}, demo_ms: ms })),
    };
    await loadFirst(upstream, request, modelServer, abort.signal);
    const answer = await modelServer.call(request, abort.signal);
    expect(answer.status).toBe(200);
    submission = { upstream, request, log, modelServer, keep };
    return submitAndPoll(submission, answer, abort.signal);
  };
  return { log, abort, kept, result: run(), again };
}

const idOf = (log: Log): string => (JSON.parse(log.text) as { prompt_id: string }).prompt_id;
const polls = () => demo.record.filter(({ target }) => target.includes('/history/'));
const answered = async (log: Log): Promise<void> => {
  await eventually(() => log.bytes > 0, { what: 'the submit answer' });
};
const queued = async (): Promise<unknown> => (await fetch(`${demo.url}/comfyui/queue`)).json();

describe('work that goes on after its submission was answered', () => {
  test.each([['/comfyui/prompt'], ['/comfyui/api/prompt'], ['/upstream/demo-image/prompt?x=1']])(
    '%s: the answer is there at once, the run lasts until the work is done',
    async (target) => {
      const { log, result } = submit(1000, {}, target);
      await answered(log);
      expect(log.sent?.headers.join(' ').toLowerCase()).toContain(`content-length ${log.bytes}`);
      let isOver = false;
      void result.then(() => (isOver = true));
      await eventually(() => polls().length >= 3, { what: 'three polls' });
      expect(isOver).toBe(false);
      expect(await result).toEqual({ kind: 'completed' });
      const base = target.replace(/prompt.*$/, '');
      expect(polls().every(({ target: asked }) => asked === `${base}history/${idOf(log)}`)).toBe(
        true,
      );
      // Every question carries the mark of the job, and none of the headers of a body it has not.
      expect(polls().every(({ headers }) => headers['x-berth-job-id'] === 'j1')).toBe(true);
      expect(polls().some(({ headers }) => headers['content-type'] !== undefined)).toBe(false);
    },
  );

  test('fails the run when it fails', async () => {
    const { log, result } = submit(60_000);
    await answered(log);
    await fetch(`${demo.url}/comfyui/interrupt`, { method: 'POST' });
    expect(await result).toMatchObject({ kind: 'failed', code: 'model_server_invalid' });
  });

  test('is stopped when the run is cancelled, and nothing else is', async () => {
    const { log, abort, result } = submit(60_000);
    await answered(log);
    const other = await fetch(`${demo.url}/comfyui/prompt`, {
      method: 'POST',
      body: JSON.stringify({ prompt: {}, demo_ms: 60_000 }),
    });
    const { prompt_id: otherId } = (await other.json()) as { prompt_id: string };
    abort.abort(new RunAborted('cancelled'));
    await expect(result).rejects.toBeDefined();
    await eventually(
      async () => {
        expect(await queued()).toMatchObject({ queue_running: [[1, otherId, {}, {}, []]] });
      },
      { what: 'the other one to render' },
    );
  });

  test('is not stopped for a client that had its answer long ago', async () => {
    const { log, abort, result } = submit(3_000);
    await answered(log);
    await eventually(() => polls().length > 0, {
      what: 'a poll',
    });
    const delivered = performance.now() + 2_600;
    await eventually(() => performance.now() > delivered, { what: 'the answer to be old' });
    abort.abort(new RunAborted('client_closed'));
    expect(await result).toEqual({ kind: 'completed' });
  });

  test('is kept before its client hears of it, left alone by a worker that shuts down, and taken up by the next', async () => {
    const { log, abort, kept, result, again } = submit(600);
    await answered(log);
    expect(kept).toEqual([
      { work: { id: idOf(log), head: log.sent, body: Buffer.from(log.text) }, told: '' },
    ]);
    abort.abort(new RunAborted('shutting_down'));
    await expect(result).rejects.toBeDefined();
    const taken = again();
    expect(await taken.result).toEqual({ kind: 'completed' });
    expect(taken.log.text).toBe(log.text);
    expect(taken.log.sent).toEqual({ ...log.sent, repeats: true });
    const asked = demo.record.filter(({ method }) => method === 'POST');
    expect(asked.map(({ target }) => target)).toEqual(['/comfyui/prompt']);
  });

  test('that was taken up is stopped by a cancel, and not by a client that had its answer', async () => {
    const { log, abort, result, again } = submit(60_000);
    await answered(log);
    abort.abort(new RunAborted('shutting_down'));
    await expect(result).rejects.toBeDefined();
    const left = again();
    left.abort.abort(new RunAborted('client_closed'));
    const cancelled = again();
    cancelled.abort.abort(new RunAborted('cancelled'));
    await expect(cancelled.result).rejects.toBeDefined();
    expect(await queued()).toEqual({ queue_running: [], queue_pending: [] });
    expect(await left.result).toMatchObject({ kind: 'failed' });
  });

  test('is lost when its model is unloaded, and when the model server forgets it', async () => {
    const first = submit(60_000);
    await answered(first.log);
    await fetch(`${demo.url}/unload`);
    expect(await first.result).toMatchObject({ kind: 'failed', code: 'model_server_truncated' });
    const second = submit(60_000, {}, '/upstream/demo-image/prompt');
    await answered(second.log);
    await fetch(`${demo.url}/unload`);
    expect(await second.result).toMatchObject({ kind: 'failed', code: 'model_server_truncated' });
  });

  test('is stopped when it takes too long', async () => {
    const { log, result } = submit(60_000, { timeoutSeconds: 0.1 });
    expect(await result).toMatchObject({ kind: 'failed', code: 'model_server_timeout' });
    const history = (await (
      await fetch(`${demo.url}/comfyui/history/${idOf(log)}`)
    ).json()) as object;
    expect(JSON.stringify(history)).toContain('"completed":false');
  });

  test('fails the run when the submit answer names no id', async () => {
    const { result } = submit(1, { idPointer: '/nothing' });
    expect(await result).toMatchObject({ kind: 'failed', code: 'model_server_invalid' });
  });
});

describe('entries', () => {
  test.each([
    ['POST', '/comfyui/prompt', '/comfyui/prompt'],
    ['POST', '/upstream/org/model/prompt?a=/b', '/upstream/*/prompt'],
    ['POST', '/upstream/m/api/prompt', '/upstream/*/prompt'],
    ['GET', '/comfyui/prompt', undefined],
    ['POST', '/upstream/prompt', undefined],
    ['POST', '/upstream/m/prompts', undefined],
    ['POST', '/upstream/m/x?y=/prompt', undefined],
  ])('%s %s is that of %s', (method, target, path) => {
    expect(asyncUpstreamFor(method, target, upstreams)?.path).toBe(path);
  });

  test('paths are relative to the submitting one', () => {
    expect(relativeTo('/upstream/m/api/prompt?x=/y/', 'history/1')).toBe(
      '/upstream/m/api/history/1',
    );
    expect(relativeTo('/upstream/m/prompt', '/comfyui/x')).toBe('/comfyui/x');
  });
});
