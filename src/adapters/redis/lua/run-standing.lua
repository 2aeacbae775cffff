-- Fragment: what a command that ends a run finds. Needs place.lua.
--
-- 'ours': the run is still active and locked for us (a lock that ran out during an outage is taken again, as we
-- still own the GPU); 'over': it left `active`, by an earlier copy of this command or by a reclaim; 'lost': another
-- token holds it.
local function standing_of_run(active_key, queue, id, token)
  local lock_key = queue .. id .. ':lock'
  local lock = rcall('GET', lock_key)
  if lock == token then return 'ours' end
  local is_active = false
  for _, other in ipairs(rcall('LRANGE', active_key, 0, -1)) do is_active = is_active or other == id end
  if not is_active then return 'over' end
  if lock then return 'lost' end
  rcall('SET', lock_key, token, 'PX', 60000)
  return 'ours'
end
