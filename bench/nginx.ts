import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { eventually } from '../test/support/eventually.ts';

/** Debian keeps it where an ordinary user's PATH does not look. */
const PROGRAM = ['nginx', '/usr/sbin/nginx'].find(
  (program) => spawnSync(program, ['-v'], { stdio: 'ignore' }).status === 0,
);

/** nginx as a plain proxy in front of one server: kept connections both ways, nothing held back, nothing logged. */
export class Nginx {
  readonly url: string;
  private readonly folder: string;
  private readonly child: ChildProcess;

  private constructor(url: string, folder: string, child: ChildProcess) {
    this.url = url;
    this.folder = folder;
    this.child = child;
  }

  /** Resolves when it answers for `serverUrl`; with undefined where there is no nginx on this machine. */
  static async start(serverUrl: string): Promise<Nginx | undefined> {
    if (PROGRAM === undefined) return undefined;
    const folder = await mkdtemp(path.join(tmpdir(), 'berth-nginx-'));
    const port = await freePort();
    const file = path.join(folder, 'nginx.conf');
    await writeFile(file, settings(folder, port, new URL(serverUrl).host));
    const child = spawn(PROGRAM, ['-c', file, '-e', path.join(folder, 'error.log')], {
      stdio: 'ignore',
    });
    const killAtExit = (): void => void child.kill('SIGTERM');
    process.once('exit', killAtExit);
    child.once('exit', () => process.removeListener('exit', killAtExit));
    const url = `http://127.0.0.1:${port}`;
    await eventually(async () => (await fetch(`${url}/v1/models`)).status === 200, {
      what: `nginx to answer (its complaints are in ${folder})`,
    });
    return new Nginx(url, folder, child);
  }

  /** Ends it and removes its folder. */
  async stop(): Promise<void> {
    const ended = once(this.child, 'exit');
    this.child.kill('SIGTERM');
    await ended;
    await rm(this.folder, { recursive: true, force: true });
  }
}

function settings(folder: string, port: number, server: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (what) => `  ${what}_temp_path ${folder}/${what};`,
  );
  return [
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    'daemon off;',
    'worker_processes 1;',
    `pid ${folder}/nginx.pid;`,
    `error_log ${folder}/error.log;`,
    'events {}',
    'http {',
    '  access_log off;',
    ...temporary,
    `  upstream model_server { server ${server}; keepalive 16; }`,
    '  server {',
    `    listen 127.0.0.1:${port};`,
    '    location / {',
    '      proxy_pass http://model_server;',
    '      proxy_http_version 1.1;',
    '      proxy_set_header Host $http_host;',
    '      proxy_set_header Connection "";',
    '      proxy_buffering off;',
    '      proxy_request_buffering off;',
    '    }',
    '  }',
    '}',
    '',
  ].join('\n');
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
