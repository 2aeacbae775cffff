-- A film goes on without its current shot, unless that one runs. Needs films.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, film, done, mark, shot?, reason?, keepMs, filmKeepMs}; 2 sealed head; 3 body
--        shot: the one after the skipped one; reason: why it cannot be made
-- Returns 'ok', 'gone', 'changed' (it does not have `done` behind it), 'runs', or the state it is over in.
-- Idempotent under resent commands, which carry the same mark.

local own = cjson.decode(ARGV[1])
local pool, queue, film = own.pool, own.queue, own.film
local key, now = film_key(pool, film), redis_now()
local f = rcall('HMGET', key, 'state', 'job', 'done', 'total')
if not f[1] then return 'gone' end
if rcall('HGET', key, 'mark') == own.mark then return 'ok' end
if f[1] == 'completed' or f[1] == 'cancelled' then return f[1] end
local id, done, total = f[2] or '', tonumber(f[3]), tonumber(f[4])
if done ~= own.done then return 'changed' end
if id ~= '' then
  if is_active(queue, id) then return 'runs' end
  if rcall('HEXISTS', queue .. id, 'outcome') == 1 then
    keep_job(pool, id, now, own.keepMs)
  else
    drop_shot(pool, queue, id, 'the film goes on without this shot', now)
  end
end
rcall('HSET', key, 'mark', own.mark)
keep_film(pool, film, now, nil)
film_goes_on(pool, queue, film, f[1], done, total, 'skipped', own, ARGV[2], ARGV[3], now, now)
return 'ok'
