import { fileURLToPath } from 'node:url';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import { BerthSystem } from './berth-system.ts';
import {
  startDemoModelServer,
  type RequestRecord,
  type ScriptedModelServer,
} from './demo-model-server.ts';
import { eventually } from './eventually.ts';

/** A request that is to wait, by the name it is known by at the model server. */
export interface Guest {
  readonly name: string;
  readonly path: string;
  readonly init: RequestInit;
}

/** A guest's answer. */
export interface Served {
  readonly name: string;
  readonly status: number;
  readonly headers: Headers;
}

/** A JSON request to a model, by default a chat. */
export function guest(
  name: string,
  headers: Record<string, string> = {},
  body: Record<string, unknown> = {},
  path = '/v1/chat/completions',
): Guest {
  const fields = {
    ...{ model: 'demo-chat-small', max_tokens: 1, messages: [{ role: 'user', content: name }] },
    ...body,
  };
  return {
    name,
    path,
    init: {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-test-name': name, ...headers },
      body: JSON.stringify(fields),
    },
  };
}

/** A system whose one running job is held at the model server while others queue up behind it. */
export class WaitingRoom {
  readonly demo: ScriptedModelServer;
  readonly system: BerthSystem;
  readonly #redis: ReturnType<typeof connectRedis>;

  private constructor(demo: ScriptedModelServer, system: BerthSystem) {
    this.demo = demo;
    this.system = system;
    this.#redis = connectRedis(system.redis.url, 'patient', () => undefined);
  }

  /** Starts it; `config` names a file beside this one. */
  static async open(config?: string): Promise<WaitingRoom> {
    const demo = await startDemoModelServer();
    const env: Record<string, string> =
      config === undefined ? {} : { BERTH_CONFIG: fileURLToPath(new URL(config, import.meta.url)) };
    return new WaitingRoom(demo, await BerthSystem.start({ modelServerUrl: demo.url, env }));
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
    await this.system.stop();
    await this.demo.close();
  }

  /** Resolves when so many jobs wait. */
  async waiting(count: number): Promise<void> {
    await eventually(
      async () => (await this.#redis.zcard('{berth}:gpu:gpu:prioritized')) === count,
      {
        timeoutMs: 10_000,
        what: `${count} waiting jobs`,
      },
    );
  }

  /** Sends a request and waits for the whole answer. */
  async serve({ name, path, init }: Guest): Promise<Served> {
    const response = await fetch(this.system.url + path, init);
    await response.arrayBuffer();
    return { name, status: response.status, headers: response.headers };
  }

  /**
   * Lets the guests come one after the other while one job runs, then lets that job end. Resolves with their
   * answers and the order in which the model server was asked, the running job first.
   *
   * @param meanwhile what to do when all of them wait
   */
  async queueUp(
    guests: readonly Guest[],
    meanwhile: () => Promise<void> = async () => Promise.resolve(),
    running: Guest = guest('running'),
  ): Promise<{ order: string[]; served: Served[]; first: RequestRecord }> {
    const before = this.demo.record.length;
    const gate = this.demo.hold((request) => request.headers['x-test-name'] === running.name);
    const all = [this.serve(running)];
    const first = await gate.arrived;
    for (const [index, one] of guests.entries()) {
      all.push(this.serve(one));
      await this.waiting(index + 1);
    }
    try {
      await meanwhile();
    } finally {
      gate.release();
    }
    const served = await Promise.all(all);
    const order = this.demo.record
      .slice(before)
      .map(({ headers }) => headers['x-test-name'])
      .filter((name) => name !== undefined)
      .map(String);
    return { order, served: served.slice(1), first };
  }
}
