import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';
import type { MemberCaps } from '../ports/job-queue.ts';
import type { AccessKey, Assertion } from './key-ring.ts';

/** Who a request is for and what it may do (design.md section 5). */
export interface Identity {
  /** The unit of fairness; all requests without a name share one. */
  readonly member: string;
  /** Name of a configured tier. */
  readonly tier: string;
  /** The configured name of the key that was shown; null without keys. */
  readonly keyName: string | null;
  /** Whether the board and the admin routes are open to it. */
  readonly isAdmin: boolean;
  /** Which headers about member and tier are believed. */
  readonly mayAssert: readonly Assertion[];
  /** Points of a request that says nothing of its priority. */
  readonly defaultPriority: number;
  /** Most points its requests may have; null: no ceiling. */
  readonly maxPriority: number | null;
  /** What its member may have waiting. */
  readonly caps: MemberCaps;
}

/** What an identity depends on beside key and headers. */
export interface IdentityRules {
  /** Names of the configured tiers. */
  readonly tiers: readonly string[];
  /** For a member whose key says nothing of its own. */
  readonly caps: { readonly waitingPerMember: number; readonly bytesPerMember: number };
  /** Told of each header that was not believed. */
  readonly onIgnored: (header: Assertion) => void;
}

/** The member of requests that name none, while no keys are configured. */
export const SHARED_MEMBER = 'shared';

/** Longest name of a member, in characters. */
export const LONGEST_MEMBER = 128;
const LOWEST_TIER = 'free';
const HEADERS = { member: 'x-berth-member', tier: 'x-berth-tier' } as const;

/**
 * The identity behind a key. `X-Berth-Member` and `X-Berth-Tier` count only where the key may assert them; the member
 * is the key's own otherwise. Throws GatewayError `bad_request` for a member that cannot be one.
 */
export function keyIdentity(
  request: IncomingMessage,
  key: AccessKey,
  rules: IdentityRules,
): Identity {
  const asserted = (header: Assertion): string | undefined => {
    if (key.mayAssert.includes(header)) return assertedIn(request, header);
    if (request.headers[HEADERS[header]] !== undefined) rules.onIgnored(header);
    return undefined;
  };
  return {
    member: asserted('member') ?? key.member,
    tier: tierNamed(asserted('tier') ?? key.tier, rules),
    keyName: key.name,
    isAdmin: key.isAdmin,
    mayAssert: key.mayAssert,
    defaultPriority: key.defaultPriority,
    maxPriority: key.maxPriority,
    caps: {
      waiting: key.waitingPerMember ?? rules.caps.waitingPerMember,
      bytes: key.bytesPerMember ?? rules.caps.bytesPerMember,
    },
  };
}

/**
 * The identity of a request while no keys are configured: its headers are believed. The shared member has no caps of
 * its own. `isAdmin`: whether the request comes from this machine.
 */
export function openIdentity(
  request: IncomingMessage,
  isAdmin: boolean,
  rules: IdentityRules,
): Identity {
  const member = assertedIn(request, 'member') ?? SHARED_MEMBER;
  const { waitingPerMember, bytesPerMember } = rules.caps;
  return {
    member,
    tier: tierNamed(assertedIn(request, 'tier') ?? LOWEST_TIER, rules),
    keyName: null,
    isAdmin,
    mayAssert: ['member', 'tier'],
    defaultPriority: 0,
    maxPriority: null,
    caps:
      member === SHARED_MEMBER
        ? { waiting: null, bytes: null }
        : { waiting: waitingPerMember, bytes: bytesPerMember },
  };
}

const identities = new WeakMap<IncomingMessage, Identity>();

/** Keeps the identity of a request for as long as the request lives. */
export function rememberIdentity(request: IncomingMessage, identity: Identity): void {
  identities.set(request, identity);
}

/** The identity a request was let in with. Throws GatewayError `unauthorized` where none was needed to get in. */
export function identityOf(request: IncomingMessage): Identity {
  const identity = identities.get(request);
  if (identity === undefined)
    throw new GatewayError('unauthorized', 'unauthorized: this route needs an API key');
  return identity;
}

/** The one value of an asserted header; absent and empty are the same. */
function assertedIn(request: IncomingMessage, header: Assertion): string | undefined {
  const values = request.headersDistinct[HEADERS[header]] ?? [];
  // A tier that came twice is one nobody knows; a member that came twice could be anybody's.
  if (values.length > 1 && header === 'tier') return values.join(', ');
  if (values.length > 1)
    throw new GatewayError('bad_request', `the header ${HEADERS[header]} came twice`);
  const [text = ''] = values;
  const value = asUtf8(text);
  if (header === 'member' && value.length > LONGEST_MEMBER)
    throw new GatewayError('bad_request', `a member has at most ${LONGEST_MEMBER} characters`);
  return value === '' ? undefined : value;
}

/** Node hands header values out as Latin-1; a name in UTF-8 has to equal that of the configuration. */
function asUtf8(text: string): string {
  const decoded = Buffer.from(text, 'latin1').toString('utf8');
  return decoded.includes('\uFFFD') ? text : decoded;
}

function tierNamed(text: string, rules: IdentityRules): string {
  const word = text.toLowerCase();
  return rules.tiers.find((tier) => tier.toLowerCase() === word) ?? LOWEST_TIER;
}
