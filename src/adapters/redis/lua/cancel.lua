-- Cancels one job: a waiting one ends here, a running one is aborted by the worker. Needs remove.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, id}
-- Returns 'absent', 'ended' (before, in whatever way), 'cancelled' or 'cancelling'.

local own = cjson.decode(ARGV[1])
local pool, queue, id = own.pool, own.queue, own.id
if rcall('EXISTS', queue .. id) == 0 then return 'absent' end
if rcall('HEXISTS', queue .. id, 'outcome') == 1 then return 'ended' end
if conclude(pool, queue, id, 'cancelled', 'cancelled', 'the job was cancelled') then return 'cancelled' end
rcall('HSET', pool .. ':payload:' .. id, 'cancel', 'cancelled')
return 'cancelling'
