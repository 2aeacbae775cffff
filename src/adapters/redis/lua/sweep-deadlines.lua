-- Does what has come due of waiting and running jobs; see connections.lua. Needs remove.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, limit}
-- Returns how many entries were due. Ends are reported like evictions.

local own = cjson.decode(ARGV[1])
local pool, queue = own.pool, own.queue
local due = rcall('ZRANGEBYSCORE', pool .. ':deadlines', '-inf', redis_now(), 'LIMIT', 0, own.limit)
for _, entry in ipairs(due) do
  local what, id = string.match(entry, '^(%a+):(.*)$')
  rcall('ZREM', pool .. ':deadlines', entry)
  if rcall('EXISTS', queue .. id) == 1 and rcall('HEXISTS', queue .. id, 'outcome') == 0 then
    if what == 'start' then
      expire(pool, queue, id)
    elseif what == 'cancel' then
      if not conclude(pool, queue, id, 'cancelled', 'cancelled', 'its time to be cancelled had come', true) then
        rcall('HSET', pool .. ':payload:' .. id, 'cancel', 'cancelled')
      end
    elseif next(attached(pool, id)) == nil then
      if not evict(pool, queue, id, 'client_closed', true) then
        rcall('HSET', pool .. ':payload:' .. id, 'cancel', 'client_closed')
      end
    end
  end
end
return #due
