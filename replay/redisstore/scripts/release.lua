-- Removes KEYS[1] if it is still the pending record ARGV[1], and tells who waits
-- by ARGV[2], which is PUBLISH or SPUBLISH. Returns 2 if they could not be told.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  if type(redis.pcall(ARGV[2], KEYS[1], '')) == 'table' then
    return 2
  end
end
return 1
