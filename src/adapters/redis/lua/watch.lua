-- What the worker asks about its running job a few times a second. Needs remove.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, fence, id, expectedNow}
-- Returns {still owner 0/1, cancel code or '', client abandoned 0/1, now}.

local own = cjson.decode(ARGV[1])
local now = redis_now()
local cancel = rcall('HGET', own.pool .. ':payload:' .. own.id, 'cancel') or ''
local cancel_at = rcall('ZSCORE', own.pool .. ':deadlines', 'cancel:' .. own.id)
if cancel == '' and cancel_at and tonumber(cancel_at) <= now then cancel = 'cancelled' end
local abandoned = is_abandoned(own.pool, own.id, math.abs(now - own.expectedNow) < 1000)
return { owns_gpu(own.pool, own.fence) and 1 or 0, cancel, abandoned and 1 or 0, tostring(now) }
