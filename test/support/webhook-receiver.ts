import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A call that a receiver got. */
export interface ReceivedWebhook {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Stands in for whoever asked to be told; keeps every call and answers it as the test says. */
export class WebhookReceiver {
  readonly calls: ReceivedWebhook[] = [];
  /** Answers a call; default: 204. */
  answer: (response: ServerResponse, call: ReceivedWebhook) => void = (response) =>
    void response.writeHead(204).end();
  private readonly server = createServer((request, response) => {
    void (async () => {
      let body = '';
      for await (const piece of request.setEncoding('utf8')) body += String(piece);
      const call = { path: request.url ?? '', headers: request.headers, body };
      this.calls.push(call);
      this.answer(response, call);
    })().catch(() => response.destroy());
  });

  /** Listens on a free port of this machine. */
  static async open(): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver();
    receiver.server.listen(0, '127.0.0.1');
    await once(receiver.server, 'listening');
    return receiver;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Address of the receiver with a path on it. */
  url(path = '/'): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
