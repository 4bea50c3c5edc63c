/* Strings that expire, the hosts of a group, its bank, and its stream of suppressed addresses. */
#include "t/roof/redis_keys.h"

#include "base/crypto/digest.h"
#include "base/memory.h"
#include "queue/group/group.h"
#include "queue/group/group_redis.h"
#include "queue/group/group_suppression.h"
#include "t/roof/roof.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { SHOWN_MAX = 256, INFOS_MAX = 80000, GONE_MS = 60000, ANSWER_MAX = 96 * 1024 };
enum { GRANT_FRAME = 4, GRANT_NUMBERS = 12 /* of a question */ };

enum script {
    SCRIPT_GRANT,
    SCRIPT_MEMBER,
    SCRIPT_SET,
    SCRIPT_CLOSE,
    SCRIPT_SUPPRESSION,
    SCRIPTS
};

/* As base/redis/redis.c and defrag/registry/registry_redis.c have them. */
static const char set_text[] =
    "local o=redis.call('GET',KEYS[1]) if o then return o end "
    "redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2]) return false";
static const char close_text[] =
    "if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
    "if ARGV[2]=='0' then return redis.call('DEL',KEYS[1]) end "
    "return redis.call('PEXPIRE',KEYS[1],ARGV[2])";

struct redis_string {
    char *key, *value;
    int64_t until_ms;
    struct redis_string *prev, *next;
};

struct redis_member {
    char *name, *info; /* info NULL: it is not in the hash */
    bool is_scored;    /* it is in the sorted set */
    int64_t score;
    struct redis_member *prev, *next;
};

/* An entry of the stream. */
struct redis_change {
    int64_t ms;
    unsigned number; /* in that millisecond */
    char *text;
    struct redis_change *prev, *next;
};

struct redis_keys {
    struct redis_change *changes;
    struct redis_string *strings;
    struct redis_member *members; /* of one group */
    struct bank *bank;
    bool knows[SCRIPTS];
};

/* --- Data ------------------------------------------------------------------------- */

struct redis_keys *
redis_keys_new(void)
{
    struct redis_keys *k = memory_new(sizeof(*k));
    k->bank = bank_new();
    return k;
}

static void
drop_string(struct redis_keys *k, struct redis_string *s)
{
    DL_DELETE(k->strings, s);
    free(s->key);
    free(s->value);
    free(s);
}

/* It is in neither of both any more. */
static void
drop_member(struct redis_keys *k, struct redis_member *m)
{
    DL_DELETE(k->members, m);
    free(m->name);
    free(m->info);
    free(m);
}

static void
drop_change(struct redis_keys *k, struct redis_change *c)
{
    DL_DELETE(k->changes, c);
    free(c->text);
    free(c);
}

void
redis_keys_flush(struct redis_keys *k)
{
    while (k->strings != NULL)
        drop_string(k, k->strings);
    while (k->members != NULL)
        drop_member(k, k->members);
    while (k->changes != NULL)
        drop_change(k, k->changes);
    bank_free(&k->bank);
    k->bank = bank_new();
}

void
redis_keys_flush_scripts(struct redis_keys *k)
{
    memset(k->knows, 0, sizeof(k->knows));
}

void
redis_keys_free(struct redis_keys **keys)
{
    if (*keys == NULL)
        return;
    redis_keys_flush(*keys);
    bank_free(&(*keys)->bank);
    free(*keys);
    *keys = NULL;
}

