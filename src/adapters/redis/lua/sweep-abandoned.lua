-- Evicts the jobs of ingresses that died. Needs remove.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, expectedNow, limit, graceMs}; jobs with an Idempotency-Key have that time left
-- Returns {now, JSON of each job evicted since the last call}.

local own = cjson.decode(ARGV[1])
local pool, queue = own.pool, own.queue
local now = redis_now()
local evicted = 0
if math.abs(now - own.expectedNow) < 1000 then
  for _, ingress in ipairs(rcall('SMEMBERS', pool .. ':ingresses')) do
    if rcall('EXISTS', pool .. ':alive:' .. ingress) == 0 then
      local left = 0
      for _, id in ipairs(rcall('SMEMBERS', pool .. ':waiters:' .. ingress)) do
        if evicted >= own.limit then left = left + 1 else
          if rcall('HEXISTS', queue .. id, 'key') == 1 then
            detach(pool, id, nil, ingress, own.graceMs, now)
            rcall('SREM', pool .. ':waiters:' .. ingress, id)
          elseif evict(pool, queue, id, 'client_closed', true) then
            evicted = evicted + 1
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
local told = rcall('LRANGE', pool .. ':evictions', 0, 999)
if #told > 0 then rcall('LTRIM', pool .. ':evictions', #told, -1) end
return { tostring(now), told }
