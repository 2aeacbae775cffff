-- Fragment: what every submission does around BullMQ's own add. Needs place.lua, journal.lua.

-- Why no further job of this member may wait: 'full', 'member_full', or nothing. `own`: waitingCap, member, bytes,
-- memberWaiting?, memberBytes?.
local function refusal(pool, queue, own)
  if rcall('ZCARD', queue .. 'prioritized') + rcall('ZCARD', queue .. 'delayed') >= own.waitingCap then return 'full' end
  local counted = pool .. ':member:' .. own.member
  local function member_is_full()
    if own.memberWaiting and rcall('HLEN', counted) >= own.memberWaiting then return true end
    if not own.memberBytes then return false end
    local bytes = own.bytes
    for _, each in ipairs(rcall('HVALS', counted)) do bytes = bytes + (tonumber(each) or 0) end
    return bytes > own.memberBytes
  end
  if not member_is_full() then return nil end
  -- Jobs that other hands removed were not counted out: nothing told whose they were.
  for _, other in ipairs(rcall('HKEYS', counted)) do
    if not rcall('ZSCORE', queue .. 'prioritized', other) and not rcall('ZSCORE', queue .. 'delayed', other) then
      rcall('HDEL', counted, other)
    end
  end
  return member_is_full() and 'member_full' or nil
end

-- Gives a job that BullMQ has just added its facts, its request, its place and its entries in the lists of jobs; returns
-- its arrival number. `own`: id, cls, band, member, facts (the job's facts for policy, JSON without its end and its
-- arrival), keepMs? (how long its record is kept if it ends before it ran).
local function enqueue(pool, queue, own, head, body, at)
  local id = own.id
  local arrival = rcall('INCR', pool .. ':arrivals')
  rcall('HSET', queue .. id, 'cls', own.cls, 'arr', arrival, 'band', own.band, 'timestamp', string.format('%.0f', at),
    'led', string.format('%s,"a":%.0f,"s":%d}', own.facts, at, arrival))
  rcall('ZADD', queue .. 'prioritized', 'XX', string.format('%.0f', score_of(pool, queue, id)), id)
  rcall('HSET', pool .. ':payload:' .. id, 'head', head, 'body', body)
  rcall('ZADD', pool .. ':jobs', arrival, id)
  rcall('ZADD', pool .. ':jobs:' .. own.member, arrival, id)
  if own.keepMs then rcall('HSET', queue .. id, 'keepMs', own.keepMs) end
  return arrival
end
