-- An operator's retry of one failed job: it runs again, for nobody's connection, from the tail of its class.
-- Needs remove.lua.
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
rcall('ZREM', pool .. ':retain', id)
rcall('HDEL', queue .. id, 'outcome', 'code', 'gpuMs', 'finishedOn', 'processedOn', 'failedReason', 'atm', 'defa', 'stc')
rcall('HDEL', pool .. ':payload:' .. id, 'ingress', 'cancel')
rcall('PERSIST', pool .. ':log:' .. id)
rcall('HSET', queue .. id, 'arr', rcall('INCR', pool .. ':arrivals'))
place(pool, queue, id)
rcall('XADD', queue .. 'events', 'MAXLEN', '~', 1000, '*', 'event', 'waiting', 'jobId', id, 'prev', 'failed')
return 'ok'