struct redis_keys *
redis_keys_copy(const struct redis_keys *keys)
{
    struct redis_keys *copy = memory_new(sizeof(*copy));
    const struct redis_string *s;
    const struct redis_member *m;
    const struct redis_change *c;
    copy->bank = bank_copy(keys->bank);
    DL_FOREACH (keys->strings, s) {
        struct redis_string *same = memory_new(sizeof(*same));
        *same = *s;
        same->key = memory_string(s->key);
        same->value = memory_string(s->value);
        DL_APPEND(copy->strings, same);
    }
    DL_FOREACH (keys->members, m) {
        struct redis_member *same = memory_new(sizeof(*same));
        *same = *m;
        same->name = memory_string(m->name);
        same->info = m->info != NULL ? memory_string(m->info) : NULL;
        DL_APPEND(copy->members, same);
    }
    DL_FOREACH (keys->changes, c) {
        struct redis_change *same = memory_new(sizeof(*same));
        *same = *c;
        same->text = memory_string(c->text);
        DL_APPEND(copy->changes, same);
    }
    return copy;
}

size_t
redis_keys_members(const struct redis_keys *keys)
{
    const struct redis_member *m;
    size_t count = 0;
    DL_FOREACH (keys->members, m)
        count += m->is_scored && m->score >= 0;
    return count;
}

/* --- Strings ---------------------------------------------------------------------- */

static void
say_text(struct buffer *out, const char *text)
{
    if (!buffer_format(out, "$%zu\r\n%s\r\n", strlen(text), text))
        abort();
}

static void
say(struct buffer *out, const char *line)
{
    if (!buffer_format(out, "%s\r\n", line))
        abort();
}

static void
say_number(struct buffer *out, int number)
{
    if (!buffer_format(out, ":%d\r\n", number))
        abort();
}

static struct redis_string *
find_string(struct redis_keys *k, int64_t now_ms, const char *key)
{
    struct redis_string *s, *next, *found = NULL;
    DL_FOREACH_SAFE (k->strings, s, next) {
        if (s->until_ms <= now_ms)
            drop_string(k, s);
        else if (strcmp(s->key, key) == 0)
            found = s;
    }
    return found;
}

/* NX GET PX. */
static void
set_new(struct redis_keys *k, int64_t now_ms, const char *key, const char *value,
        const char *ttl, struct buffer *out)
{
    struct redis_string *s = find_string(k, now_ms, key);
    if (s != NULL) {
        say_text(out, s->value);
        return;
    }
    s = memory_new(sizeof(*s));
    s->key = memory_string(key);
    s->value = memory_string(value);
    s->until_ms = now_ms + strtoll(ttl, NULL, 10);
    DL_APPEND(k->strings, s);
    say(out, "$-1");
}

static void
close_string(struct redis_keys *k, int64_t now_ms, const char *const *words,
             struct buffer *out)
{
    struct redis_string *s = find_string(k, now_ms, words[0]);
    if (s == NULL || strcmp(s->value, words[1]) != 0) {
        say_number(out, 0);
        return;
    }
    if (strcmp(words[2], "0") == 0)
        drop_string(k, s);
    else
        s->until_ms = now_ms + strtoll(words[2], NULL, 10);
    say_number(out, 1);
}

/* --- Members ---------------------------------------------------------------------- */

static struct redis_member *
find_member(struct redis_keys *k, const char *name)
{
    struct redis_member *m;
    DL_FOREACH (k->members, m)
        if (strcmp(m->name, name) == 0)
            return m;
    m = memory_new(sizeof(*m));
    m->name = memory_string(name);
    DL_APPEND(k->members, m);
    return m;
}

static void
set_info(struct redis_member *m, const char *info)
{
    free(m->info);
    m->info = info != NULL ? memory_string(info) : NULL;
}

static void
set_score(struct redis_member *m, int64_t score)
{
    m->is_scored = true;
    m->score = score;
}

static int
compare_scores(const struct redis_member *a, const struct redis_member *b)
{
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return strcmp(a->name, b->name);
}

static size_t
count_old(const struct redis_keys *k, int64_t from, int64_t to)
{
    const struct redis_member *m;
    size_t count = 0;
    DL_FOREACH (k->members, m)
        count += m->is_scored && m->score >= from && m->score <= to;
    return count;
}

