-- Fragment: where a waiting job belongs.
--
-- What is dispatched next is the worker's nominee alone. A job's place in BullMQ's own order shows the plan: its
-- class (hash field `cls`, BullMQ's priority number, smaller first) and `arr` make one score, class * 2^32 + arr,
-- set at submission and rewritten by the scorer. Retry, stall, promotion and hand-back all end here.

local rcall = redis.call

-- Redis TIME in whole milliseconds.
local function redis_now()
  local t = rcall('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- The score of a job; a job that was added by other hands gets a class in the middle and arrives now.
local function score_of(pool, queue, id)
  local f = rcall('HMGET', queue .. id, 'cls', 'arr')
  local cls, arr = tonumber(f[1]), tonumber(f[2])
  if not cls or cls < 2 or cls > 2097151 then
    cls = 1048576
    rcall('HSET', queue .. id, 'cls', cls)
  end
  if not arr then
    arr = rcall('INCR', pool .. ':arrivals')
    rcall('HSET', queue .. id, 'arr', arr)
  end
  return cls * 4294967296 + arr % 4294967296
end

