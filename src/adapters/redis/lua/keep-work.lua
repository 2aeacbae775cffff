-- Keeps what the model server has taken on for a running job, with its request: a later worker takes it up. Needs owns.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, fence, id}, 2 the work (see taken-work.ts)
-- Returns 'ok' or 'fenced'.

local own = cjson.decode(ARGV[1])
if not owns_gpu(own.pool, own.fence) then return 'fenced' end
local payload = own.pool .. ':payload:' .. own.id
if redis.call('EXISTS', payload) == 1 then redis.call('HSET', payload, 'work', ARGV[2]) end
return 'ok'
