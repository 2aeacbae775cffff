import { promisify } from 'node:util';
import { deflate, inflate } from 'node:zlib';
import type { ZlibOptions } from 'node:zlib';
import type { Redis } from 'ioredis';
import type { PoolKeys } from './keys.ts';

const REGISTRY_TTL_MS = 10_000;

const compress = promisify<string, ZlibOptions, Buffer>(deflate);
const decompress = promisify<Buffer, Buffer>(inflate);
/** The plan names every waiting job and is written anew every few seconds, to Redis and to its file. */
const FAST: ZlibOptions = { level: 1 };

/** What the processes of a pool tell one another. */
export class PoolStatus {
  private readonly redis: Redis;
  private readonly keys: PoolKeys;

  constructor(redis: Redis, keys: PoolKeys) {
    this.redis = redis;
    this.keys = keys;
  }

  /** Publishes this process' metrics; they are forgotten ten seconds after the last time. */
  async publishRegistry(process: string, instance: string, json: string): Promise<void> {
    await this.redis.set(this.keys.registry(process, instance), json, 'PX', REGISTRY_TTL_MS);
  }

  /** Every process' metrics. */
  async registries(): Promise<{ process: string; instance: string; json: string }[]> {
    const prefix = this.keys.registry('', '').slice(0, -1);
    const names: string[] = [];
    for (let cursor = '0'; ;) {
      const [next, page] = await this.redis.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', 1000);
      names.push(...page);
      if (next === '0') break;
      cursor = next;
    }
    if (names.length === 0) return [];
    const texts = await this.redis.mget([...new Set(names)]);
    return [...new Set(names)].flatMap((name, index) => {
      const json = texts[index];
      const [process = '', instance = ''] = name.slice(prefix.length).split(':');
      return json ? [{ process, instance, json }] : [];
    });
  }

  /** The owner of the GPU, or undefined while no worker lives. */
  async owner(): Promise<{ name: string; pid: number; host: string } | undefined> {
    const [name, pid, host] = await this.redis.hmget(
      `${this.keys.pool}:owner`,
      'name',
      'pid',
      'host',
    );
    return name ? { name, pid: Number(pid), host: host ?? '' } : undefined;
  }

  /** Milliseconds since the scorer's last pass, or undefined when there was none. */
  async scorerAgeMs(): Promise<number | undefined> {
    const [scored, [seconds]] = await Promise.all([
      this.redis.get(`${this.keys.pool}:scored`),
      this.redis.time(),
    ]);
    return scored === null ? undefined : Math.max(0, (Number(seconds) - Number(scored)) * 1000);
  }

  /** The worker says which marker it wrote into the shared body store. */
  async publishStoreMarker(marker: string): Promise<void> {
    await this.redis.set(`${this.keys.pool}:store-marker`, marker);
  }

  /** The marker an ingress must find in its body store to share it with the worker. */
  async storeMarker(): Promise<string | undefined> {
    return (await this.redis.get(`${this.keys.pool}:store-marker`)) ?? undefined;
  }

  /** The worker says which model is in GPU memory; null: nobody knows, or none is. */
  async publishResident(model: string | null): Promise<void> {
    await this.redis.set(`${this.keys.pool}:resident`, JSON.stringify({ model }));
  }

  /** The model in GPU memory, as the worker last said. */
  async resident(): Promise<string | null> {
    const json = await this.redis.get(`${this.keys.pool}:resident`);
    return json === null ? null : (JSON.parse(json) as { model: string | null }).model;
  }

  /** The model the running job asked for, as it named it; undefined while none runs. */
  async runningModel(): Promise<string | undefined> {
    const id = await this.redis.lindex(`${this.keys.queue}active`, 0);
    const data = id === null ? null : await this.redis.hget(`${this.keys.queue}${id}`, 'data');
    return data === null ? undefined : (JSON.parse(data) as { model: string }).model;
  }

  /** The scorer publishes its plan, as JSON. */
  async publishPlan(json: string): Promise<void> {
    await this.redis.set(`${this.keys.pool}:plan`, await compress(json, FAST));
  }

  /** The published plan, as JSON. */
  async plan(): Promise<string | undefined> {
    const stored = await this.redis.getBuffer(`${this.keys.pool}:plan`);
    return stored === null ? undefined : String(await decompress(stored));
  }

  /** The worker says by which policy it decides. */
  async publishPolicyHash(hash: string): Promise<void> {
    await this.redis.set(`${this.keys.pool}:policy-hash`, hash);
  }

  /** The hash of the policy the worker decides by. */
  async policyHash(): Promise<string | undefined> {
    return (await this.redis.get(`${this.keys.pool}:policy-hash`)) ?? undefined;
  }

  /** Redis TIME in whole milliseconds. */
  async nowMs(): Promise<number> {
    const [seconds, micros] = await this.redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }
}
