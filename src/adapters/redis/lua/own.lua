-- Makes this process the owner of the GPU's pool, or names the one who is.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, name, pid, host, lock, domain, ttlMs}
-- Returns {'owner', fence, now} or {'held', name, pid, host, remaining ms}.
-- A record of the same kernel lock in the same lock domain belongs to a dead process: we hold that lock now.

local own = cjson.decode(ARGV[1])
local key = own.pool .. ':owner'
local held = redis.call('HMGET', key, 'lock', 'domain', 'name', 'pid', 'host')
if held[1] and not (held[1] == own.lock and held[2] == own.domain) then
  return { 'held', held[3], held[4], held[5], redis.call('PTTL', key) }
end
local fence = tostring(redis.call('INCR', own.pool .. ':fence'))
redis.call('DEL', key)
redis.call('HSET', key, 'fence', fence, 'name', own.name, 'pid', own.pid, 'host', own.host,
  'lock', own.lock, 'domain', own.domain)
redis.call('PEXPIRE', key, own.ttlMs)
local t = redis.call('TIME')
return { 'owner', fence, tostring(t[1] * 1000 + math.floor(t[2] / 1000)) }
