/* The scripts of a group. */
#include "queue/group/group_script.h"

#include "base/memory.h"
#include "sched/limits/bank_script.h"

#include <stdio.h>
#include <string.h>

/* The score of a host is the time at which it was seen; of one that has left, for a
 * minute, that time below zero. Only the last 256 are listed: GROUP_HOSTS_MAX. */
const char group_script_member[] =
    "local verb, host, info, run = ARGV[1], ARGV[2], ARGV[3], ARGV[4]\n"
    "local t = redis.call('TIME')\n"
    "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
    "if verb == 'bye' then\n"
    "  redis.call('ZADD', KEYS[1], -now, host)\n"
    "  redis.call('HDEL', KEYS[2], host)\n"
    "  return '0'\n"
    "end\n"
    "local old = redis.call('HGETALL', KEYS[2])\n"
    "local out = '0'\n"
    "for i = 1, #old, 2 do\n"
    "  if old[i] == host and not string.find(old[i + 1], run, 1, true) then out = '1' "
    "end\n"
    "end\n"
    "redis.call('ZADD', KEYS[1], now, host)\n"
    "redis.call('HSET', KEYS[2], host, info)\n"
    "if verb == 'beat' then\n"
    "  return out .. ' ' .. #redis.call('ZRANGE', KEYS[1], now - tonumber(ARGV[5]) + "
    "1,\n"
    "    now - tonumber(ARGV[6]), 'BYSCORE')\n"
    "end\n"
    "redis.call('ZREMRANGEBYSCORE', KEYS[1], 60000 - now, now - tonumber(ARGV[5]))\n"
    "local seen, list = {}, redis.call('ZRANGE', KEYS[1], -256, -1, 'WITHSCORES')\n"
    "for i = 1, #list, 2 do\n"
    "  seen[list[i]] = true\n"
    "  local at = tonumber(list[i + 1])\n"
    "  out = out .. ' ' .. list[i] .. ' ' ..\n"
    "    (at < 0 and 'gone' or string.format('%.0f', math.max(0, now - at)))\n"
    "end\n"
    "for i = 1, #old, 2 do\n"
    "  if not seen[old[i]] then redis.call('HDEL', KEYS[2], old[i])\n"
    "  elseif #out + #old[i + 1] < 80000 then\n"
    "    out = out .. '\\n' .. old[i] .. ' ' .. old[i + 1]\n"
    "  end\n"
    "end\n"
    "return out\n";

/* A list is no reply that this host accepts: redis.h. */
char *
group_script_grant(void)
{
    static const char begin[] = "local function grant()\n",
                      end[] = "end\nreturn table.concat(grant(), ' ')\n";
    size_t size = sizeof(begin) + strlen(bank_script) + sizeof(end);
    char *script = memory_new(size);
    snprintf(script, size, "%s%s%s", begin, bank_script, end);
    return script;
}
