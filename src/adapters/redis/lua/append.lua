-- Adds one entry to a response log, if we still own the GPU. The entry id is `run-endOffset`, so Redis itself
-- refuses a second copy, an older run, and anything after the end.
--
-- KEYS   1 pool, 2 log
-- ARGV   1 fence, 2 entry id, 3 field, 4 value
-- Returns 'ok', 'fenced', or 'stale' when a newer run (or an end) is in the log.

if redis.call('HGET', KEYS[1] .. ':owner', 'fence') ~= ARGV[1] then return 'fenced' end
local added = redis.pcall('XADD', KEYS[2], ARGV[2], ARGV[3], ARGV[4])
if type(added) == 'string' then
  if string.sub(ARGV[2], -2) == '-0' then redis.call('PERSIST', KEYS[2]) end
  return 'ok'
end
if not string.find(added.err, 'equal or smaller', 1, true) then return added end
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
if last and last[1] == ARGV[2] then return 'ok' end
return 'stale'
