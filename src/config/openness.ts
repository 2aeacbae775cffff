import type { ConfigurationFault } from './configuration-error.ts';
import type { ConfigurationDocument } from './document-schema.ts';
import type { Environment } from './environment-schema.ts';
import { isLoopbackHost } from './server-address.ts';

/** Refuses to serve other machines without keys, unless that was asked for. */
export function opennessFaults(
  environment: Pick<Environment, 'HOST' | 'BERTH_ALLOW_OPEN'>,
  document: Pick<ConfigurationDocument, 'keys'>,
): ConfigurationFault[] {
  if (document.keys.length > 0 || environment.BERTH_ALLOW_OPEN || isLoopbackHost(environment.HOST))
    return [];
  return [
    {
      path: 'HOST',
      what:
        `${environment.HOST} is reached from other machines and no keys are configured: ` +
        'add keys, listen on 127.0.0.1, or set BERTH_ALLOW_OPEN=1',
    },
  ];
}
