/**
 * What this process believes Redis TIME to be. Scripts get the estimate along; when Redis' own clock differs by a
 * second or more, the command was held up (outage, freeze, slow network) or the process was, and facts that depend
 * on timely heartbeats, such as a missing liveness key, are not acted on.
 */
export class RedisClock {
  private offsetMs: number | undefined;
  private trustedFrom = 0;

  /** Takes a reading: Redis' answer, in milliseconds, to a command sent at `sentAt` (performance.now()). */
  observe(redisMs: number, sentAt: number): void {
    const received = performance.now();
    if (received - sentAt > 1000) {
      this.distrust();
    }
    this.offsetMs = redisMs - received;
  }

  /** Forgets the past, for example after a reconnect: others' heartbeats need time to come back. */
  distrust(forMs = 2000): void {
    this.trustedFrom = performance.now() + forMs;
  }

  /**
   * Redis TIME now in whole milliseconds as well as it is known, trusted or not: for when a wait ends, which hangs
   * on nobody's heartbeat. Infinity before the first reading: by then every wait is over.
   */
  latest(): number {
    return this.offsetMs === undefined ? Infinity : Math.round(performance.now() + this.offsetMs);
  }

  /** Redis TIME now in whole milliseconds, or 0, which no script believes, while there is no ground to trust it. */
  estimate(): number {
    if (this.offsetMs === undefined || performance.now() < this.trustedFrom) return 0;
    return Math.round(performance.now() + this.offsetMs);
  }
}
