-- Fragment: the journal of the queue. Needs place.lua's `rcall` and `redis_now`.
--
-- Every change of what waits or runs is written here by the same script that makes it, so that the journal and
-- the queue cannot disagree. Policy's ledger is the sum of its entries.
--
-- Head `<pool>:journal:head`: v (version: number of the last entry), e (epoch: when the count began, Redis TIME in
-- ms), r (the running job). Entry `<v>-<e>`: k kind, t time in ms, j job id, f the job's facts as JSON; and x for
-- `dispatch` members passed over (JSON), for `end` GPU ms used, for `back` "used eligibleAt" in ms.

-- A safety net: the worker keeps the stream short by itself.
local JOURNAL_MAX = 500000

-- The head's version and epoch; nothing when it is missing or damaged.
local function journal_head(pool)
  local head = redis.pcall('HMGET', pool .. ':journal:head', 'v', 'e')
  local version, epoch = head[1], head[2]
  if version and epoch and string.match(version, '^%d+$') and string.match(epoch, '^%d+$') then
    return tonumber(version), epoch
  end
end

local function journal_token(pool)
  local version, epoch = journal_head(pool)
  return version and string.format('%.0f-%s', version, epoch) or '0-0'
end

-- What waits for each member, by job: the size of its request in bytes. For the caps at submission. A job that ends
-- has not been waiting since its dispatch.
local function count_waiting(pool, kind, id, facts)
  if facts == '' or kind == 'end' then return end
  local known, led = pcall(cjson.decode, facts)
  if not known or not led.m then return end
  local key = pool .. ':member:' .. led.m
  if kind == 'arrive' or kind == 'back' then rcall('HSET', key, id, led.y or 0) else rcall('HDEL', key, id) end
end

-- The stream holds entries that the count is yet to reach, or is no stream.
local function cannot_follow(added)
  return string.find(added.err, 'equal or smaller', 1, true) or string.find(added.err, 'WRONGTYPE', 1, true)
end

-- When the head was lost or does not fit the stream, the count starts over with this entry: whatever the stream holds
-- belongs to another count, and whoever follows sees that by the epoch.
local function note(pool, queue, kind, id, at, extra)
  local head, stream = pool .. ':journal:head', pool .. ':journal'
  local facts = rcall('HGET', queue .. id, 'led') or ''
  local function add(call, version, epoch)
    return call('XADD', stream, 'MAXLEN', '~', JOURNAL_MAX, string.format('%.0f-%s', version, epoch),
      'k', kind, 't', string.format('%.0f', at), 'j', id, 'f', facts, 'x', extra or '')
  end
  local version, epoch = journal_head(pool)
  version = (version or 0) + 1
  local added = epoch and add(redis.pcall, version, epoch)
  if not epoch or (added.err and cannot_follow(added)) then
    local running = redis.pcall('HGET', head, 'r')
    rcall('DEL', head, stream)
    version, epoch = 1, string.format('%.0f', redis_now())
    add(rcall, version, epoch)
    if type(running) == 'string' then rcall('HSET', head, 'r', running) end
  elseif added.err then
    error(added.err)
  end
  rcall('HSET', head, 'v', string.format('%.0f', version), 'e', epoch)
  count_waiting(pool, kind, id, facts)
  if kind == 'dispatch' then
    rcall('HSET', head, 'r', id)
  elseif (kind == 'end' or kind == 'back') and rcall('HGET', head, 'r') == id then
    rcall('HDEL', head, 'r')
  end
end

-- The entries after a place; nil when they cannot follow it (another epoch, or a gap). Any count may follow the very
-- beginning.
local function journal_since(pool, token)
  local known, known_epoch = string.match(token, '^(%d+)-(%d+)$')
  local version, epoch = journal_head(pool)
  known = tonumber(known)
  if not version then return token == '0-0' and {} or nil end
  if known > 0 and known_epoch ~= epoch then return nil end
  local entries = rcall('XRANGE', pool .. ':journal', string.format('%.0f-0', known + 1), '+')
  if #entries ~= version - known then return nil end
  return entries
end