/* Those that have left long ago, or were not seen for long. */
static void
forget_members(struct redis_keys *k, int64_t now_ms, int64_t forget_ms)
{
    struct redis_member *m;
    DL_FOREACH (k->members, m)
        if (m->is_scored && m->score >= GONE_MS - now_ms &&
            m->score <= now_ms - forget_ms)
            m->is_scored = false;
}

/* The list, and what they said before this one did. */
static void
list_members(struct redis_keys *k, int64_t now_ms, const char *own, const char *before,
             struct buffer *out)
{
    struct redis_member *m, *next;
    size_t skipped = 0, count = 0;
    DL_SORT(k->members, compare_scores);
    DL_FOREACH (k->members, m)
        count += m->is_scored;
    DL_FOREACH (k->members, m) {
        if (!m->is_scored || skipped++ + SHOWN_MAX < count)
            continue;
        int64_t age_ms = now_ms > m->score ? now_ms - m->score : 0;
        bool fits = m->score < 0 ? buffer_format(out, " %s gone", m->name)
                                 : buffer_format(out, " %s %" PRId64, m->name, age_ms);
        if (!fits)
            abort();
    }
    DL_FOREACH_SAFE (k->members, m, next) {
        const char *info = strcmp(m->name, own) == 0 ? before : m->info;
        if (!m->is_scored)
            drop_member(k, m);
        else if (info != NULL && out->length + strlen(info) < INFOS_MAX &&
                 !buffer_format(out, "\n%s %s", m->name, info))
            abort();
    }
}

/* words: both keys, then the arguments of group_redis.h. */
static void
run_member(struct redis_keys *k, int64_t now_ms, const char *const *words,
           struct buffer *reply)
{
    const char *verb = words[2], *info = words[4];
    struct redis_member *own = find_member(k, words[3]);
    int64_t forget_ms = strtoll(words[6], NULL, 10),
            old_ms = strtoll(words[7], NULL, 10);
    struct buffer out;
    if (strcmp(verb, "bye") == 0) {
        set_score(own, -now_ms);
        set_info(own, NULL);
        say_text(reply, "0");
        return;
    }
    buffer_init(&out, ANSWER_MAX);
    char *before = own->info != NULL ? memory_string(own->info) : NULL;
    bool is_other = before != NULL && strstr(before, words[5]) == NULL;
    set_score(own, now_ms);
    set_info(own, info);
    if (!buffer_add_byte(&out, is_other ? '1' : '0'))
        abort();
    if (strcmp(verb, "beat") == 0) {
        if (!buffer_format(&out, " %zu",
                           count_old(k, now_ms - forget_ms + 1, now_ms - old_ms)))
            abort();
    } else {
        forget_members(k, now_ms, forget_ms);
        list_members(k, now_ms, words[3], before, &out);
    }
    if (!buffer_add_byte(&out, '\0'))
        abort();
    say_text(reply, out.at);
    free(before);
    buffer_free(&out);
}

/* --- Suppressed addresses --------------------------------------------------------- */

static void
add_change(struct redis_keys *k, int64_t now_ms, const char *age, const char *line)
{
    struct redis_change *c = memory_new(sizeof(*c));
    const struct redis_change *last = k->changes != NULL ? k->changes->prev : NULL;
    c->ms = last != NULL && last->ms > now_ms ? last->ms : now_ms;
    c->number = last != NULL && last->ms == c->ms ? last->number + 1 : 0;
    size_t size = strlen(line) + 32;
    int64_t age_ms = (int64_t)strtoll(age, NULL, 10),
            at_ms = now_ms - (age_ms > 0 ? age_ms : 0);
    c->text = memory_new(size);
    snprintf(c->text, size, "%" PRId64 " %s", at_ms > 0 ? at_ms : 0, line);
    DL_APPEND(k->changes, c);
}

static void
name_change(const struct redis_change *c, char out[48])
{
    snprintf(out, 48, "%" PRId64 "-%u", c->ms, c->number);
}

