-- Adds one measured time to its series and forgets the series that were not added to for longest. Atomic, so that a
-- reader who sees a revision finds every series that belongs to it.
--
-- KEYS: 1 sorted set of series by the revision of their last sample; 2 revision; 3 the series' list.
-- ARGV: 1 the series' name; 2 milliseconds; 3 samples kept; 4 series kept; 5 what a list's key begins with.
-- Returns the new revision.
local revision = redis.call('INCR', KEYS[2])
redis.call('RPUSH', KEYS[3], ARGV[2])
redis.call('LTRIM', KEYS[3], -tonumber(ARGV[3]), -1)
redis.call('ZADD', KEYS[1], revision, ARGV[1])
local excess = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[4])
if excess > 0 then
  for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, excess - 1)) do
    redis.call('DEL', ARGV[5] .. name)
    redis.call('ZREM', KEYS[1], name)
  end
end
return revision
