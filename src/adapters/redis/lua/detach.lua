-- A connection that waited for a job with an Idempotency-Key has gone: the job stays for its time of grace, unless
-- others wait. Needs connections.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, id, client, graceMs}
-- Returns 1, or 0 when the job has ended.

local own = cjson.decode(ARGV[1])
if rcall('EXISTS', own.queue .. own.id) == 0 or rcall('HEXISTS', own.queue .. own.id, 'outcome') == 1 then return 0 end
detach(own.pool, own.id, 'at:' .. own.client, nil, own.graceMs, redis_now())
return 1
