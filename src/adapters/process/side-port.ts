import { createServer } from 'node:http';
import type { Server } from 'node:http';

/** What a process without an ingress shows of itself. */
export interface SidePortOptions {
  host: string;
  port: number;
  /** Undefined while all is well, else what is wrong. */
  fault: () => Promise<string | undefined>;
  metrics: () => Promise<string>;
}

/** Serves `/healthz` and `/metrics` of one process (WORKER_PORT, SCORER_PORT). Rejects when the port is taken. */
export async function openSidePort(options: SidePortOptions): Promise<Server> {
  const server = createServer((request, response) => {
    void (async () => {
      if (request.url === '/healthz') {
        const fault = await options.fault();
        response.writeHead(fault === undefined ? 200 : 503, { 'Content-Type': 'text/plain' });
        response.end(`${fault ?? 'ok'}\n`);
      } else if (request.url === '/metrics') {
        const text = await options.metrics();
        response.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' });
        response.end(text);
      } else response.writeHead(404).end();
    })().catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return server;
}
