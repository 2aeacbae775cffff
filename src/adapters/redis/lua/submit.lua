-- Makes one job, its request and its place in the queue in one step, so that neither a job without a request
-- nor a request without a job can exist. Needs connections.lua, enqueue.lua and `bull_add` (BullMQ's addPrioritizedJob).
--
-- KEYS   addPrioritizedJob's nine
-- ARGV   1-3 addPrioritizedJob's; 4 JSON {pool, queue, id, ingress?, client?, key?, request?, keyMs?, and enqueue.lua's
--            and take_terms'}; 5 sealed head; 6 body
--        ingress: where a connection waits, client: which one; key: name of the Idempotency-Key, request: hash of what is
--        asked for, keyMs: how long the key outlives the job
-- Returns {id, arrival, now, 'new' | 'known'}, 'full', 'member_full' or 'mismatch'. Known is the first job with the key.
-- Idempotent: a resent command returns the first one's arrival.

local own = cjson.decode(ARGV[4])
local pool, queue, id = own.pool, own.queue, own.id
local now = redis_now()

local stored = rcall('HGET', queue .. id, 'arr')
if stored then return { id, tonumber(stored), tostring(now), 'new' } end
if own.key then
  local key = key_of(pool, own.key)
  local first = rcall('HMGET', key, 'job', 'request')
  local arrived = first[1] and rcall('HGET', queue .. first[1], 'arr')
  -- A key without an end whose job is gone: other hands removed it, and nothing stands for the key.
  if arrived or rcall('PTTL', key) > 0 then
    if first[2] ~= own.request then return 'mismatch' end
    if arrived then attach(pool, queue, first[1], own.client, own.ingress) end
    return { first[1], tonumber(arrived or 0), tostring(now), 'known' }
  end
end
local refused = refusal(pool, queue, own)
if refused then return refused end

bull_add(KEYS, { ARGV[1], ARGV[2], ARGV[3] })
local arrival = enqueue(pool, queue, own, ARGV[5], ARGV[6], now)
note(pool, queue, 'arrive', id, now)
if own.key then
  rcall('DEL', key_of(pool, own.key))
  rcall('HSET', key_of(pool, own.key), 'job', id, 'request', own.request)
  rcall('HSET', queue .. id, 'key', own.key, 'keyMs', own.keyMs)
  attach(pool, queue, id, own.client, own.ingress)
elseif own.ingress then
  rcall('HSET', pool .. ':payload:' .. id, 'ingress', own.ingress)
  rcall('SADD', pool .. ':waiters:' .. own.ingress, id)
end
take_terms(pool, id, own, now)
return { id, arrival, tostring(now), 'new' }
