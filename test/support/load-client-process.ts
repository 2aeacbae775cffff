import { createHash } from 'node:crypto';

/**
 * A client of its own process: reads a list of requests from its first argument's file, sends them with so many in
 * flight, and reports status and SHA-256 of each answer over IPC.
 */
interface Order {
  index: number;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

async function send(
  baseUrl: string,
  order: Order,
): Promise<{ index: number; status: number; sha256: string }> {
  const response = await fetch(baseUrl + order.path, {
    method: order.method,
    headers: order.headers,
    body: order.body,
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  return {
    index: order.index,
    status: response.status,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  };
}

process.on('message', (message: { baseUrl: string; orders: Order[]; inFlight: number }) => {
  const queue = [...message.orders];
  const lane = async (): Promise<void> => {
    for (let order = queue.shift(); order !== undefined; order = queue.shift()) {
      process.send?.(await send(message.baseUrl, order));
    }
  };
  void Promise.all(Array.from({ length: message.inFlight }, lane)).then(
    () => process.disconnect(),
    (error: unknown) => {
      process.send?.({ error: String(error) });
      process.exitCode = 1;
      process.disconnect();
    },
  );
});