/* words: the key, then the arguments of group_suppression.h. */
static void
run_suppression(struct redis_keys *k, int64_t now_ms, const char *const *words,
                size_t count, struct buffer *reply)
{
    char name[48] = "0";
    const struct redis_change *c = k->changes;
    size_t read = 0;
    struct buffer out, text;
    bool from_begin = strcmp(words[1], "0") == 0;
    while (!from_begin && c != NULL &&
           (name_change(c, name), strcmp(name, words[1]) != 0))
        c = c->next;
    if (!from_begin && c == NULL) {
        say_text(reply, "lost");
        return;
    }
    for (size_t i = 4; i + 1 < count; i += 2)
        add_change(k, now_ms, words[i], words[i + 1]);
    buffer_init(&out, ANSWER_MAX);
    buffer_init(&text, ANSWER_MAX);
    for (c = from_begin ? k->changes : c->next;
         c != NULL && read++ < strtoul(words[3], NULL, 10); c = c->next) {
        name_change(c, name);
        if (!buffer_format(&text, "\n%s", c->text))
            abort();
    }
    if (!buffer_format(&out, "%s %" PRId64, name, now_ms) ||
        !buffer_add(&out, buffer_text(&text)) || !buffer_add_byte(&out, '\0'))
        abort();
    say_text(reply, out.at);
    buffer_free(&out);
    buffer_free(&text);
}

/* --- Scripts ---------------------------------------------------------------------- */

static double
read_real(const char *word)
{
    char *end;
    double value = strtod(word, &end);
    if (end == word || *end != '\0')
        roof_break("bounds", NULL, "a question of the bank has the odd number %s",
                   word);
    return value;
}

/* words: as bank_script.h has the members. */
static struct bank_question
read_question(const char *const *words, int hosts)
{
    double n[GRANT_NUMBERS];
    for (size_t i = 0; i < GRANT_NUMBERS; i++)
        n[i] = read_real(words[i]);
    struct bank_question q = {n[0],       (int)n[1], (int)n[2], (int)n[3], (int)n[4],
                              (int)n[5],  (int)n[6], (int)n[7], (int)n[8], (int)n[9],
                              (int)n[10], n[11],     hosts};
    if (!bank_question_is_sound(&q))
        roof_break("bounds", NULL, "a question of the bank is not sound");
    return q;
}

/* words: as bank_script.h has them, behind the number of keys. */
static void
run_grant(struct redis_keys *k, int64_t now_us, const char *const *words, size_t count,
          struct buffer *reply)
{
    size_t sites = strtoul(words[0], NULL, 10);
    struct buffer out;
    if (sites == 0 || count != 1 + GRANT_FRAME + sites * (1 + GRANT_NUMBERS))
        roof_break("bounds", NULL, "a question of the bank has %zu words", count);
    const char *const *frame = words + 1 + sites, *const *numbers = frame + GRANT_FRAME;
    if (read_real(frame[0]) != BANK_PERIOD_US || read_real(frame[3]) != 0)
        roof_break("bounds", NULL, "a question of the bank has other periods");
    buffer_init(&out, ANSWER_MAX);
    for (size_t i = 0; i < sites; i++) {
        struct text key = text_from(words[1 + i]), prefix = TEXT(GROUP_PROBE);
        struct bank_question q =
            read_question(numbers + i * GRANT_NUMBERS, (int)read_real(frame[2]));
        if (!text_starts(key, prefix) || key.length != prefix.length + BANK_KEY_MAX)
            roof_break("bounds", NULL, "a question of the bank has the key %s", key.at);
        struct bank_grant g =
            bank_ask(k->bank, text_after(key, prefix.length), now_us, &q);
        if (!buffer_format(&out, "%s%d %d %d %d %" PRId64, i > 0 ? " " : "", g.tokens,
                           g.sessions, g.counted, g.unmet, g.left_us))
            abort();
    }
    if (!buffer_add_byte(&out, '\0'))
        abort();
    say_text(reply, out.at);
    buffer_free(&out);
}

