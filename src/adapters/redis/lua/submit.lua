-- Makes one job, its request and its place in the queue in one step, so that neither a job without a request
-- nor a request without a job can exist. Needs place.lua and `bull_add` (BullMQ's addPrioritizedJob).
--
-- KEYS   addPrioritizedJob's nine
-- ARGV   1-3 addPrioritizedJob's; 4 JSON {pool, queue, id, cls, band, ingress?, waitingCap}; 5 sealed head; 6 body
-- Returns {id, arrival, now} or 'full'.
-- Idempotent: a resent command returns the first one's arrival.

local own = cjson.decode(ARGV[4])
local pool, queue, id = own.pool, own.queue, own.id
local now = redis_now()

local known = rcall('HGET', queue .. id, 'arr')
if known then return { id, tonumber(known), tostring(now) } end
if rcall('ZCARD', queue .. 'prioritized') + rcall('ZCARD', queue .. 'delayed') >= own.waitingCap then return 'full' end

bull_add(KEYS, { ARGV[1], ARGV[2], ARGV[3] })
local arrival = rcall('INCR', pool .. ':arrivals')
rcall('HSET', queue .. id, 'cls', own.cls, 'arr', arrival, 'band', own.band, 'timestamp', tostring(now))
rcall('ZADD', queue .. 'prioritized', 'XX', string.format('%.0f', score_of(pool, queue, id)), id)

local payload = pool .. ':payload:' .. id
rcall('HSET', payload, 'head', ARGV[5], 'body', ARGV[6])
if own.ingress then
  rcall('HSET', payload, 'ingress', own.ingress)
  rcall('SADD', pool .. ':waiters:' .. own.ingress, id)
end
return { id, arrival, tostring(now) }
