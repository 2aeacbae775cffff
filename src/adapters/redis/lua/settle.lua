-- Ends one run and fetches the next job, in one step: the last pieces of the answer, BullMQ's own finish,
-- retention, the next shot of its film, and the next pop. Needs fetch.lua, run-standing.lua, films.lua and
-- `bull_finish` (BullMQ's moveToFinished).
--
-- KEYS   moveToFinished's fourteen
-- ARGV   1-9 moveToFinished's; 10 prefix of moveToActive; 11 its msgpack options;
--        12 JSON {pool, queue, fence, expectedNow, id, token, outcome, code, message, fetchNext, retainMs, gpuMs, swapMs, endedMs, forget, keepPayload,
--           shot?, reason?, filmKeepMs, and fetch.lua's}: the nominee is the pick for the state after this end, and after
--           the arrival of `shot`; 13, 14 that shot's sealed head and body; 15.. the log's tail: entry id, field, value, …
-- Returns {BullMQ's reply or 0, …} as fetch.lua; 'fenced'; 'lost' when the job is not ours any more.
--
-- Idempotent under resent commands: once settled, it only fetches, and the fetch is idempotent itself.

local own = cjson.decode(ARGV[12])
local pool, queue, id = own.pool, own.queue, own.id
if not owns_gpu(pool, own.fence) then return 'fenced' end

local activate_keys = { KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[14] }
local function nothing(bull)
  return { bull, false, tostring(redis_now()), 'ok', journal_since(pool, own.journal) or false }
end
local function next_job()
  if not own.fetchNext then return nothing(0) end
  return fetch(activate_keys, ARGV[10], ARGV[11], own)
end

local standing = standing_of_run(KEYS[2], queue, id, own.token)
if standing == 'lost' then return 'lost' end
if standing == 'over' then
  -- Settled by an earlier copy of this command, or handed back by a reclaim: then it is not ours to report.
  if rcall('EXISTS', queue .. id) == 1 and not rcall('HGET', queue .. id, 'outcome') then return 'lost' end
  own.expect = own.journal
  return next_job()
end

local now = redis_now()
local log = pool .. ':log:' .. id
for i = 15, #ARGV - 2, 3 do
  -- Refused when stored by an earlier copy of this command; anything else is a real error.
  local ok = redis.pcall('XADD', log, ARGV[i], ARGV[i + 1], ARGV[i + 2])
  if type(ok) == 'table' and ok.err and not string.find(ok.err, 'equal or smaller', 1, true) then return ok end
end

local bull_argv = { ARGV[1], tostring(now), ARGV[3], ARGV[4], ARGV[5], '0', ARGV[7], ARGV[8], ARGV[9] }
local finished = bull_finish(KEYS, bull_argv)
if finished ~= 0 then return nothing(finished) end

-- The worker planned with its own reading of our clock; when that is off, it plans again.
local is_close = math.abs(now - own.endedMs) <= 50
local is_fresh = is_close and journal_token(pool) == own.journal
local at = is_close and own.endedMs or now
note(pool, queue, 'end', id, at, string.format('%.0f', own.gpuMs))

local next_waits = false
tell_webhook(pool, queue, id, own.outcome, own.code, own.message, own.gpuMs)
if own.forget then
  free_key(pool, queue, id)
  erase(pool, queue, id)
else
  rcall('HSET', queue .. id, 'outcome', own.outcome, 'code', own.code, 'message', own.message, 'gpuMs', own.gpuMs,
    'swapMs', own.swapMs)
  local keep_ms = close_books(pool, queue, id, own.retainMs)
  if own.keepPayload then
    rcall('HDEL', pool .. ':payload:' .. id, 'ingress', 'cancel', 'work')
  else
    rcall('DEL', pool .. ':payload:' .. id)
  end
  rcall('ZADD', pool .. ':retain', now + keep_ms, id)
  rcall('PEXPIRE', log, string.format('%.0f', keep_ms))
  next_waits = film_settled(pool, queue, id, own, keep_ms, ARGV[13], ARGV[14], at, now)
end
announce(pool, 'end', id, own.outcome .. ' ' .. own.code)
-- The pick was made for a queue in which the next shot waits, if there is one.
own.expect = is_fresh and next_waits == (own.shot ~= nil) and journal_token(pool) or ''
return next_job()
