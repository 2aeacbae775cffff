-- A client (or its ingress) no longer wants these jobs: waiting ones are removed, a running one is told.
-- Needs remove.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, code}; 2.. job ids
-- Returns one of 'evicted', 'aborting', 'settled' for each id.

local own = cjson.decode(ARGV[1])
local pool, queue = own.pool, own.queue
local fates = {}
for i = 2, #ARGV do
  local id = ARGV[i]
  if evict(pool, queue, id, own.code) then
    fates[#fates + 1] = 'evicted'
  else
    local running = false
    for _, other in ipairs(rcall('LRANGE', queue .. 'active', 0, -1)) do running = running or other == id end
    if running then
      rcall('HSET', pool .. ':payload:' .. id, 'cancel', own.code)
      fates[#fates + 1] = 'aborting'
    else
      fates[#fates + 1] = 'settled'
    end
  end
end
return fates
