-- Claims KEYS[1] with the pending record ARGV[1] for ARGV[2] ms, of which the
-- last ARGV[3] are the grace in which an abandoned claim is kept for its
-- attempt. The common cases do not come here: see Store.claim.
--
-- Returns what stands, its life left in ms, and 1 if the claim won.
local stands = redis.call('GET', KEYS[1])
local owner = string.sub(ARGV[1], 2, 17)
local attempt = 1
if stands then
  local left = redis.call('PTTL', KEYS[1])
  local pending = string.byte(stands) == 80 -- 'P'
  local mine = string.sub(stands, 2, 17) == owner
  if not pending or (left > tonumber(ARGV[3]) and not mine) then
    return {stands, left, 0}
  end
  attempt = struct.unpack('>I4', stands, 18)
  if not mine then
    attempt = attempt + 1
  end
end
local record = string.sub(ARGV[1], 1, 17) .. struct.pack('>I4', attempt)
redis.call('SET', KEYS[1], record, 'PX', ARGV[2])
return {record, tonumber(ARGV[2]), 1}
