-- Makes one job, its request and its place in the queue in one step, so that neither a job without a request
-- nor a request without a job can exist. Needs place.lua, journal.lua and `bull_add` (BullMQ's addPrioritizedJob).
--
-- KEYS   addPrioritizedJob's nine
-- ARGV   1-3 addPrioritizedJob's; 4 JSON {pool, queue, id, cls, band, facts, member, bytes, ingress?, waitingCap,
--            memberWaiting?, memberBytes?} (facts: the job's facts for policy, JSON without its end and its arrival); 5 sealed head; 6 body
-- Returns {id, arrival, now}, 'full' or 'member_full'.
-- Idempotent: a resent command returns the first one's arrival.

local own = cjson.decode(ARGV[4])
local pool, queue, id = own.pool, own.queue, own.id
local now = redis_now()

local known = rcall('HGET', queue .. id, 'arr')
if known then return { id, tonumber(known), tostring(now) } end
if rcall('ZCARD', queue .. 'prioritized') + rcall('ZCARD', queue .. 'delayed') >= own.waitingCap then return 'full' end

local counted = pool .. ':member:' .. own.member
local function member_is_full()
  if own.memberWaiting and rcall('HLEN', counted) >= own.memberWaiting then return true end
  if not own.memberBytes then return false end
  local bytes = own.bytes
  for _, each in ipairs(rcall('HVALS', counted)) do bytes = bytes + (tonumber(each) or 0) end
  return bytes > own.memberBytes
end
if member_is_full() then
  -- Jobs that other hands removed were not counted out: nothing told whose they were.
  for _, other in ipairs(rcall('HKEYS', counted)) do
    if not rcall('ZSCORE', queue .. 'prioritized', other) and not rcall('ZSCORE', queue .. 'delayed', other) then
      rcall('HDEL', counted, other)
    end
  end
  if member_is_full() then return 'member_full' end
end

bull_add(KEYS, { ARGV[1], ARGV[2], ARGV[3] })
local arrival = rcall('INCR', pool .. ':arrivals')
rcall('HSET', queue .. id, 'cls', own.cls, 'arr', arrival, 'band', own.band, 'timestamp', tostring(now),
  'led', string.format('%s,"a":%.0f,"s":%d}', own.facts, now, arrival))
rcall('ZADD', queue .. 'prioritized', 'XX', string.format('%.0f', score_of(pool, queue, id)), id)
note(pool, queue, 'arrive', id, now)

local payload = pool .. ':payload:' .. id
rcall('HSET', payload, 'head', ARGV[5], 'body', ARGV[6])
if own.ingress then
  rcall('HSET', payload, 'ingress', own.ingress)
  rcall('SADD', pool .. ':waiters:' .. own.ingress, id)
end
return { id, arrival, tostring(now) }
