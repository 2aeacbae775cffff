-- An operator's retry of one failed job: it runs again, for nobody's connection, from the tail of its class.
-- Needs rejoin.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, id}
-- Returns 'ok', or 'gone' (no such failed job), or 'cannot' (its request is not kept any more).

local own = cjson.decode(ARGV[1])
local pool, queue, id = own.pool, own.queue, own.id
if not rcall('ZSCORE', queue .. 'failed', id) then return 'gone' end
if rcall('HGET', queue .. id, 'outcome') ~= 'failed' or rcall('EXISTS', pool .. ':payload:' .. id) == 0 then
  return 'cannot'
end
rcall('ZREM', queue .. 'failed', id)
local now = redis_now()
begin_again(pool, queue, id, now)
place(pool, queue, id)
note(pool, queue, 'arrive', id, now)
rcall('XADD', queue .. 'events', 'MAXLEN', '~', 1000, '*', 'event', 'waiting', 'jobId', id, 'prev', 'failed')
return 'ok'
