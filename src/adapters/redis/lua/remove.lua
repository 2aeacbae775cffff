-- Fragment: taking a job out of Redis altogether. Needs place.lua and journal.lua before it.

-- Tells every process that follows the control stream what became of a job.
local function announce(pool, event, id, detail)
  rcall('XADD', pool .. ':control', 'MAXLEN', '~', 2000, '*', 'e', event, 'j', id, 'd', detail or '')
end

-- Forgets that an ingress waits for this job.
local function drop_waiter(pool, id)
  local ingress = rcall('HGET', pool .. ':payload:' .. id, 'ingress')
  if ingress then rcall('SREM', pool .. ':waiters:' .. ingress, id) end
end

-- Removes every trace: BullMQ's record and sets, request, answer, index entries.
local function erase(pool, queue, id)
  drop_waiter(pool, id)
  rcall('LREM', queue .. 'wait', 0, id)
  rcall('ZREM', queue .. 'prioritized', id)
  rcall('ZREM', queue .. 'delayed', id)
  rcall('ZREM', queue .. 'completed', id)
  rcall('ZREM', queue .. 'failed', id)
  rcall('ZREM', pool .. ':retain', id)
  rcall('DEL', queue .. id, queue .. id .. ':lock', queue .. id .. ':logs',
    pool .. ':payload:' .. id, pool .. ':log:' .. id)
end

-- True when the job waits for a client whose ingress is gone. `prompt` says that this command was not held
-- up on its way (see redis-clock.ts): after an outage a missing liveness key proves nothing yet.
local function is_abandoned(pool, id, prompt)
  if not prompt then return false end
  local ingress = rcall('HGET', pool .. ':payload:' .. id, 'ingress')
  return ingress and rcall('EXISTS', pool .. ':alive:' .. ingress) == 0
end

-- Removes a waiting job for good; false if it does not wait. `unheard`: nobody at hand reports it, so its facts
-- go to the list the scorer reads.
local function evict(pool, queue, id, code, unheard)
  local waiting = rcall('ZREM', queue .. 'prioritized', id) + rcall('LREM', queue .. 'wait', 0, id)
    + rcall('ZREM', queue .. 'delayed', id)
  if waiting == 0 then return false end
  if unheard then
    local facts = rcall('HMGET', queue .. id, 'data', 'timestamp')
    rcall('RPUSH', pool .. ':evictions', cjson.encode({
      id = id, code = code, data = facts[1] or '{}', waitedMs = redis_now() - (tonumber(facts[2]) or redis_now()),
    }))
  end
  note(pool, queue, 'remove', id, redis_now())
  erase(pool, queue, id)
  announce(pool, 'end', id, 'evicted ' .. code)
  return true
end
