-- Gives waiting jobs the numbers of the plan, so that BullMQ's own order shows it. Needs place.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue}; 2.. job id, class, low part of the score
-- Returns how many still waited. What is dispatched does not depend on it.

local own = cjson.decode(ARGV[1])
local queue = own.queue
local written = 0
for i = 2, #ARGV - 2, 3 do
  local id, cls, low = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if rcall('ZSCORE', queue .. 'prioritized', id) then
    rcall('HSET', queue .. id, 'cls', cls, 'arr', low, 'priority', cls)
    rcall('ZADD', queue .. 'prioritized', 'XX',
      string.format('%.0f', tonumber(cls) * 4294967296 + tonumber(low)), id)
    written = written + 1
  end
end
return written
