#!lua flags=allow-oom
-- Seals KEYS[1] of owner ARGV[1] with the response ARGV[2] for ARGV[3] ms, and
-- tells who waits by ARGV[4], which is PUBLISH or SPUBLISH. The channel is named
-- as the key, so that a cluster keeps both in one slot. Returns 0 if the record
-- is not this owner's.
--
-- It may write beyond maxmemory: the handler has acted, so that its outcome must
-- not be lost; new claims are refused then.
local head = redis.call('GETRANGE', KEYS[1], 0, 20)
local owned = string.sub(head, 2, 17) == ARGV[1]
if owned and string.byte(head) == 80 then -- 'P'
  redis.call('SET', KEYS[1], 'D' .. string.sub(head, 2) .. ARGV[2], 'PX', ARGV[3])
  redis.call(ARGV[4], KEYS[1], '')
  return 1
end
return owned and 1 or 0 -- a repetition keeps the first response
