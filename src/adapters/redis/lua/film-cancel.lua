-- Ends a film: a waiting shot is taken away, one that runs is aborted by the worker. Needs films.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, film, keepMs}
-- Returns 'ok' (also when it is over already) or 'gone'.

local own = cjson.decode(ARGV[1])
local pool, queue, film = own.pool, own.queue, own.film
local key, now = film_key(pool, film), redis_now()
local f = rcall('HMGET', key, 'state', 'job', 'done')
if not f[1] then return 'gone' end
if f[1] == 'completed' or f[1] == 'cancelled' then return 'ok' end
local id = f[2] or ''
film_state(pool, film, 'cancelled')
film_set(pool, film, 'job', '')
if id ~= '' then
  rcall('HSET', key .. ':jobs', tonumber(f[3]) + 1 .. ':o', 'cancelled')
  if is_active(queue, id) then
    rcall('HSET', pool .. ':payload:' .. id, 'cancel', 'cancelled')
  elseif rcall('HEXISTS', queue .. id, 'outcome') == 0 then
    drop_shot(pool, queue, id, 'the film was cancelled', now)
  end
end
keep_film(pool, film, now, own.keepMs)
return 'ok'
