/* Lua. What is written comes behind a removal: then a server that is full takes it, too. */
#include "queue/copies/adoption_scripts.h"

#include "queue/copies/copies_scripts.h"

#define OWNER "local owner = redis.call('HGET', KEYS[1], ARGV[2])\n"
#define FENCE                                                                          \
    OWNER "if owner ~= ARGV[1] then\n"                                                 \
          "  return redis.error_reply('" COPIES_FENCED "' .. (owner or 'nobody'))\n"   \
          "end\n"

/* The answer is below REDIS_REPLY_MAX, however many hosts have died: those without a sign fill
 * half of it. */
static const char adoption_text_beat[] =
    "redis.call('HDEL', KEYS[2], ARGV[1])\n"
    "if ARGV[3] ~= '' then redis.call('HSET', KEYS[2], ARGV[1], ARGV[3]) end\n"
    "local out, size, all = {}, 0, redis.call('HGETALL', KEYS[1])\n"
    "for i = 1, #all, 2 do\n"
    "  local beat = redis.call('HGET', KEYS[2], all[i + 1])\n"
    "  local row = all[i] .. ' ' .. all[i + 1] .. ' ' .. (beat or '-')\n"
    "  if all[i] == ARGV[2] or size < (beat and 65536 or 32768) then\n"
    "    out[#out + 1] = row\n"
    "    size = size + #row\n"
    "  end\n"
    "end\n"
    "return table.concat(out, '\\n')\n";

/* The number of a run that owns nothing more is not needed. */
static const char adoption_text_claim[] =
    OWNER "local beat = owner and redis.call('HGET', KEYS[3], owner) or '-'\n"
          "if owner ~= ARGV[1] then\n"
          "  if (owner or '') ~= ARGV[3] or (owner and beat ~= ARGV[4]) then\n"
          "    return redis.error_reply('" COPIES_FENCED "' .. (owner or 'nobody'))\n"
          "  end\n"
          "  redis.call('HDEL', KEYS[3], owner or '')\n"
          "  redis.call('HSET', KEYS[1], ARGV[2], ARGV[1])\n"
          "end\n"
          "return (redis.call('HGET', KEYS[2], 'n') or '-') .. ' ' ..\n"
          "  redis.call('HLEN', KEYS[4])\n";

static const char adoption_text_page[] =
    FENCE "local page = redis.call('HSCAN', KEYS[2], ARGV[3], 'COUNT', ARGV[4])\n"
          "local out = {page[1]}\n"
          "for i = 1, #page[2], 2 do\n"
          "  local id = page[2][i]\n"
          "  if id ~= 'n' and not string.find(id, ':', 1, true) then\n"
          "    out[#out + 1] = id .. ' ' .. string.match(page[2][i + 1], '^[^\\n]*')\n"
          "  end\n"
          "end\n"
          "return table.concat(out, ' ')\n";

static const char adoption_text_piece[] =
    FENCE "local at, size = tonumber(ARGV[5]), tonumber(ARGV[6])\n"
          "if ARGV[4] == 'form' then\n"
          "  return string.sub(redis.call('HGET', KEYS[2], ARGV[3]) or '', at + 1, at "
          "+ size)\n"
          "end\n"
          "local all = redis.call('HGET', KEYS[2], ARGV[3] .. ':c')\n"
          "if all then return string.sub(all, at + 1, at + size) end\n"
          "local first = redis.call('LINDEX', KEYS[3], 0) or ''\n"
          "if #first == 0 then return '' end\n"
          "local chunk, out = math.floor(at / #first), {}\n"
          "local left = at - chunk * #first\n"
          "while size > 0 do\n"
          "  local bytes = redis.call('LINDEX', KEYS[3], chunk) or ''\n"
          "  local some = string.sub(bytes, left + 1, left + size)\n"
          "  if #some == 0 then break end\n"
          "  out[#out + 1] = some\n"
          "  size = size - #some\n"
          "  chunk, left = chunk + 1, 0\n"
          "end\n"
          "return table.concat(out)\n";

/* Asked again after an answer that was lost it is ours still, whoever owns the others now; also
 * when its host is back, has ended it, and has forgotten us. At the first time a copy that is
 * gone has ended by its owner, unless the server has lost it. */
static const char adoption_text_taken[] = OWNER
    "local there = redis.call('HGET', KEYS[3], ARGV[3])\n"
    "if owner ~= ARGV[1] and not there then\n"
    "  there = redis.call('HGET', KEYS[3] .. ':past', ARGV[3])\n"
    "end\n"
    "if there == ARGV[4] then return 'ours' end\n"
    "if owner ~= ARGV[1] or there then\n"
    "  local number = tonumber(redis.call('HGET', KEYS[2], 'n') or '0')\n"
    "  local is_theirs = there or redis.call('HEXISTS', KEYS[2], ARGV[3]) == 1 or\n"
    "    ARGV[5] ~= '' and number >= tonumber(ARGV[5])\n"
    "  return is_theirs and 'theirs' or 'nobody\\'s'\n"
    "end\n"
    "redis.call('HDEL', KEYS[2], ARGV[3], ARGV[3] .. ':c')\n"
    "redis.call('DEL', KEYS[4], KEYS[4] .. ':n', KEYS[4] .. ':e')\n"
    "redis.call('HSET', KEYS[3], ARGV[3], ARGV[4])\n"
    "return 'ours'\n";

static const char adoption_text_done[] =
    FENCE "if redis.call('HLEN', KEYS[2]) > redis.call('HEXISTS', KEYS[2], 'n') then\n"
          "  if ARGV[4] ~= '' then\n"
          "    redis.call('HDEL', KEYS[1], ARGV[2])\n"
          "    redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])\n"
          "  end\n"
          "  return 'more'\n"
          "end\n"
          "redis.call('DEL', KEYS[2])\n"
          "redis.call('HDEL', KEYS[1], ARGV[2])\n"
          "redis.call('HSET', KEYS[3], ':', '')\n"
          "redis.call('EXPIRE', KEYS[3], ARGV[3])\n"
          "return 'done'\n";

/* Adopters whose answers were lost ask for it still. */
static const char adoption_text_forget[] =
    FENCE "if redis.call('EXISTS', KEYS[2]) == 1 then\n"
          "  redis.call('RENAME', KEYS[2], KEYS[2] .. ':past')\n"
          "  redis.call('EXPIRE', KEYS[2] .. ':past', ARGV[3])\n"
          "end\n"
          "return 'done'\n";

/* clang-format off */
const struct adoption_script adoption_script_beat = {adoption_text_beat, "b", false};
const struct adoption_script adoption_script_claim = {adoption_text_claim, "cba", true};
const struct adoption_script adoption_script_page = {adoption_text_page, "c", false};
const struct adoption_script adoption_script_page_adopted = {adoption_text_page, "a", false};
const struct adoption_script adoption_script_piece = {adoption_text_piece, "cl", false};
const struct adoption_script adoption_script_taken = {adoption_text_taken, "cal", true};
const struct adoption_script adoption_script_done = {adoption_text_done, "cab", true};
const struct adoption_script adoption_script_forget = {adoption_text_forget, "a", true};
/* clang-format on */
