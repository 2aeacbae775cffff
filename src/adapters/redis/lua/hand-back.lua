-- Returns jobs from `active` to their rightful place: the orphans of a crash, or the running job at shutdown.
-- A job whose answer had begun cannot run again unseen by its client: it is failed instead. One whose work goes on at the
-- model server still has the GPU: it stays, for the next worker to take up. Needs rejoin.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, fence, keep?, only?, worker?, lockMs, message, retainMs}; an orphan is charged until its
--          owner's last beat
-- `keep` and every job locked for `worker` stay: they run, or their fetch is about to be repeated.
-- Returns {ids handed back, ids failed, ids to be taken up} or 'fenced'.
-- Atomic so that no job is ever in two places or in none.

local own = cjson.decode(ARGV[1])
local pool, queue = own.pool, own.queue
if not owns_gpu(pool, own.fence) then return 'fenced' end

local function has_content(id)
  local last = rcall('XREVRANGE', pool .. ':log:' .. id, '+', '-', 'COUNT', 1)[1]
  if not last then return false, 0 end
  local run, offset = string.match(last[1], '^(%d+)-(%d+)$')
  return offset ~= '0' and offset ~= '18446744073709551615', run
end

local function used(id, now)
  local started = tonumber(rcall('HGET', queue .. id, 'processedOn') or '') or now
  local untilMs = now
  if not own.only then untilMs = math.min(now, tonumber(rcall('GET', pool .. ':beat') or '') or now) end
  return math.max(0, untilMs - started)
end

-- The next fetch of this worker finds it locked for itself and hands it out; without a worker it waits for one.
local function leave_for_next(id)
  if not own.worker then return end
  rcall('HINCRBY', queue .. id, 'ats', 1)
  rcall('SET', queue .. id .. ':lock', own.worker .. ':0', 'PX', own.lockMs)
end

local back, failed, taken = {}, {}, {}
for _, id in ipairs(rcall('LRANGE', queue .. 'active', 0, -1)) do
  local lock = rcall('GET', queue .. id .. ':lock')
  local stays = id == own.keep or (own.worker and lock and holder(lock) == own.worker)
  if not stays and (not own.only or own.only == id) then
    rcall('DEL', queue .. id .. ':lock')
    rcall('SREM', queue .. 'stalled', id)
    local goes_on = rcall('HEXISTS', pool .. ':payload:' .. id, 'work') == 1
    if not goes_on then rcall('LREM', queue .. 'active', 0, id) end
    if goes_on then
      leave_for_next(id)
      taken[#taken + 1] = id
    elseif rcall('EXISTS', queue .. id) == 1 then
      local begun, run = has_content(id)
      -- Nobody but its film waits for a shot: it runs again from its start.
      if begun and rcall('HEXISTS', queue .. id, 'film') == 0 then
        local now = redis_now()
        local ended = cjson.encode({ ok = false, code = 'internal_error', message = own.message })
        redis.pcall('XADD', pool .. ':log:' .. id, run .. '-18446744073709551615', 'e', ended)
        note(pool, queue, 'end', id, now, string.format('%.0f', used(id, now)))
        rcall('HSET', queue .. id, 'failedReason', own.message, 'finishedOn', tostring(now),
          'outcome', 'failed', 'code', 'internal_error', 'message', own.message, 'gpuMs', 0)
        rcall('ZADD', queue .. 'failed', now, id)
        local keep_ms = close_books(pool, queue, id, own.retainMs)
        rcall('HDEL', pool .. ':payload:' .. id, 'ingress', 'cancel')
        rcall('ZADD', pool .. ':retain', now + keep_ms, id)
        rcall('PEXPIRE', pool .. ':log:' .. id, string.format('%.0f', keep_ms))
        tell_webhook(pool, queue, id, 'failed', 'internal_error', own.message)
        announce(pool, 'end', id, 'failed internal_error')
        failed[#failed + 1] = id
      else
        local now = redis_now()
        ensure_facts(pool, queue, id, now)
        place(pool, queue, id)
        note(pool, queue, 'back', id, now, string.format('%.0f %.0f', used(id, now), now))
        announce(pool, 'wait', id, '')
        honour_cancel(pool, queue, id)
        back[#back + 1] = id
      end
    end
  end
end
return { back, failed, taken }
