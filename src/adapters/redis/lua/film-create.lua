-- Makes a film of templates that were stored before, and its first shot, in one step. Needs films.lua.
--
-- KEYS   1 pool
-- ARGV   1 JSON {pool, queue, film, owner, total, shot, key?, request?, and enqueue.lua's refusal}; 2 sealed head; 3 body
--        owner: the member; key: name of the Idempotency-Key, request: hash of what is asked for
-- Returns 'ok', 'known', 'mismatch', 'full', 'member_full', or 'lost': the templates are not there any more.
-- Idempotent: a resent command finds the film.

local LISTED = 10000
local own = cjson.decode(ARGV[1])
local pool, queue, film = own.pool, own.queue, own.film
local key, now = film_key(pool, film), redis_now()
if rcall('EXISTS', key) == 1 then return 'ok' end
local named = own.key and film_key_of(pool, own.key)
local first = named and rcall('HMGET', named, 'film', 'request')
if first and first[1] and rcall('EXISTS', film_key(pool, first[1])) == 1 then
  return first[2] == own.request and 'known' or 'mismatch'
end
if rcall('HLEN', key .. ':shots') ~= own.total then return 'lost' end
local refused = refusal(pool, queue, own)
if refused then return refused end
rcall('PERSIST', key .. ':shots')
rcall('HSET', key, 'total', own.total, 'done', 0, 'last', '', 'member', own.owner, 'created', string.format('%.0f', now))
if named then
  rcall('DEL', named)
  rcall('HSET', named, 'film', film, 'request', own.request)
  rcall('HSET', key, 'key', own.key)
end
film_state(pool, film, 'running')
-- Films that are gone stay in these lists until somebody reads them; they must not grow for ever.
for _, list in ipairs({ pool .. ':films', pool .. ':films:of:' .. own.owner }) do
  rcall('ZADD', list, now, film)
  rcall('ZREMRANGEBYRANK', list, 0, -LISTED - 1)
end
add_shot(pool, queue, film, own.shot, ARGV[2], ARGV[3], now, true)
return 'ok'
