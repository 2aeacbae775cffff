-- Fragment: taking a job out of Redis altogether, or out of the queue. Needs place.lua, journal.lua and
-- connections.lua and outbox.lua before it.

-- Tells every process that follows the control stream what became of a job.
local function announce(pool, event, id, detail)
  rcall('XADD', pool .. ':control', 'MAXLEN', '~', 2000, '*', 'e', event, 'j', id, 'd', detail or '')
end

-- Forgets that an ingress waits for this job.
local function drop_waiter(pool, id)
  local ingress = rcall('HGET', pool .. ':payload:' .. id, 'ingress')
  if ingress then rcall('SREM', pool .. ':waiters:' .. ingress, id) end
  detach_all(pool, id)
end

-- Removes every trace: BullMQ's record and sets, request, answer, index entries.
local function erase(pool, queue, id)
  drop_waiter(pool, id)
  never_due(pool, id)
  local member = member_of(queue, id)
  rcall('ZREM', pool .. ':jobs', id)
  if member then rcall('ZREM', pool .. ':jobs:' .. member, id) end
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

-- Takes a waiting job out of the queue, its record stays; false if it does not wait. A paused film's shot waits too, but
-- stands in no set, and no journal knows of it. `unheard`: nobody at hand reports it, so its facts go to the list the
-- scorer reads.
local function take_out(pool, queue, id, outcome, code, unheard)
  local waiting = rcall('ZREM', queue .. 'prioritized', id) + rcall('LREM', queue .. 'wait', 0, id)
    + rcall('ZREM', queue .. 'delayed', id)
  local film = rcall('HGET', queue .. id, 'film')
  local is_parked = waiting == 0 and film and not rcall('LPOS', queue .. 'active', id)
    and rcall('HEXISTS', queue .. id, 'outcome') == 0
  if waiting == 0 and not is_parked then return false end
  local film_key = film and pool .. ':film:' .. film
  if film_key and rcall('HGET', film_key, 'job') == id then
    rcall('HSET', film_key, 'state', 'paused', 'job', '', 'reason', 'the shot that waited left the queue: ' .. code)
    rcall('HINCRBY', film_key, 'rev', 1)
  end
  if unheard then
    local facts = rcall('HMGET', queue .. id, 'data', 'timestamp')
    rcall('RPUSH', pool .. ':evictions', cjson.encode({
      id = id, outcome = outcome, code = code, data = facts[1] or '{}',
      waitedMs = redis_now() - (tonumber(facts[2]) or redis_now()),
    }))
  end
  if not is_parked then note(pool, queue, 'remove', id, redis_now()) end
  return true
end

-- What ends with any job that stays on record: who waits for it, and what is due of it. Its Idempotency-Key has its
-- time from now on. Returns how long the job is to be kept, in ms: at least as long as its key.
local function close_books(pool, queue, id, keep_ms)
  drop_waiter(pool, id)
  never_due(pool, id)
  local key = rcall('HMGET', queue .. id, 'key', 'keyMs')
  if not key[1] then return keep_ms end
  rcall('PEXPIRE', key_of(pool, key[1]), key[2])
  return math.max(keep_ms, tonumber(key[2]))
end

-- Ends a waiting job that was asked for: its record stays and says why, its request goes; whoever reads its answer
-- finds an end. False if it does not wait.
local function conclude(pool, queue, id, outcome, code, message, unheard)
  if not take_out(pool, queue, id, outcome, code, unheard) then return false end
  local now = redis_now()
  local keep_ms = close_books(pool, queue, id, tonumber(rcall('HGET', queue .. id, 'keepMs') or '') or 600000)
  rcall('HSET', queue .. id, 'outcome', outcome, 'code', code, 'message', message, 'failedReason', code,
    'finishedOn', tostring(now), 'gpuMs', 0)
  rcall('ZADD', queue .. 'failed', now, id)
  tell_webhook(pool, queue, id, outcome, code, message)
  rcall('DEL', pool .. ':payload:' .. id)
  local log = pool .. ':log:' .. id
  local last = rcall('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
  rcall('XADD', log, (last and string.match(last[1], '^%d+') or '0') .. '-18446744073709551615', 'e',
    cjson.encode({ ok = false, code = code, message = message }))
  rcall('ZADD', pool .. ':retain', now + keep_ms, id)
  rcall('PEXPIRE', log, string.format('%.0f', keep_ms))
  announce(pool, 'end', id, outcome .. ' ' .. code)
  return true
end

-- Ends a job that still waits when its start deadline has passed.
local function expire(pool, queue, id)
  return conclude(pool, queue, id, 'expired', 'start_deadline_passed', 'the start deadline passed while the job waited',
    true)
end

-- Removes a waiting job for good; false if it does not wait. `unheard` as above.
local function evict(pool, queue, id, code, unheard)
  if not take_out(pool, queue, id, 'evicted', code, unheard) then return false end
  free_key(pool, queue, id)
  tell_webhook(pool, queue, id, 'evicted', code, 'the client has gone')
  erase(pool, queue, id)
  announce(pool, 'end', id, 'evicted ' .. code)
  return true
end

-- What a client asked of a job that ran at the time, when the job is back in the queue.
local function honour_cancel(pool, queue, id)
  local code = rcall('HGET', pool .. ':payload:' .. id, 'cancel')
  if code == 'cancelled' then
    return conclude(pool, queue, id, 'cancelled', 'cancelled', 'the job was cancelled', true)
  end
  return code and evict(pool, queue, id, code, true)
end
