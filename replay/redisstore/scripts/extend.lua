-- Lets the pending record KEYS[1] of owner ARGV[1] live for ARGV[2] ms from now,
-- if it would end earlier. Returns 0 if the record is not this owner's.
if redis.call('GETRANGE', KEYS[1], 0, 16) ~= 'P' .. ARGV[1] then
  return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
