-- What is known of jobs, all at one moment. Needs place.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue}; 2.. job ids
-- Returns for each id false, or {running 0/1, last id of the answer's log or '', retained until or '', HMGET of the
-- fields below, the log's end marker or ''}.

local own = cjson.decode(ARGV[1])
local pool, queue = own.pool, own.queue
local running = {}
for _, id in ipairs(rcall('LRANGE', queue .. 'active', 0, -1)) do running[id] = true end
local found = {}
for i = 2, #ARGV do
  local id = ARGV[i]
  if rcall('HEXISTS', queue .. id, 'data') == 1 then
    local log = redis.pcall('XINFO', 'STREAM', pool .. ':log:' .. id)
    local last = ''
    if not log.err then
      for at = 1, #log, 2 do if log[at] == 'last-generated-id' then last = log[at + 1] end end
    end
    local marker = ''
    if string.sub(last, -21) == '-18446744073709551615' then
      local entry = rcall('XREVRANGE', pool .. ':log:' .. id, '+', '-', 'COUNT', 1)[1]
      marker = entry and entry[2][2] or ''
    end
    found[#found + 1] = { running[id] and 1 or 0, last, rcall('ZSCORE', pool .. ':retain', id) or '',
      rcall('HMGET', queue .. id, 'data', 'timestamp', 'arr', 'processedOn', 'finishedOn', 'outcome', 'code', 'message',
        'failedReason', 'gpuMs', 'swapMs', 'atm', 'ats', 'lease', 'away', 'parked'), marker }
  else
    found[#found + 1] = false
  end
end
return found
