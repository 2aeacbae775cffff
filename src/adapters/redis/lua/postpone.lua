-- A failed attempt that will be repeated: the job waits out its backoff in BullMQ's delayed set, keeping its
-- arrival number, and the next job goes. Needs fetch.lua, run-standing.lua and `bull_delay` (BullMQ's moveToDelayed).
--
-- KEYS   moveToDelayed's eleven, then moveToActive's eleven
-- ARGV   1-9 moveToDelayed's; 10 prefix; 11 msgpack options of moveToActive;
--        12 JSON {pool, queue, fence, expectedNow, id, token, fetchNext, gpuMs, and fetch.lua's}
-- Returns as settle.lua.

local own = cjson.decode(ARGV[12])
local pool, queue, id = own.pool, own.queue, own.id
if not owns_gpu(pool, own.fence) then return 'fenced' end

local delay_keys, activate_keys = {}, {}
for i = 1, 11 do
  delay_keys[i] = KEYS[i]
  activate_keys[i] = KEYS[11 + i]
end
local function nothing(bull)
  return { bull, false, tostring(redis_now()), 'ok', journal_since(pool, own.journal) or false }
end
local function next_job()
  if not own.fetchNext then return nothing(0) end
  return fetch(activate_keys, ARGV[10], ARGV[11], own)
end
-- What goes next is planned when the books of this end are known: the worker hears `stale`, unless this was done before.
own.expect = own.journal

local standing = standing_of_run(delay_keys[2], queue, id, own.token)
if standing == 'lost' then return 'lost' end
if standing == 'over' then return next_job() end

local now = redis_now()
local bull_argv = { ARGV[1], tostring(now), ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], '0', '' }
local moved = bull_delay(delay_keys, bull_argv)
if moved ~= 0 then return nothing(moved) end
note(pool, queue, 'back', id, now, string.format('%.0f %.0f', own.gpuMs, now + tonumber(ARGV[5])))
announce(pool, 'wait', id, '')
honour_cancel(pool, queue, id)
return next_job()
