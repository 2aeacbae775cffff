-- Lets the board show where waiting jobs stand, as BullMQ's progress of a job.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue}; 2.. job id, JSON to show
-- A job that waits no longer is left alone: writing to its hash would bring back one that was removed.

local own = cjson.decode(ARGV[1])
for i = 2, #ARGV - 1, 2 do
  if redis.call('ZSCORE', own.queue .. 'prioritized', ARGV[i]) then
    redis.call('HSET', own.queue .. ARGV[i], 'progress', ARGV[i + 1])
  end
end
return 0
