-- Fragment: whether the caller's fencing number is the one in force, and whose a lock is.
local function owns_gpu(pool, fence)
  return redis.call('HGET', pool .. ':owner', 'fence') == fence
end

-- BullMQ's lock tokens are `worker id:number`; the worker is what counts.
local function holder(token)
  return string.match(token, '^(.*):[^:]*$') or token
end
