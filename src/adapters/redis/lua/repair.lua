-- The scorer's look at the queue: nothing waits in BullMQ's `wait` list, and every waiting job stands at its
-- place, whoever moved it. Needs rejoin.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, start, stop}: the ranks to look at; with the first, strays are brought back
-- Returns how many jobs were out of place, and how many were looked at.

local own = cjson.decode(ARGV[1])
local pool, queue = own.pool, own.queue
local moved = own.start == 0 and repair(pool, queue, redis_now()) or 0
local waiting = rcall('ZRANGE', queue .. 'prioritized', own.start, own.stop, 'WITHSCORES')
for i = 1, #waiting, 2 do
  local id, score = waiting[i], tonumber(waiting[i + 1])
  if rcall('EXISTS', queue .. id) == 0 then
    rcall('ZREM', queue .. 'prioritized', id)
    note(pool, queue, 'remove', id, redis_now())
    moved = moved + 1
  else
    local right = score_of(pool, queue, id)
    if score ~= right then
      rcall('ZADD', queue .. 'prioritized', 'XX', string.format('%.0f', right), id)
      rcall('HSET', queue .. id, 'priority', math.floor(right / 4294967296))
      moved = moved + 1
    end
  end
end
return { moved, #waiting / 2 }
