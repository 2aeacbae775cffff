-- Removes jobs whose time of keeping is over. BullMQ removes old jobs only when another one ends; an idle
-- queue would keep them for ever. Needs remove.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, limit, early}: `early` jobs are removed ahead of their time, oldest first
-- Returns the removed ids.

local own = cjson.decode(ARGV[1])
local pool, queue = own.pool, own.queue
local ids
if own.early > 0 then
  ids = rcall('ZRANGE', pool .. ':retain', 0, own.early - 1)
else
  ids = rcall('ZRANGEBYSCORE', pool .. ':retain', '-inf', redis_now(), 'LIMIT', 0, own.limit)
end
for _, id in ipairs(ids) do erase(pool, queue, id) end
return ids
