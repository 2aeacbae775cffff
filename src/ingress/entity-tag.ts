import { createHash } from 'node:crypto';

/** The tag of a representation: `version` of the thing, then its bytes' hash. */
export function entityTag(version: string, body: string): string {
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return `"${version}-${hash}"`;
}

/** Tags of an `If-None-Match`, weak ones too: they compare alike here (RFC 9110, 13.1.2). */
export function tagsIn(ifNoneMatch: string | undefined): readonly string[] {
  if (ifNoneMatch?.trim() === '*') return ['*'];
  return ifNoneMatch?.match(/"[^"]*"/g) ?? [];
}
