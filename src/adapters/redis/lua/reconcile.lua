-- Tells the journal where these jobs really are. Needs rejoin.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue}; 2.. job ids
-- Returns how many entries were written. Hands that keep no journal (BullMQ's own remove, promote, drain, add)
-- leave the journal behind the truth; whoever notices calls this with the jobs concerned.

local own = cjson.decode(ARGV[1])
local pool, queue, now = own.pool, own.queue, redis_now()
local active = {}
for _, id in ipairs(rcall('LRANGE', queue .. 'active', 0, -1)) do active[id] = true end
local told = 0
for i = 2, #ARGV do
  local id = ARGV[i]
  local dueMs = rcall('ZSCORE', queue .. 'delayed', id)
  if active[id] then
    told = told
  elseif rcall('EXISTS', queue .. id) == 0 then
    rcall('ZREM', queue .. 'prioritized', id)
    rcall('ZREM', queue .. 'delayed', id)
    note(pool, queue, 'remove', id, now)
    told = told + 1
  elseif rcall('ZSCORE', queue .. 'prioritized', id) then
    ensure_facts(pool, queue, id, now)
    note(pool, queue, 'arrive', id, now)
    told = told + 1
  elseif dueMs then
    ensure_facts(pool, queue, id, now)
    note(pool, queue, 'remove', id, now)
    note(pool, queue, 'back', id, now, string.format('0 %.0f', math.floor(tonumber(dueMs) / 4096)))
    told = told + 2
  else
    note(pool, queue, 'remove', id, now)
    told = told + 1
  end
end
return told
