import ipaddr from 'ipaddr.js';

/**
 * Whether an IP address, as text, is one of the public internet: plain unicast, nothing that stands for this machine, its
 * network, a cloud's metadata service or a translation of one of those. IPv4 in IPv6 clothes counts as that IPv4
 * address. What cannot be read is not public.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text);
  if (address.range() !== 'unicast') return false;
  // Everything handed out so far lies in 2000::/3; the rest is unassigned, or a form of IPv4 that nobody should need.
  return address.kind() === 'ipv4' || (address as ipaddr.IPv6).match(ipaddr.parseCIDR('2000::/3'));
}
