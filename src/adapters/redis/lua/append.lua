-- Adds entries to a response log, if we still own the GPU. The entry id is `run-endOffset`, so Redis itself
-- refuses a second copy, an older run, and anything after the end.
--
-- KEYS   1 pool, 2 log
-- ARGV   1 fence; 2.. entry id, field, value, ...
-- Returns 'ok', 'fenced', or 'stale' when a newer run (or an end) is in the log.

if redis.call('HGET', KEYS[1] .. ':owner', 'fence') ~= ARGV[1] then return 'fenced' end
for i = 2, #ARGV - 2, 3 do
  local added = redis.pcall('XADD', KEYS[2], ARGV[i], ARGV[i + 1], ARGV[i + 2])
  if type(added) == 'string' then
    if string.sub(ARGV[i], -2) == '-0' then redis.call('PERSIST', KEYS[2]) end
  elseif not string.find(added.err, 'equal or smaller', 1, true) then
    return added
  elseif i + 3 > #ARGV then
    local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
    if not last or last[1] ~= ARGV[i] then return 'stale' end
  end
end
return 'ok'
