import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { ScriptedModelServer, startDemoModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';

interface Message {
  readonly type: string;
  readonly data: unknown;
}

interface Status {
  readonly id: string;
  readonly state: string;
  readonly aliases?: string[];
}

let server: ScriptedModelServer;
let listening: AbortController;

beforeEach(async () => {
  server = await startDemoModelServer({ coldLoadMs: 20 });
  listening = new AbortController();
});

afterEach(async () => {
  listening.abort();
  await server.close();
});

/** Reads the feed into the list it returns, until the test ends. */
function listen(): Message[] {
  const messages: Message[] = [];
  const read = async (): Promise<void> => {
    const feed = await fetch(`${server.url}/api/events`, { signal: listening.signal });
    let text = '';
    for await (const piece of feed.body ?? []) {
      text += Buffer.from(piece as Uint8Array).toString();
      const frames = text.split('\n\n');
      text = frames.pop() ?? '';
      for (const frame of frames) {
        const outer = JSON.parse(frame.replace('event:message\ndata:', '')) as {
          type: string;
          data: string;
        };
        messages.push({ type: outer.type, data: JSON.parse(outer.data) });
      }
    }
  };
  read().catch(() => undefined);
  return messages;
}

function ofType<T>(messages: Message[], type: string): T[] {
  return messages.filter((message) => message.type === type).map((message) => message.data as T);
}

function chat(model: string): Promise<Response> {
  return fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: 'Bearer canary' },
    body: JSON.stringify({ model, messages: [] }),
  });
}

test('a listener gets the state of every model, then each change of it', async () => {
  const messages = listen();
  const first = await eventually(() => ofType<Status[]>(messages, 'modelStatus')[0] ?? null, {
    what: 'the first status',
  });
  expect(first.find((model) => model.id === 'demo-chat-small')).toMatchObject({
    state: 'stopped',
    aliases: ['demo-chat'],
  });
  await chat('demo-chat-small');
  await chat('demo-chat-large');
  const changes = (id: string): string[] =>
    ofType<Status[]>(messages, 'modelStatus')
      .map((models) => models.find((model) => model.id === id)?.state ?? '')
      .filter((state, at, states) => state !== states[at - 1]);
  await eventually(
    () => {
      const all = ['stopped', 'starting', 'ready'];
      expect(changes('demo-chat-small')).toEqual([...all, 'stopping', 'stopped']);
      expect(changes('demo-chat-large')).toEqual(all);
    },
    { what: 'all changes' },
  );
});

test('running requests are in the snapshot of a later listener and leave when they end', async () => {
  const gate = server.hold();
  const running = chat('demo-chat');
  const { id } = await gate.arrived;
  const messages = listen();
  const [snapshot] = await eventually(
    () => {
      const inflight = ofType<object>(messages, 'inflight');
      return inflight.length > 0 && inflight;
    },
    { what: 'the snapshot' },
  );
  expect(snapshot).toMatchObject({
    operation: 'snapshot',
    requests: [{ id: `${id}`, model: 'demo-chat-small', req_path: '/v1/chat/completions' }],
  });
  expect(JSON.stringify(snapshot)).not.toContain('canary');
  gate.release();
  await running;
  await eventually(
    () => expect(ofType(messages, 'inflight')).toContainEqual({ operation: 'remove', id: `${id}` }),
    { what: 'the request to leave' },
  );
});
