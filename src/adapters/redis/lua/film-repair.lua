-- The scorer's look at one running film: its shot waits or runs. Needs films.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, film, shot?, done?, reason?, keepMs}; 2 sealed head; 3 body; as film-resume.lua's
-- Returns 'ok', 'repaired', or 'make': the shot is gone and must be made anew.

local own = cjson.decode(ARGV[1])
local pool, queue, film = own.pool, own.queue, own.film
local key, now = film_key(pool, film), redis_now()
local f = rcall('HMGET', key, 'state', 'job', 'done')
if f[1] ~= 'running' then
  rcall('SREM', pool .. ':films:running', film)
  return 'ok'
end
local id, done = f[2] or '', tonumber(f[3])
if id ~= '' and (is_active(queue, id) or is_waiting(queue, id)) then return 'ok' end
local outcome = id ~= '' and rcall('HGET', queue .. id, 'outcome')
if outcome and outcome ~= 'completed' then
  rcall('HSET', key .. ':jobs', done + 1 .. ':o', outcome)
  if outcome == 'failed' then
    film_state(pool, film, 'failed', 'shot ' .. done + 1 .. ' failed')
    keep_film(pool, film, now, own.keepMs)
  else
    film_state(pool, film, 'paused', 'shot ' .. done + 1 .. ' was ' .. outcome)
    film_set(pool, film, 'job', '')
  end
elseif id ~= '' and not outcome and rcall('EXISTS', queue .. id) == 1 and rcall('EXISTS', pool .. ':payload:' .. id) == 1 then
  unpark_shot(pool, queue, id, now)
elseif own.reason and own.done == done then
  film_set(pool, film, 'job', '')
  film_state(pool, film, 'paused', own.reason)
elseif own.shot and own.done == done then
  add_shot(pool, queue, film, own.shot, ARGV[2], ARGV[3], now, true)
else
  return 'make'
end
rcall('INCR', pool .. ':films:repaired')
return 'repaired'
