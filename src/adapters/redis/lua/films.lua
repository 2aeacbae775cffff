-- Fragment: films, chains of jobs of which one waits or runs at a time. Needs journal.lua, remove.lua, rejoin.lua,
-- enqueue.lua and `bull_add` (BullMQ's addPrioritizedJob).
--
-- `<pool>:film:<id>`: state running | paused | failed | completed | cancelled; total; done (shots that are over); job
-- (the shot done + 1; '' while it is still to be made); last (the job whose result the next shot takes values from);
-- reason (why it stands still); rev, which grows with every change. A running film's job waits or runs, a paused film's
-- is parked (its record and request are kept, it stands in no set) or ends its run, a failed film's is in BullMQ's
-- failed set.
-- `<pool>:filmkey:<name>`: film and request of an Idempotency-Key, kept as long as the film, which knows it as key.
-- `…:shots`: number -> sealed template. `…:jobs`: number -> job id, number:o -> what became of it, number:t -> tries.

local function film_key(pool, film)
  return pool .. ':film:' .. film
end

-- Where an Idempotency-Key keeps its film (hash: film, request).
local function film_key_of(pool, name)
  return pool .. ':filmkey:' .. name
end

-- Changes fields of a film, for everybody to see.
local function film_set(pool, film, ...)
  rcall('HSET', film_key(pool, film), ...)
  rcall('HINCRBY', film_key(pool, film), 'rev', 1)
end

-- How long an ended job is kept from now on; nil: until further notice.
local function keep_job(pool, id, now, keep_ms)
  if keep_ms then
    rcall('ZADD', pool .. ':retain', string.format('%.0f', now + keep_ms), id)
    rcall('PEXPIRE', pool .. ':log:' .. id, string.format('%.0f', keep_ms))
  else
    rcall('ZREM', pool .. ':retain', id)
    rcall('PERSIST', pool .. ':log:' .. id)
  end
end

-- How long a film that stands still for good is kept from now on, and the result it holds on to; nil: for ever.
local function keep_film(pool, film, now, keep_ms)
  local key = film_key(pool, film)
  local kept = { key, key .. ':shots', key .. ':jobs' }
  local name = rcall('HGET', key, 'key')
  if name then kept[4] = film_key_of(pool, name) end
  for _, each in ipairs(kept) do
    if keep_ms then rcall('PEXPIRE', each, string.format('%.0f', keep_ms)) else rcall('PERSIST', each) end
  end
  local last = rcall('HGET', key, 'last')
  if last and last ~= '' and rcall('EXISTS', pool .. ':log:' .. last) == 1 then keep_job(pool, last, now, keep_ms) end
end

-- A running film is looked after by the scorer.
local function film_state(pool, film, state, reason)
  film_set(pool, film, 'state', state, 'reason', reason or '')
  if state == 'running' then rcall('SADD', pool .. ':films:running', film)
  else rcall('SREM', pool .. ':films:running', film) end
end

-- Whether a job waits (BullMQ's sets) or has the GPU.
local function is_waiting(queue, id)
  return rcall('ZSCORE', queue .. 'prioritized', id) or rcall('ZSCORE', queue .. 'delayed', id)
    or rcall('LPOS', queue .. 'wait', id)
end
local function is_active(queue, id)
  return rcall('LPOS', queue .. 'active', id)
end

-- Makes a shot the film's job: it waits, or is parked while the film is paused, without its deadlines then. `shot`: id,
-- name, data, attempts, and enqueue.lua's and take_terms'; number is its place in the film.
local function add_shot(pool, queue, film, shot, head, body, at, waits)
  local bull = {}
  for i, name in ipairs({ 'marker', 'meta', 'id', 'prioritized', 'delayed', 'completed', 'active', 'events', 'pc' }) do
    bull[i] = queue .. name
  end
  local options = { priority = shot.cls, attempts = shot.attempts, backoff = { type = 'berth' } }
  bull_add(bull, { cmsgpack.pack({ queue, shot.id, shot.name, string.format('%.0f', at) }), shot.data, cmsgpack.pack(options) })
  rcall('HSET', queue .. shot.id, 'film', film, 'shot', shot.number)
  enqueue(pool, queue, shot, head, body, at)
  take_terms(pool, shot.id, shot, at)
  rcall('HSET', film_key(pool, film) .. ':jobs', shot.number, shot.id)
  rcall('HINCRBY', film_key(pool, film) .. ':jobs', shot.number .. ':t', 1)
  film_set(pool, film, 'job', shot.id)
  if waits then
    note(pool, queue, 'arrive', shot.id, at)
  else
    rcall('ZREM', queue .. 'prioritized', shot.id)
    rcall('HSET', queue .. shot.id, 'parked', string.format('%.0f', at))
    never_due(pool, shot.id)
  end
end

-- Takes the film's waiting shot out of the queue; its record and its request stay, its deadlines do not: nobody can
-- keep them.
local function park_shot(pool, queue, id, now)
  local waiting = rcall('ZREM', queue .. 'prioritized', id) + rcall('ZREM', queue .. 'delayed', id)
    + rcall('LREM', queue .. 'wait', 0, id)
  if waiting > 0 then
    rcall('HSET', queue .. id, 'parked', string.format('%.0f', now))
    note(pool, queue, 'remove', id, now)
  end
  if not is_active(queue, id) then never_due(pool, id) end
  return waiting > 0
end

-- The film's current shot will never run; nothing of it stays.
local function drop_shot(pool, queue, id, why, now)
  park_shot(pool, queue, id, now)
  tell_webhook(pool, queue, id, 'cancelled', 'cancelled', why)
  erase(pool, queue, id)
  announce(pool, 'end', id, 'evicted cancelled')
end

-- A parked or failed shot waits again.
local function unpark_shot(pool, queue, id, now)
  rcall('ZREM', queue .. 'failed', id)
  begin_again(pool, queue, id, now)
  place(pool, queue, id)
  note(pool, queue, 'arrive', id, now)
end

-- The film's current shot is over, in the way `what` says; the next one follows if it was handed in. Returns whether
-- that one waits now. `own`: shot? (the next one), reason? (why there is none), keepMs.
local function film_goes_on(pool, queue, film, state, done, total, what, own, head, body, at, now)
  local key = film_key(pool, film)
  rcall('HSET', key .. ':jobs', done + 1 .. ':o', what)
  film_set(pool, film, 'done', done + 1, 'job', '')
  if done + 1 >= total then
    film_state(pool, film, 'completed')
    keep_film(pool, film, now, own.filmKeepMs)
    return false
  end
  if not own.shot then
    film_state(pool, film, 'paused', own.reason or 'the next shot could not be made')
    return false
  end
  local waits = state ~= 'paused'
  if waits then film_state(pool, film, 'running') end
  add_shot(pool, queue, film, own.shot, head, body, at, waits)
  return waits
end

-- What the end of a job means for its film, in the step of its settlement. Returns whether the next shot waits now.
-- 1 a job that is not the film's current one (any more) means nothing;
-- 2 completed: its result is kept until the next one's is there, and the next shot waits, or is parked;
-- 3 failed: the film has failed, and is kept as long as the job;
-- 4 cancelled: the film is paused.
local function film_settled(pool, queue, id, own, keep_ms, head, body, at, now)
  local film = rcall('HGET', queue .. id, 'film')
  if not film then return false end
  local key = film_key(pool, film)
  local f = rcall('HMGET', key, 'state', 'done', 'total', 'job', 'last')
  -- 1
  if not f[1] or f[4] ~= id then return false end
  local done, total = tonumber(f[2]), tonumber(f[3])
  -- 2
  if own.outcome == 'completed' then
    if f[5] and f[5] ~= '' then keep_job(pool, f[5], now, keep_ms) end
    film_set(pool, film, 'last', id)
    rcall('HINCRBY', key, 'gpuMs', string.format('%.0f', own.gpuMs))
    rcall('HINCRBY', key, 'runs', 1)
    keep_film(pool, film, now, nil)
    return film_goes_on(pool, queue, film, f[1], done, total, 'completed', own, head, body, at, now)
  end
  -- 3
  if own.outcome == 'failed' then
    rcall('HSET', key .. ':jobs', done + 1 .. ':o', 'failed')
    film_state(pool, film, 'failed', 'shot ' .. done + 1 .. ' failed: ' .. (own.message or own.code))
    keep_film(pool, film, now, keep_ms)
    return false
  end
  -- 4
  film_set(pool, film, 'job', '')
  rcall('HSET', key .. ':jobs', done + 1 .. ':o', own.outcome)
  film_state(pool, film, 'paused', 'shot ' .. done + 1 .. ' was ' .. own.outcome)
  return false
end
