import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';
import { accessFor, openPaths } from './access-rules.ts';
import { keyIdentity, openIdentity, rememberIdentity } from './identity.ts';
import type { IdentityRules } from './identity.ts';
import type { KeyRing } from './key-ring.ts';
import { isLoopback } from './loopback.ts';
import { shownKey } from './shown-key.ts';

/** What decides who gets in. */
export interface GatekeeperOptions {
  readonly keys: KeyRing;
  readonly identity: IdentityRules;
  /** Serve others than loopback although no keys are configured (BERTH_ALLOW_OPEN). */
  readonly allowOpen: boolean;
}

/** Lets requests in, each with its identity, before anything of them is read or done. */
export class Gatekeeper {
  private readonly options: GatekeeperOptions;

  constructor(options: GatekeeperOptions) {
    this.options = options;
  }

  /**
   * Returns for a request that may go on; `identityOf` knows it from then on. Throws GatewayError `unauthorized` for a
   * missing or unknown key, `forbidden` for one that may not do this, `bad_request` for ambiguous headers.
   */
  admit(request: IncomingMessage): void {
    if (this.options.keys.isEmpty) this.admitOpen(request);
    else this.admitWithKey(request);
  }

  private admitOpen(request: IncomingMessage): void {
    const { identity, allowOpen } = this.options;
    const isLocal = isLoopback(request);
    const path = request.url?.split('?', 1)[0] ?? '/';
    const isHealth = path.startsWith('/berth/') && openPaths.includes(path);
    if (!isLocal && !allowOpen && !isHealth) {
      throw new GatewayError('forbidden', 'without keys this gateway serves its own machine alone');
    }
    rememberIdentity(request, openIdentity(request, isLocal, identity));
  }

  private admitWithKey(request: IncomingMessage): void {
    const { keys, identity } = this.options;
    const access = accessFor(request.method ?? 'GET', request.url ?? '/');
    if (access === 'none') return;
    const shown = shownKey(request);
    const key = shown === null ? undefined : keys.find(shown);
    if (key === undefined)
      throw new GatewayError('unauthorized', 'unauthorized: invalid or missing API key');
    if (access === 'admin' && !key.isAdmin)
      throw new GatewayError('forbidden', 'this route needs the key of an administrator');
    rememberIdentity(request, keyIdentity(request, key, identity));
  }
}
