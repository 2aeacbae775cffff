-- The idle worker's fetch. Needs fetch.lua.
--
-- KEYS   moveToActive's eleven
-- ARGV   1 prefix, 2 msgpack options, 3 JSON {pool, queue, fence, expectedNow, and fetch.lua's}
-- Returns as fetch.lua, or 'fenced'.

local own = cjson.decode(ARGV[3])
if not owns_gpu(own.pool, own.fence) then return 'fenced' end
own.expect = own.journal
return fetch(KEYS, ARGV[1], ARGV[2], own)
