import type { Server } from 'node:http';

interface Layer {
  /** Where a router is mounted. */
  rawPath: string;
  handle: { stack?: Layer[] };
  route?: { path: string; methods: Record<string, boolean> };
}

/** The routes that a server's Express application knows, as `get /berth/jobs/{id}`. */
export function routesOf(server: Server): string[] {
  const [app] = server.listeners('request') as unknown as { router: { stack: Layer[] } }[];
  return [...new Set((app?.router.stack ?? []).flatMap((layer) => below(layer, '')))];
}

function below({ rawPath, handle, route }: Layer, mount: string): string[] {
  if (route === undefined) {
    const at = rawPath === '/' ? mount : `${mount}${rawPath}`;
    return (handle.stack ?? []).flatMap((layer) => below(layer, at));
  }
  const path = `${mount}${route.path}`.replace(/(.)\/$/, '$1').replace(/:(\w+)/g, '{$1}');
  return Object.keys(route.methods).map((method) => `${method} ${path}`);
}
