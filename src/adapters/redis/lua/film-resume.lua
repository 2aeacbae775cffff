-- A paused film goes on, a failed one tries its shot again. Needs films.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, film, from ('paused' or 'failed'), shot?, done?, reason?}; 2 sealed head; 3 body
--        shot: the current one made anew, for a film that has `done` behind it; reason: why it cannot be made
-- Returns 'ok' (also when it runs already), 'gone', the state that is not `from`, or 'make': its shot must be made anew.
--
-- 1 a shot that still runs or waits goes on; 2 one that is parked, or failed with its request kept, waits again;
-- 3 one that is gone is made anew by the caller.

local own = cjson.decode(ARGV[1])
local pool, queue, film = own.pool, own.queue, own.film
local key, now = film_key(pool, film), redis_now()
local f = rcall('HMGET', key, 'state', 'job', 'done')
if not f[1] then return 'gone' end
if f[1] == 'running' then return 'ok' end
if f[1] ~= own.from then return f[1] end
local id, done = f[2] or '', tonumber(f[3])
-- 1
local here = id ~= '' and (is_active(queue, id) or is_waiting(queue, id))
-- 2
if not here and id ~= '' and rcall('EXISTS', queue .. id) == 1 and rcall('EXISTS', pool .. ':payload:' .. id) == 1 then
  if own.from == 'failed' then rcall('HINCRBY', key .. ':jobs', done + 1 .. ':t', 1) end
  unpark_shot(pool, queue, id, now)
  here = true
end
-- 3
if not here then
  if own.reason and own.done == done then
    film_state(pool, film, 'paused', own.reason)
    film_set(pool, film, 'job', '')
    keep_film(pool, film, now, nil)
    return 'ok'
  end
  if not own.shot or own.done ~= done then return 'make' end
  add_shot(pool, queue, film, own.shot, ARGV[2], ARGV[3], now, true)
end
rcall('HDEL', key .. ':jobs', done + 1 .. ':o')
film_state(pool, film, 'running')
keep_film(pool, film, now, nil)
return 'ok'
