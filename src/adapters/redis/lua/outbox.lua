-- Fragment: telling whoever asked with X-Berth-Webhook that a job has ended. Needs place.lua.
--
-- The address waits, sealed, as `hook` of the job's payload. The script that ends the job calls this before the payload
-- goes, so that no end is ever stored without its event, nor an event without the end. The entry holds all that is told:
-- by the time it is read the job may be gone.

-- message: what there is to say beside the code; gpu_ms: of the run that just ended, if there was one.
local function tell_webhook(pool, queue, id, outcome, code, message, gpu_ms)
  local hook = rcall('HGET', pool .. ':payload:' .. id, 'hook')
  if not hook then return end
  local job = rcall('HMGET', queue .. id, 'data', 'timestamp', 'processedOn', 'atm')
  rcall('RPUSH', pool .. ':outbox', cjson.encode({
    -- An operator may run a failed job again: its second end is an event of its own.
    event = string.format('%s-%d', id, rcall('INCR', pool .. ':outbox:told')),
    id = id, hook = hook, outcome = outcome, code = code or '', message = message or '',
    data = job[1] or '{}', createdMs = job[2] or '', startedMs = job[3] or '', attempts = job[4] or '0',
    endedMs = tostring(redis_now()), gpuMs = gpu_ms or 0,
  }))
end
