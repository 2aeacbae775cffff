-- Keeps the owner record alive; brings it back if it ran out and nobody took over.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, name, pid, host, lock, domain, ttlMs, fence}
-- Returns {1, now} while we own the GPU, {0, now} when another fence was issued.

local own = cjson.decode(ARGV[1])
local key = own.pool .. ':owner'
local t = redis.call('TIME')
local now = tostring(t[1] * 1000 + math.floor(t[2] / 1000))
local fence = redis.call('HGET', key, 'fence')
if fence and fence ~= own.fence then return { 0, now } end
if not fence then
  local last = redis.call('GET', own.pool .. ':fence')
  if last and last ~= own.fence then return { 0, now } end
  redis.call('SET', own.pool .. ':fence', own.fence)
  redis.call('HSET', key, 'fence', own.fence, 'name', own.name, 'pid', own.pid, 'host', own.host,
    'lock', own.lock, 'domain', own.domain)
end
redis.call('PEXPIRE', key, own.ttlMs)
redis.call('SET', own.pool .. ':beat', now)
return { 1, now }
