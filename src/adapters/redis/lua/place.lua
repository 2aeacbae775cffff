-- Fragment: where a waiting job belongs.
--
-- A job's place is settled at submission and never depends on how it came back to the queue: its class
-- (hash field `cls`, BullMQ's priority number, smaller first) and its arrival number (`arr`) make one score,
-- class * 2^32 + arrival. Retry, stall, promotion and hand-back all end here, so none of them can put a job
-- ahead of, or behind, its turn.

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

-- Puts a job at its place and wakes an idle worker.
local function place(pool, queue, id)
  rcall('ZADD', queue .. 'prioritized', string.format('%.0f', score_of(pool, queue, id)), id)
  rcall('ZADD', queue .. 'marker', 0, '0')
end

-- Brings every job that BullMQ put out of place back to it: the `wait` list (drained before everything
-- else), and delayed jobs that are due. Returns how many were moved.
local function repair(pool, queue, now)
  local moved = 0
  local stray = rcall('LRANGE', queue .. 'wait', 0, -1)
  for _, id in ipairs(stray) do
    rcall('LREM', queue .. 'wait', 0, id)
    if rcall('EXISTS', queue .. id) == 1 then
      place(pool, queue, id)
      moved = moved + 1
    end
  end
  local due = rcall('ZRANGEBYSCORE', queue .. 'delayed', 0, (now + 1) * 4096 - 1, 'LIMIT', 0, 1000)
  for _, id in ipairs(due) do
    rcall('ZREM', queue .. 'delayed', id)
    if rcall('EXISTS', queue .. id) == 1 then
      rcall('HSET', queue .. id, 'delay', 0)
      place(pool, queue, id)
      moved = moved + 1
    end
  end
  return moved
end
