-- Fragment: whether the caller's fencing number is the one in force.
local function owns_gpu(pool, fence)
  return redis.call('HGET', pool .. ':owner', 'fence') == fence
end