/* With the sums that clients say in place of them. */
static const struct known_script {
    char *text;
    char sum[41];
    unsigned keys;
    size_t words; /* with the number of keys; 0: any */
} * known_scripts(void)
{
    static struct known_script all[SCRIPTS];
    if (all[0].text != NULL)
        return all;
    all[SCRIPT_GRANT] = (struct known_script){.text = group_redis_grant()};
    all[SCRIPT_MEMBER] = (struct known_script){
        .text = memory_string(group_redis_member), .keys = 2, .words = 9};
    all[SCRIPT_SET] =
        (struct known_script){.text = memory_string(set_text), .keys = 1, .words = 4};
    all[SCRIPT_CLOSE] =
        (struct known_script){.text = memory_string(close_text), .keys = 1, .words = 4};
    all[SCRIPT_SUPPRESSION] =
        (struct known_script){.text = memory_string(group_suppression_script)};
    for (size_t i = 0; i < SCRIPTS; i++)
        digest_sha1_hex(text_from(all[i].text), all[i].sum);
    return all;
}

static enum script
find_script(const char *word, bool by_sum)
{
    const struct known_script *all = known_scripts();
    for (enum script i = 0; i < SCRIPTS; i++)
        if (strcmp(by_sum ? all[i].sum : all[i].text, word) == 0)
            return i;
    roof_break("bounds", NULL, "a script that t/roof/redis_keys.c does not know: %.60s",
               word);
}

/* words: the script, the number of keys, keys, arguments. */
static void
run_script(struct redis_keys *k, int64_t now_us, bool by_sum, const char *const *words,
           size_t count, struct buffer *out)
{
    int64_t now_ms = now_us / 1000;
    enum script script = find_script(words[0], by_sum);
    const struct known_script *known = &known_scripts()[script];
    if (by_sum && !k->knows[script]) {
        say(out, "-NOSCRIPT No matching script. Please use EVAL.");
        return;
    }
    k->knows[script] = true;
    words++;
    count--;
    if (known->words > 0 &&
        (count != known->words || strtoul(words[0], NULL, 10) != known->keys))
        roof_break("bounds", NULL, "odd arguments of a script");
    switch (script) {
    case SCRIPT_GRANT:
        run_grant(k, now_us, words, count, out);
        break;
    case SCRIPT_MEMBER:
        run_member(k, now_ms, words + 1, out);
        break;
    case SCRIPT_SET:
        set_new(k, now_ms, words[1], words[2], words[3], out);
        break;
    case SCRIPT_CLOSE:
        close_string(k, now_ms, words + 1, out);
        break;
    case SCRIPT_SUPPRESSION:
        run_suppression(k, now_ms, words + 1, count - 1, out);
        break;
    case SCRIPTS:
        break;
    }
}

bool
redis_keys_writes(const char *command)
{
    return strcmp(command, "SET") == 0 || strcmp(command, "EVAL") == 0 ||
           strcmp(command, "EVALSHA") == 0;
}

void
redis_keys_run(struct redis_keys *k, int64_t now_us, bool is_old,
               const char *const *words, size_t count, struct buffer *out)
{
    bool by_sum = strcmp(words[0], "EVALSHA") == 0;
    if (by_sum || strcmp(words[0], "EVAL") == 0) {
        if (count < 3)
            roof_break("bounds", NULL, "a script without arguments");
        run_script(k, now_us, by_sum, words + 1, count - 1, out);
    } else if (strcmp(words[0], "SET") == 0 && count == 7) { /* NX GET PX */
        if (is_old)
            say(out, "-ERR syntax error");
        else
            set_new(k, now_us / 1000, words[1], words[2], words[6], out);
    } else {
        roof_break("bounds", NULL,
                   "a command that t/roof/redis_keys.c does not know: %s", words[0]);
    }
}
