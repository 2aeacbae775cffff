-- Fragment: what a job knows of those who asked for it: the connections that wait for it under an Idempotency-Key, and
-- what is due of it and when. Needs place.lua.
--
-- A connection is a field `at:<connection>` of the job's payload, its value the ingress that holds it; a job that somebody
-- wants whoever is connected has `at:anyone`. `<pool>:waiters:<ingress>` names the jobs of each ingress.
--
-- `<pool>:deadlines`, by due time in ms: `start:<id>` expires a job that still waits, `cancel:<id>` cancels it waiting
-- or running, `grace:<id>` gives up a job with a key whose last connection has gone.

-- Where an Idempotency-Key keeps its job (hash: job, request).
local function key_of(pool, name)
  return pool .. ':idem:' .. name
end

-- The member of a job; nothing when its facts are gone.
local function member_of(queue, id)
  local facts = rcall('HGET', queue .. id, 'led')
  local known, led = pcall(cjson.decode, facts or '')
  return known and type(led) == 'table' and led.m
end

-- The first time that is said counts: a command that is sent again moves nothing.
local function due_at(pool, what, id, at)
  rcall('ZADD', pool .. ':deadlines', 'NX', string.format('%.0f', at), what .. ':' .. id)
end

local function never_due(pool, id)
  rcall('ZREM', pool .. ':deadlines', 'start:' .. id, 'cancel:' .. id, 'grace:' .. id)
end

-- What a job that arrives at a time was asked for with: its deadlines, and who is told of its end. `own`: startByMs?,
-- startWithinMs?, cancelAfterMs?, hook?.
local function take_terms(pool, id, own, at)
  if own.hook then rcall('HSET', pool .. ':payload:' .. id, 'hook', own.hook) end
  local start_by = own.startByMs or (own.startWithinMs and at + own.startWithinMs)
  if start_by then due_at(pool, 'start', id, start_by) end
  if own.cancelAfterMs then due_at(pool, 'cancel', id, at + own.cancelAfterMs) end
end

-- Whether the time for a job's start is over.
local function is_late(pool, id, now)
  local start_by = rcall('ZSCORE', pool .. ':deadlines', 'start:' .. id)
  return start_by and tonumber(start_by) <= now
end

-- One more connection waits for a job that has not ended; without a client: somebody who will come back.
local function attach(pool, queue, id, client, ingress)
  local payload = pool .. ':payload:' .. id
  if rcall('HEXISTS', queue .. id, 'outcome') == 1 then return end
  rcall('HSET', payload, 'at:' .. (client or 'anyone'), ingress or '')
  if client and ingress then rcall('SADD', pool .. ':waiters:' .. ingress, id) end
  rcall('ZREM', pool .. ':deadlines', 'grace:' .. id)
end

-- Names and ingresses of those attached.
local function attached(pool, id)
  local payload, found = pool .. ':payload:' .. id, {}
  for _, field in ipairs(rcall('HKEYS', payload)) do
    if string.sub(field, 1, 3) == 'at:' then found[field] = rcall('HGET', payload, field) end
  end
  return found
end

-- Nobody is connected to this job any more; its record says nothing of them.
local function detach_all(pool, id)
  for field, ingress in pairs(attached(pool, id)) do
    rcall('HDEL', pool .. ':payload:' .. id, field)
    rcall('SREM', pool .. ':waiters:' .. ingress, id)
  end
end

-- A connection (`at:<connection>`), or all of one ingress, are gone. When nobody is left the job has its time of
-- grace.
local function detach(pool, id, which, ingress, grace_ms, now)
  local left = 0
  for field, at in pairs(attached(pool, id)) do
    if field == which or (not which and at == ingress) then
      rcall('HDEL', pool .. ':payload:' .. id, field)
    else
      left = left + 1
    end
  end
  if left == 0 then due_at(pool, 'grace', id, now + grace_ms) end
end

-- The job's key names nothing any more: a repeat with it is a job of its own.
local function free_key(pool, queue, id)
  local name = rcall('HGET', queue .. id, 'key')
  if name and rcall('HGET', key_of(pool, name), 'job') == id then rcall('DEL', key_of(pool, name)) end
end
