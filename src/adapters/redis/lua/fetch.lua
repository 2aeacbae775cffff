-- Fragment: the next job for the one worker. Needs rejoin.lua, owns.lua, and `bull_activate`, BullMQ's own
-- moveToActive text wrapped as a function of (KEYS, ARGV).
--
-- The worker nominates: it names the job that policy picks for the queue as the journal has it at `own.expect`.
-- If anything happened since, nothing is popped; the worker hears what, and nominates again. So the pick is right
-- at the moment of the pop.
--
-- Idempotent: a resent command (its reply was lost) finds the job that the first one locked for this worker and
-- hands that one out again, instead of popping a second job that nobody would run. A worker runs one job at a time,
-- so whatever is locked for it while it fetches is the fruit of a fetch it never heard of.

-- BullMQ's number of the nominee, for the length of this script: ahead of every other's, whatever other hands have
-- made of those.
local NOMINATED = '-inf'

-- keys: moveToActive's eleven keys; prefix, opts: its ARGV[1] and ARGV[3] (msgpack); own: our arguments: journal
-- (what the worker knows), expect, nominee or '', passedOver (JSON), untilMs, waiting, inBackoff, force.
-- Returns {BullMQ's reply, payload fields or false, now, 'ok' | 'stale' | 'drift', journal entries or false}.
local function fetch(keys, prefix, opts, own)
  local pool, queue, now = own.pool, own.queue, redis_now()
  local function reply(bull, payload, status)
    return { bull, payload, tostring(now), status, journal_since(pool, own.journal) or false }
  end
  local none = { 0, 0, 0, 0 }
  local token = cmsgpack.unpack(opts)['token']
  local active = rcall('LRANGE', keys[2], 0, -1)
  for _, id in ipairs(active) do
    local lock = rcall('GET', queue .. id .. ':lock')
    if lock and holder(lock) == holder(token) then
      rcall('SET', queue .. id .. ':lock', token, 'KEEPTTL')
      return reply({ rcall('HGETALL', queue .. id), id, 0, 0 }, rcall('HGETALL', pool .. ':payload:' .. id), 'ok')
    end
  end
  -- Somebody's run was not settled: never two at once. Reclaiming it wakes the worker again.
  if #active > 0 then return reply(none, false, 'ok') end

  repair(pool, queue, now)
  if journal_token(pool) ~= own.expect and not own.force then return reply(none, false, 'stale') end
  if own.nominee ~= '' and not own.force and is_abandoned(pool, own.nominee, math.abs(now - own.expectedNow) < 1000) then
    evict(pool, queue, own.nominee, 'client_closed', true)
    return reply(none, false, 'stale')
  end
  if own.nominee ~= '' and is_late(pool, own.nominee, now) and expire(pool, queue, own.nominee) then
    return reply(none, false, 'stale')
  end
  local stands = own.nominee == '' or rcall('ZSCORE', keys[3], own.nominee)
  -- Hands that keep no journal took or added something.
  if not stands or rcall('ZCARD', keys[3]) ~= own.waiting or rcall('ZCARD', keys[7]) ~= own.inBackoff then
    if not (own.force and stands) then return reply(none, false, 'drift') end
  end
  if own.nominee == '' then
    local due = rcall('ZRANGE', keys[7], 0, 0, 'WITHSCORES')
    local untilMs = own.untilMs
    if due[2] then
      local dueMs = math.floor(tonumber(due[2]) / 4096)
      if untilMs == 0 or dueMs < untilMs then untilMs = dueMs end
    end
    return reply({ 0, 0, 0, untilMs }, false, 'ok')
  end

  rcall('ZADD', keys[3], 'XX', NOMINATED, own.nominee)
  local result = bull_activate(keys, { prefix, tostring(now), opts })
  local id = result[2]
  if type(id) ~= 'string' then
    -- BullMQ gives nothing out (its queue is paused): the nominee stands where it stood.
    rcall('ZADD', keys[3], 'XX', string.format('%.0f', score_of(pool, queue, own.nominee)), own.nominee)
    return reply(none, false, 'ok')
  end
  rcall('ZREM', pool .. ':deadlines', 'start:' .. id)
  note(pool, queue, 'dispatch', id, now, own.passedOver)
  announce(pool, 'start', id, '')
  return reply(result, rcall('HGETALL', pool .. ':payload:' .. id), 'ok')
end
