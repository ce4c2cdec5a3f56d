-- Lets KEYS[1] live for ARGV[2] ms from now, if it would end earlier and is still
-- the pending record ARGV[1]. Returns 0 if it is not.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
