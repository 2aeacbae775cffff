import { createServer } from 'node:net';
import { StartRefused } from '../adapters/process/start-refused.ts';

/**
 * Makes sure that the ingress will be able to listen, before anything is started. Port 0 is always free.
 *
 * @throws StartRefused when something else listens there, or this machine does not have the address.
 */
export async function checkPortIsFree(host: string, port: number): Promise<void> {
  if (port === 0) return;
  const fault = await tryToListen(host, port);
  if (fault === undefined) return;
  throw new StartRefused(
    fault.code === 'EADDRINUSE'
      ? `port ${port} on ${host} is in use by another program; stop that, or set PORT`
      : `cannot listen on HOST ${host}, PORT ${port}: ${fault.message}`,
  );
}

function tryToListen(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen({ host, port, exclusive: true }, () => {
      server.close(() => resolve(undefined));
    });
  });
}
