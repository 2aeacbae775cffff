-- Evicts the jobs of ingresses that died. Needs remove.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, expectedNow, limit}
-- Returns {now, evicted ids, bands of the evicted}.

local own = cjson.decode(ARGV[1])
local pool, queue = own.pool, own.queue
local now = redis_now()
local ids, bands = {}, {}
if math.abs(now - own.expectedNow) < 1000 then
  for _, ingress in ipairs(rcall('SMEMBERS', pool .. ':ingresses')) do
    if rcall('EXISTS', pool .. ':alive:' .. ingress) == 0 then
      local left = 0
      for _, id in ipairs(rcall('SMEMBERS', pool .. ':waiters:' .. ingress)) do
        if #ids >= own.limit then left = left + 1 else
          local band = rcall('HGET', queue .. id, 'band') or ''
          if evict(pool, queue, id, 'client_closed') then
            ids[#ids + 1] = id
            bands[#bands + 1] = band
          elseif rcall('HEXISTS', pool .. ':payload:' .. id, 'ingress') == 1 then
            -- Still running: the worker aborts it within a moment and its settlement drops it here.
            left = left + 1
          else
            rcall('SREM', pool .. ':waiters:' .. ingress, id)
          end
        end
      end
      if left == 0 then
        rcall('DEL', pool .. ':waiters:' .. ingress)
        rcall('SREM', pool .. ':ingresses', ingress)
      end
    end
  end
end
return { tostring(now), ids, bands }
