import { GatewayError } from '../errors.ts';

/**
 * The address that `X-Berth-Webhook` names, if there is one. Throws GatewayError `bad_request` when there are several or
 * when `faultOf` finds fault with it; the message does not repeat it.
 */
export function webhookOf(
  values: readonly string[],
  faultOf: (address: string) => string | undefined,
): string | undefined {
  const [address, ...others] = values;
  if (address === undefined) return undefined;
  const fault = others.length > 0 ? 'one webhook address is taken' : faultOf(address);
  if (fault === undefined) return address;
  throw new GatewayError('bad_request', fault, { param: 'X-Berth-Webhook' });
}
