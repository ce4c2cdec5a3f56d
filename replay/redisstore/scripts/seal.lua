#!lua flags=allow-oom
-- Makes KEYS[1] the done record ARGV[2] for ARGV[3] ms, if it is still the pending
-- record ARGV[1], and tells who waits by ARGV[4], which is PUBLISH or SPUBLISH.
-- The channel is named as the key, so that a cluster keeps both in one slot.
-- Returns 0 if the record is another's, and 2 if the waiters could not be told.
--
-- It may write beyond maxmemory: the handler has acted, so that its outcome must
-- not be lost; new claims are refused then. A server that does not know the flag
-- keeps the pending record for as long as the outcome would have stood, so that
-- at least nothing runs twice.
local stands = redis.call('GET', KEYS[1])
if stands == ARGV[1] then
  local set = redis.pcall('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  if set.err then
    redis.call('PEXPIRE', KEYS[1], ARGV[3] + 60000) -- a minute beyond the lease
    return set
  end
  if type(redis.pcall(ARGV[4], KEYS[1], '')) == 'table' then
    return 2
  end
  return 1
end
if not stands or string.sub(stands, 1, 21) ~= string.sub(ARGV[2], 1, 21) then
  return 0
end
-- A repetition keeps the first response. It writes, so that a WAIT after it has
-- something to wait for.
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
