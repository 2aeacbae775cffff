import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Something on a loopback port that answers as a test scripts it: to see what a client of Berth does then. */
export class ScriptedBerth {
  /** Requests in the order they came. */
  readonly seen: IncomingMessage[] = [];
  private readonly server: Server;

  private constructor(answers: RequestListener[]) {
    this.server = createServer((request, response) => {
      this.seen.push(request);
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      answer?.(request, response);
    });
  }

  /** The first request gets the first answer, and so on; the last answer is for all that follow. */
  static async start(...answers: RequestListener[]): Promise<ScriptedBerth> {
    const berth = new ScriptedBerth(answers);
    berth.server.listen(0, '127.0.0.1');
    await once(berth.server, 'listening');
    return berth;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}
