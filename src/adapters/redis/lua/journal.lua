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

local function journal_token(pool)
  local head = rcall('HMGET', pool .. ':journal:head', 'v', 'e')
  if not head[1] or not head[2] then return '0-0' end
  return head[1] .. '-' .. head[2]
end

-- What waits for each member, by job: the size of its request in bytes. For the caps at submission.
local function count_waiting(pool, kind, id, facts)
  if facts == '' then return end
  local known, led = pcall(cjson.decode, facts)
  if not known or not led.m then return end
  local key = pool .. ':member:' .. led.m
  if kind == 'arrive' or kind == 'back' then rcall('HSET', key, id, led.y or 0) else rcall('HDEL', key, id) end
end

local function note(pool, queue, kind, id, at, extra)
  local head, stream = pool .. ':journal:head', pool .. ':journal'
  local version = rcall('HINCRBY', head, 'v', 1)
  local epoch = rcall('HGET', head, 'e')
  if not epoch then
    -- The head is new, or was lost: whatever the stream holds belongs to another count.
    rcall('DEL', stream)
    epoch = string.format('%.0f', redis_now())
    rcall('HSET', head, 'e', epoch)
  end
  local facts = rcall('HGET', queue .. id, 'led') or ''
  rcall('XADD', stream, 'MAXLEN', '~', JOURNAL_MAX, version .. '-' .. epoch,
    'k', kind, 't', string.format('%.0f', at), 'j', id, 'f', facts, 'x', extra or '')
  count_waiting(pool, kind, id, facts)
  if kind == 'dispatch' then
    rcall('HSET', head, 'r', id)
  elseif (kind == 'end' or kind == 'back') and rcall('HGET', head, 'r') == id then
    rcall('HDEL', head, 'r')
  end
end

-- The entries after a version of this epoch; nil when they cannot follow it (another epoch, or a gap).
local function journal_since(pool, token)
  local version, epoch = string.match(token, '^(%d+)-(%d+)$')
  local head = rcall('HMGET', pool .. ':journal:head', 'v', 'e')
  if not head[1] or head[2] ~= epoch then return nil end
  local entries = rcall('XRANGE', pool .. ':journal', string.format('%.0f', tonumber(version) + 1) .. '-0', '+')
  if #entries ~= tonumber(head[1]) - tonumber(version) then return nil end
  return entries
end
