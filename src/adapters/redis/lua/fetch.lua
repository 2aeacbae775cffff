-- Fragment: the next job for the one worker. Needs place.lua, remove.lua, owns.lua, and `bull_activate`, BullMQ's own
-- moveToActive text wrapped as a function of (KEYS, ARGV).
--
-- Idempotent: a resent command (its reply was lost) finds the job that the first one locked for this worker and
-- hands that one out again, instead of popping a second job that nobody would run. A worker runs one job at a time,
-- so whatever is locked for it while it fetches is the fruit of a fetch it never heard of.

-- keys: moveToActive's eleven keys; prefix, opts: its ARGV[1] and ARGV[3] (msgpack); own: our arguments.
local function fetch(keys, prefix, opts, own)
  local pool, queue, now = own.pool, own.queue, redis_now()
  local token = cmsgpack.unpack(opts)['token']
  local active = rcall('LRANGE', keys[2], 0, -1)
  for _, id in ipairs(active) do
    local lock = rcall('GET', queue .. id .. ':lock')
    if lock and holder(lock) == holder(token) then
      rcall('SET', queue .. id .. ':lock', token, 'KEEPTTL')
      return { { rcall('HGETALL', queue .. id), id, 0, 0 }, rcall('HGETALL', pool .. ':payload:' .. id), tostring(now) }
    end
  end
  -- Somebody's run was not settled: never two at once. Reclaiming it wakes the worker again.
  if #active > 0 then return { { 0, 0, 0, 0 }, false, tostring(now) } end

  repair(pool, queue, now)
  local prompt = math.abs(now - own.expectedNow) < 1000
  for _ = 1, 1000 do
    local head = rcall('ZRANGE', keys[3], 0, 0)[1]
    if not head or not is_abandoned(pool, head, prompt) then break end
    evict(pool, queue, head, 'client_closed', true)
  end

  local result = bull_activate(keys, { prefix, tostring(now), opts })
  local id = result[2]
  if type(id) ~= 'string' then return { result, false, tostring(now) } end
  announce(pool, 'start', id, '')
  return { result, rcall('HGETALL', pool .. ':payload:' .. id), tostring(now) }
end
