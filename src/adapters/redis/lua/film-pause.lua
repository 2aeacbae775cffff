-- Pauses a running film: a waiting shot is parked, one that runs ends, and none follows. Needs films.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, film}
-- Returns 'ok' (also when it is paused already), 'gone', or the state that cannot be paused.

local own = cjson.decode(ARGV[1])
local pool, queue, film = own.pool, own.queue, own.film
local f = rcall('HMGET', film_key(pool, film), 'state', 'job')
if not f[1] then return 'gone' end
if f[1] == 'paused' then return 'ok' end
if f[1] ~= 'running' then return f[1] end
film_state(pool, film, 'paused', 'it was asked to')
if f[2] and f[2] ~= '' then park_shot(pool, queue, f[2], redis_now()) end
return 'ok'
