-- Fragment: jobs come (back) to the queue, told to the journal. Needs place.lua, journal.lua, remove.lua.

-- Puts a job at its place and wakes an idle worker.
local function place(pool, queue, id)
  rcall('ZADD', queue .. 'prioritized', string.format('%.0f', score_of(pool, queue, id)), id)
  rcall('ZADD', queue .. 'marker', 0, '0')
end

-- What policy must know of a job; one added by other hands is nobody's, in the middle, and arrives now.
local function ensure_facts(pool, queue, id, now)
  if rcall('HEXISTS', queue .. id, 'led') == 1 then return end
  score_of(pool, queue, id)
  local arr = rcall('HGET', queue .. id, 'arr')
  rcall('HSET', queue .. id, 'led',
    string.format('{"m":"shared","r":"free","p":0,"o":"","y":0,"a":%.0f,"s":%s}', now, arr))
end

-- Bytes of `away` that are kept: some sixty absences. Who pauses and resumes a film all day must not fill Redis.
local AWAY_BYTES = 2000

-- Remembers, in `away` as `<p or e><from>-<to> ...`, how long a job was parked or had ended.
local function back_from_absence(queue, id, now)
  local parked = rcall('HGET', queue .. id, 'parked')
  local from = parked or rcall('HGET', queue .. id, 'finishedOn')
  if not from then return end
  local before = rcall('HGET', queue .. id, 'away') or ''
  local away = string.format('%s%s%s-%.0f ', before, parked and 'p' or 'e', from, now)
  rcall('HSET', queue .. id, 'away', string.sub(away, -AWAY_BYTES))
  rcall('HDEL', queue .. id, 'parked')
end

-- An ended or parked job is to run again: it arrives anew, for nobody's connection.
local function begin_again(pool, queue, id, now)
  back_from_absence(queue, id, now)
  rcall('ZREM', pool .. ':retain', id)
  rcall('HDEL', queue .. id, 'outcome', 'code', 'message', 'gpuMs', 'swapMs', 'finishedOn', 'processedOn', 'failedReason', 'atm', 'defa', 'stc')
  rcall('HDEL', pool .. ':payload:' .. id, 'ingress', 'cancel', 'work')
  rcall('PERSIST', pool .. ':log:' .. id)
  local arr = rcall('INCR', pool .. ':arrivals')
  ensure_facts(pool, queue, id, now)
  local led = string.gsub(rcall('HGET', queue .. id, 'led'), '"a":%d+,"s":%d+}$',
    string.format('"a":%.0f,"s":%d}', now, arr))
  rcall('HSET', queue .. id, 'arr', arr, 'led', led)
  -- The shot a film has failed at: the film goes on.
  local film = rcall('HGET', queue .. id, 'film')
  local key = film and pool .. ':film:' .. film
  if key and rcall('HGET', key, 'job') == id and rcall('HGET', key, 'state') == 'failed' then
    rcall('HSET', key, 'state', 'running', 'reason', '')
    rcall('HINCRBY', key, 'rev', 1)
    rcall('SADD', pool .. ':films:running', film)
  end
end

-- A job that BullMQ put into `wait`, which it empties before everything else, goes where it belongs:
-- 1 an ended job that was retried past us arrives anew, or, its request being gone, stays ended;
-- 2 a job the journal has as running lost its worker;
-- 3 any other simply waits.
local function rejoin(pool, queue, id, now)
  if rcall('EXISTS', queue .. id) == 0 then return false end
  local outcome = rcall('HGET', queue .. id, 'outcome')
  if outcome then
    if rcall('EXISTS', pool .. ':payload:' .. id) == 0 then
      rcall('HSET', queue .. id, 'finishedOn', tostring(now))
      rcall('ZADD', queue .. (outcome == 'completed' and 'completed' or 'failed'), now, id)
      return true
    end
    begin_again(pool, queue, id, now)
  elseif rcall('HGET', pool .. ':journal:head', 'r') == id then
    local started = tonumber(rcall('HGET', queue .. id, 'processedOn') or '') or now
    note(pool, queue, 'back', id, now, string.format('%.0f %.0f', math.max(0, now - started), now))
  end
  ensure_facts(pool, queue, id, now)
  place(pool, queue, id)
  note(pool, queue, 'arrive', id, now)
  return true
end

-- Brings every job that BullMQ put out of place back to it: the `wait` list, and delayed jobs that are due.
-- Returns how many were moved.
local function repair(pool, queue, now)
  local moved = 0
  local stray = rcall('LRANGE', queue .. 'wait', 0, -1)
  for i = #stray, 1, -1 do
    rcall('LREM', queue .. 'wait', 0, stray[i])
    if rejoin(pool, queue, stray[i], now) then moved = moved + 1 end
  end
  local due = rcall('ZRANGEBYSCORE', queue .. 'delayed', 0, (now + 1) * 4096 - 1, 'LIMIT', 0, 1000)
  for _, id in ipairs(due) do
    rcall('ZREM', queue .. 'delayed', id)
    if rcall('EXISTS', queue .. id) == 1 then
      rcall('HSET', queue .. id, 'delay', 0)
      ensure_facts(pool, queue, id, now)
      place(pool, queue, id)
      note(pool, queue, 'arrive', id, now)
      moved = moved + 1
    end
  end
  return moved
end
