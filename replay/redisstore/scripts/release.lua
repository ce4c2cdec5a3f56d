-- Removes the pending record KEYS[1] of owner ARGV[1], and tells who waits by
-- ARGV[2], which is PUBLISH or SPUBLISH.
if redis.call('GETRANGE', KEYS[1], 0, 16) == 'P' .. ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.call(ARGV[2], KEYS[1], '')
end
return 1
