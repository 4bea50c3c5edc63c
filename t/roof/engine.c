/* The engine of copies. */
#include "t/roof/engine.h"

#include "base/crc.h"
#include "base/memory.h"
#include "queue/copies/adoption_scripts.h"
#include "queue/copies/copies_keys.h"
#include "queue/copies/copies_scripts.h"
#include "queue/envelope/envelope.h"
#include "t/roof/audit_internal.h"
#include "t/roof/editor.h"
#include "t/roof/group.h"
#include "t/roof/host.h"
#include "t/roof/law_adoption.h"
#include "t/roof/model.h"
#include "t/roof/peer.h"
#include "t/roof/redis_keys.h"
#include "t/roof/siblings.h"
#include "t/roof/world_internal.h"
#include "t/sim/copies_database.h"
#include "t/sim/sim_disk.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum {
    INPUT_MAX = 16 << 20,
    REPLY_MAX = 1 << 20,
    LATE_MAX_MS = 3000,
    LOOK_MS = 1000,
    LOOK_RARELY_MS = 10000,
    OLD_MS = 3000, /* of what a failover without replica brings */
    LOST_AFTER_MS = 10000,
    SETTLED_MS = 90000,          /* all is well: then the laws hold */
    AUDIT_REPLY_MS = 200 * 1000, /* within each limit of time of a step */
    AUDIT_SIZE = 200,
    REFILL_MS = 20 * 1000,
    WORDS_MAX = 9000,
    KEY_SIZE = 512
};

enum mood {
    ENGINE_UP,
    ENGINE_REFUSES,
    ENGINE_SILENT,
    ENGINE_SLOW,
    ENGINE_CUTS,
    ENGINE_FULL,
    ENGINE_READS, /* takes no writes */
    ENGINE_ALONE, /* without its replica */
    ENGINE_ODD,
    ENGINE_MOODS
};
static const char *const mood_words[ENGINE_MOODS] = {
    "up",      "refuses",    "is silent",      "is slow",        "cuts",
    "is full", "only reads", "has no replica", "says odd things"};

struct known_id {
    char id[MODEL_ID_MAX];
    UT_hash_handle hh;
};

static struct {
    bool is_there, has_replica, is_old, is_required, knows_scripts;
    enum mood mood;
    uint64_t chance;
    struct copies_database *data, *replica; /* replica: or what was OLD_MS ago */
    struct network_service *service;
    struct asker *askers;
    struct known_id *stored; /* ever */
    int64_t lost_ms;         /* when the disk was lost last; 0: never */
    int64_t bad_ms;          /* when anything was not well last */
    int64_t heard_ms;        /* when a script of the first host was run last */
    bool has_forgotten;      /* ends: another server took over, or the host died */
    bool is_settled;         /* all copies are judged now */
    struct roof_timer look, old;
} engine;

struct asker {
    struct asker *prev, *next;
    struct peer peer;
    struct buffer in, reply;
    bool is_first, waits; /* is_first: of the first host */
    struct roof_timer timer;
};

static unsigned
draw(unsigned limit)
{
    return roof_below_of(&engine.chance, limit);
}

/* --- Replies ---------------------------------------------------------------------- */

static void say(struct asker *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void
say(struct asker *a, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    bool fits = buffer_format_list(&a->reply, format, list);
    va_end(list);
    assert(fits);
}

static void
say_info(struct asker *a)
{
    char info[512];
    snprintf(
        info, sizeof(info),
        "# Server\r\nredis_version:%s\r\nloading:0\r\nmaxmemory_policy:noeviction\r\n"
        "aof_enabled:1\r\nrole:%s\r\nconnected_slaves:%d\r\n",
        engine.is_old ? "7.0.15" : "8.0.2",
        engine.mood == ENGINE_READS ? "slave" : "master",
        engine.has_replica && engine.mood != ENGINE_ALONE);
    say(a, "$%zu\r\n%s\r\n", strlen(info), info);
}

/* Each message that it stores. words: behind the frame. */
static void
note_stored(const struct text *words, size_t count)
{
    for (size_t i = 0; i + 1 < count;) {
        char op = words[i].at[0];
        roof_note("engine: %c %.*s", op, TEXT_ARGS(words[i + 1]));
        struct known_id *known = NULL;
        HASH_FIND(hh, engine.stored, words[i + 1].at, words[i + 1].length, known);
        if (op == 'S' && known == NULL) {
            known = memory_new(sizeof(*known));
            (void)!text_copy(known->id, sizeof(known->id), words[i + 1]);
            HASH_ADD(hh, engine.stored, id, words[i + 1].length, known);
        }
        i += op == 'E' ? 2 : op == 'L' || op == 'P' ? 4 : 3;
    }
}

/* A batch that was taken is that of the owner. words: behind the number of keys. */
static void
judge_owner(const struct text *words)
{
    enum { OWNERS = 1, WHO = 3, NAME };
    char owners[KEY_SIZE], name[KEY_SIZE];
    if (!text_copy(owners, KEY_SIZE, words[OWNERS]) ||
        !text_copy(name, KEY_SIZE, words[NAME]))
        abort();
    struct text owner = copies_database_field(engine.data, owners, name);
    if (!text_equal(owner, words[WHO]))
        roof_break("fenced", NULL,
                   "a batch of %.*s is taken, and its copies are %.*s's",
                   TEXT_ARGS(words[WHO]), TEXT_ARGS(owner));
}

/* Before it is done: the copies of one host become another's, unless a sign of life has come
 * meanwhile. words: those of adoption_script_claim, behind the number of keys. */
static void
note_claim(const struct text *words, size_t count)
{
    enum { OWNERS = 1, COPIES, BEATS, WHO = 5, NAME, OWNER, BEAT, CLAIM_WORDS };
    char owners[KEY_SIZE], beats[KEY_SIZE], name[KEY_SIZE], was[KEY_SIZE];
    if (count < CLAIM_WORDS || !text_copy(owners, KEY_SIZE, words[OWNERS]) ||
        !text_copy(beats, KEY_SIZE, words[BEATS]) ||
        !text_copy(name, KEY_SIZE, words[NAME]))
        abort();
    struct text owner = copies_database_field(engine.data, owners, name);
    if (owner.at == NULL || !text_copy(was, KEY_SIZE, owner))
        return;
    struct text beat = copies_database_field(engine.data, beats, was);
    if (!text_equal(owner, words[WHO]) && text_equal(owner, words[OWNER]) &&
        text_equal(beat.at != NULL ? beat : TEXT("-"), words[BEAT]))
        law_adoption_claimed(owner, words[WHO], words[COPIES]);
}

static void
run_script(struct asker *a, const struct text *words, size_t count)
{
    enum { FRAME = 6 };
    bool by_sum = text_equal(words[0], TEXT("EVALSHA"));
    char *word = text_string(words[1]);
    const char *script = copies_database_script(word, by_sum);
    free(word);
    if (script == NULL)
        roof_break("bounds", NULL, "a script that nobody knows");
    bool stores = script == copies_script_store;
    if (by_sum && !engine.knows_scripts) {
        say(a, "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        return;
    }
    engine.knows_scripts = true;
    words += 2;
    count -= 2;
    if (stores && engine.mood == ENGINE_READS) {
        say(a, "-READONLY You can't write against a read only replica.\r\n");
        return;
    }
    if (stores && engine.mood == ENGINE_FULL && count > FRAME &&
        words[FRAME].at[0] != 'E') {
        say(a, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
        return;
    }
    struct buffer reply;
    buffer_init(&reply, REPLY_MAX);
    if (script == adoption_script_claim.text)
        note_claim(words, count);
    bool good = copies_database_run(engine.data, script, words, count, &reply);
    if (good && engine.has_replica && engine.mood != ENGINE_ALONE) {
        struct buffer same;
        buffer_init(&same, REPLY_MAX);
        (void)copies_database_run(engine.replica, script, words, count, &same);
        buffer_free(&same);
    }
    if (good && a->is_first)
        engine.heard_ms = roof_now_ms();
    if (good && stores)
        judge_owner(words);
    if (good && stores)
        note_stored(words + FRAME, count - FRAME);
    if (good)
        say(a, "$%zu\r\n%.*s\r\n", reply.length, TEXT_ARGS(buffer_text(&reply)));
    else
        say(a, "-%.*s\r\n", TEXT_ARGS(buffer_text(&reply)));
    buffer_free(&reply);
}

static void
say_odd(struct asker *a)
{
    static const char *const odd[] = {"+OK\r\n",
                                      ":-7\r\n",
                                      "$-1\r\n",
                                      "$0\r\n\r\n",
                                      "*2\r\n:1\r\n:2\r\n",
                                      "*2\r\n*1000000000\r\n",
                                      "$9\r\n1 2 3 4 x\r\n",
                                      "$1\r\n7\r\n",
                                      "-ERR user_script:1: Script attempted\r\n",
                                      "-NOPERM this user has no permissions\r\n",
                                      "$1048576\r\n",
                                      "hello\r\n"};
    say(a, "%s", odd[draw(sizeof(odd) / sizeof(*odd))]);
}

/* How long the reply takes. */
static int64_t
run_command(struct asker *a, const struct text *words, size_t count)
{
    bool is_alone = engine.has_replica && engine.mood == ENGINE_ALONE;
    struct text command = words[0];
    if (engine.mood == ENGINE_ODD && draw(3) == 0) {
        say_odd(a);
    } else if (text_equal(command, TEXT("INFO"))) {
        say_info(a);
    } else if (text_equal(command, TEXT("CONFIG"))) {
        say(a, "*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n");
    } else if (text_equal(command, TEXT("WAIT"))) {
        say(a, ":%d\r\n", engine.has_replica && !is_alone);
        return is_alone ? 4000 : 0;
    } else if (text_equal(command, TEXT("WAITAOF"))) {
        say(a, "*2\r\n:1\r\n:%d\r\n", engine.has_replica && !is_alone);
        return is_alone ? 4000 : 0;
    } else if (text_starts(command, TEXT("EVAL")) && count > 4) {
        run_script(a, words, count);
    } else {
        roof_break("bounds", NULL, "the engine hears %.*s", TEXT_ARGS(command));
    }
    return engine.mood == ENGINE_SLOW ? 1 + draw(draw(2) == 0 ? 200 : LATE_MAX_MS) : 0;
}

static void
asker_send(struct asker *a)
{
    struct text reply = buffer_text(&a->reply);
    bool cuts = engine.mood == ENGINE_CUTS && draw(4) == 0;
    peer_say(&a->peer, cuts ? text_before(reply, draw((unsigned)reply.length)) : reply);
    buffer_clear(&a->reply);
    if (cuts)
        peer_cut(&a->peer, draw(2) == 0 ? PEER_FIN : PEER_RESET);
}

/* --- Commands --------------------------------------------------------------------- */

static bool
take_head(struct text *rest, char kind, size_t *number)
{
    struct text line;
    uint64_t value = 0;
    if (text_find(*rest, '\n') == TEXT_NONE || !text_cut(rest, '\n', &line))
        return false;
    if (line.length < 3 || line.at[0] != kind ||
        !text_number(text_before(text_after(line, 1), line.length - 2), INPUT_MAX,
                     &value))
        roof_break("bounds", NULL, "no command of Redis: %.*s", TEXT_ARGS(line));
    *number = (size_t)value;
    return true;
}

/* The words of the first command, borrowed from a->in. 0: more is to come. */
static size_t
take_words(struct asker *a, struct text words[WORDS_MAX], size_t *used)
{
    struct text rest = buffer_text(&a->in);
    size_t count, size;
    if (!take_head(&rest, '*', &count))
        return 0;
    assert(count > 0 && count <= WORDS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!take_head(&rest, '$', &size) || rest.length < size + 2)
            return 0;
        words[i] = text_before(rest, size);
        rest = text_after(rest, size + 2);
    }
    *used = a->in.length - rest.length;
    return count;
}

static void asker_go_on(struct asker *a);

static void
asker_on_late(void *context)
{
    struct asker *a = context;
    a->waits = false;
    asker_send(a);
    asker_go_on(a);
}

static void
asker_go_on(struct asker *a)
{
    static struct text words[WORDS_MAX];
    size_t count, used;
    while (a->peer.end != NULL && !a->waits && engine.mood != ENGINE_SILENT &&
           (count = take_words(a, words, &used)) > 0) {
        int64_t late_ms = run_command(a, words, count);
        buffer_take(&a->in, used);
        a->waits = late_ms > 0;
        if (a->waits)
            roof_timer_start(&a->timer, late_ms, asker_on_late, a);
        else
            asker_send(a);
    }
}

static void
asker_on_raw(void *context, struct text bytes)
{
    struct asker *a = context;
    bool fits = buffer_add(&a->in, bytes);
    assert(fits);
    a->peer.raw_left = SIZE_MAX;
    asker_go_on(a);
}

static void
release_asker(void *context)
{
    struct asker *a = context;
    buffer_free(&a->in);
    buffer_free(&a->reply);
    free(a);
}

static void
asker_on_over(void *context)
{
    struct asker *a = context;
    DL_DELETE(engine.askers, a);
    a->waits = true;
    roof_timer_start(&a->timer, 0, release_asker, a);
}

static void
asker_on_accept(void *context, struct network_end *end)
{
    struct asker *a = memory_new(sizeof(*a));
    (void)context;
    a->is_first = law_adoption_host(network_from(end)) == 0;
    buffer_init(&a->in, INPUT_MAX);
    buffer_init(&a->reply, REPLY_MAX);
    a->peer = (struct peer){
        .raw_left = SIZE_MAX, .raw = asker_on_raw, .over = asker_on_over, .context = a};
    DL_APPEND(engine.askers, a);
    peer_take(&a->peer, end);
}

/* --- Trouble ---------------------------------------------------------------------- */

static void
end_askers(enum peer_end how)
{
    struct asker *a, *next;
    DL_FOREACH_SAFE (engine.askers, a, next)
        peer_cut(&a->peer, how);
}

static void
set_mood(enum mood mood)
{
    struct asker *a, *next;
    engine.bad_ms = roof_now_ms();
    if (engine.mood == mood || (mood == ENGINE_ALONE && !engine.has_replica))
        return;
    roof_note("engine: %s", mood_words[mood]);
    if (engine.mood == ENGINE_ALONE) {
        copies_database_free(&engine.replica);
        engine.replica = copies_database_copy(engine.data);
    }
    engine.mood = mood;
    network_service_set(engine.service,
                        mood == ENGINE_REFUSES ? NETWORK_REFUSES : NETWORK_ACCEPTS);
    if (mood == ENGINE_REFUSES || mood == ENGINE_READS)
        end_askers(draw(4) == 0 ? PEER_SILENCE : PEER_RESET);
    if (mood == ENGINE_REFUSES)
        engine.knows_scripts = false;
    DL_FOREACH_SAFE (engine.askers, a, next)
        asker_go_on(a);
}

/* With a replica nothing that was acknowledged is lost. */
static void
fail_over(void)
{
    roof_note("engine: fails over");
    engine.has_forgotten |= !engine.has_replica || engine.mood == ENGINE_ALONE;
    end_askers(PEER_RESET);
    copies_database_free(&engine.data);
    engine.data = copies_database_copy(engine.replica);
    engine.knows_scripts = false;
    engine.bad_ms = roof_now_ms();
}

static void
empty_engine(void)
{
    roof_note("engine: FLUSHALL");
    copies_database_flush(engine.data);
    copies_database_flush(engine.replica);
    engine.bad_ms = roof_now_ms();
}

void
engine_act(void)
{
    unsigned kind = draw(16);
    /* Else both places could die. */
    bool may_lose = !(course.with[WITH_LOST_DISK] || course.with[WITH_SIBLINGS]) ||
                    (kind > 13 && engine.has_replica && engine.mood != ENGINE_ALONE);
    if (kind < 5 || (kind != 13 && kind > 11 && !may_lose)) {
        set_mood(ENGINE_UP);
    } else if (kind < 12) {
        set_mood((enum mood)draw(ENGINE_MOODS));
    } else if (kind == 12) {
        empty_engine();
    } else if (kind == 13) {
        engine.knows_scripts = false;
    } else {
        fail_over();
    }
}

void
engine_become_good(void)
{
    if (engine.is_there)
        set_mood(ENGINE_UP);
}

static void
engine_on_old(void *context)
{
    (void)context;
    copies_database_free(&engine.replica);
    engine.replica = copies_database_copy(engine.data);
    roof_timer_start(&engine.old, OLD_MS, engine_on_old, NULL);
}

/* --- Laws ------------------------------------------------------------------------- */

bool
engine_may_return(struct text reply)
{
    return (course.with[WITH_KILLS] || course.with[WITH_CUTS] ||
            course.with[WITH_STOPS] || course.with[WITH_DISKS] ||
            course.with[WITH_SIBLINGS]) &&
           memmem(reply.at, reply.length, "No second copy", 14) != NULL;
}

void
engine_host_ended(void)
{
    if (!engine.is_there || engine.heard_ms >= host.started_ms)
        return;
    for (unsigned i = 0; i < model_count(); i++) {
        const struct model_message *m = model_at(i);
        bool ended = false;
        for (unsigned r = 0; r < m->rcpt_count; r++)
            ended =
                ended ||
                (m->rcpts[r].stored > 0 && m->rcpts[r].stored_ms >= host.started_ms) ||
                (m->rcpts[r].refused && m->rcpts[r].refused_ms >= host.started_ms);
        if (ended && m->id[0] != '\0')
            model_moved_twice(text_from(m->id));
    }
}

void
engine_acked(struct text id)
{
    struct known_id *known = NULL;
    if (!engine.is_there || !engine.is_required || id.length == 0)
        return;
    id = text_trim(id);
    HASH_FIND(hh, engine.stored, id.at, id.length, known);
    if (known == NULL || roof_breaks("copied"))
        roof_break("copied", text_string(id), "it was acknowledged without a copy");
}

static bool
is_open(const struct model_rcpt *r)
{
    return r->accepted && r->stored == 0 && r->failed == 0 && !r->refused &&
           !r->may_vanish && !r->has_failed && !r->has_fate;
}

struct each_copy {
    void (*met)(void *context, const struct engine_copy *copy);
    void *context;
};

static void
on_copy(void *context, const char *key, const char *id, struct text field)
{
    const struct each_copy *each = context;
    struct envelope *e = envelope_new();
    struct text form;
    uint64_t batch;
    struct id read;
    if (id_parse(text_from(id), &read) && copies_read_field(field, &batch, &form) &&
        envelope_read_todo(form, read, e) == PROGRESS_DONE)
        each->met(each->context, &(struct engine_copy){key, id, e});
    envelope_free(&e);
}

void
engine_each_copy(void (*met)(void *context, const struct engine_copy *copy),
                 void *context)
{
    struct each_copy each = {met, context};
    copies_database_each(engine.data, on_copy, &each);
}

/* In one piece, or in chunks. */
static void
judge_bytes(const struct model_message *m, const struct engine_copy *copy)
{
    char name[KEY_SIZE + MODEL_ID_MAX], chunk[24];
    const struct envelope *e = copy->envelope;
    snprintf(name, sizeof(name), "%s:c", copy->id);
    struct text bytes = copies_database_field(engine.data, copy->key, name);
    int64_t size = (int64_t)bytes.length;
    uint32_t crc = crc_add(0, bytes.at, bytes.length);
    snprintf(name, sizeof(name), "%s:%s", copy->key, copy->id);
    for (unsigned i = 0; bytes.at == NULL || i > 0; i++) {
        snprintf(chunk, sizeof(chunk), "%u", i);
        bytes = copies_database_field(engine.data, name, chunk);
        if (bytes.at == NULL)
            break;
        size += (int64_t)bytes.length;
        crc = crc_add(crc, bytes.at, bytes.length);
    }
    if (size != e->content_size || crc != e->content_crc)
        roof_break("copied", m->id,
                   "the content of its copy is not that of the message");
}

/* Marks come within 100 ms of the line of the log, but where the disk takes its time; a reply
 * that is late, or lost, is no mark. */
static void
judge_copy(const struct model_message *m, const struct envelope *e)
{
    char address[MODEL_ADDRESS_MAX];
    if (course.with[WITH_PACES] || course.with[WITH_DISKS])
        return;
    for (unsigned i = 0; i < m->rcpt_count; i++) {
        const struct model_rcpt *r = &m->rcpts[i];
        if (r->stored == 0 || r->chances > 0 || !r->has_fate ||
            roof_now_ms() - r->stored_ms < SETTLED_MS)
            continue;
        model_rcpt_address(r, address);
        for (unsigned n = 0; n < e->count; n++)
            if (text_equal(e->recipients[n].address, text_from(address)) &&
                !e->recipients[n].done)
                roof_break("copied", m->id, "the copy does not know that %s has it",
                           address);
    }
}

/* The message of a copy; NULL: none that is judged. */
static struct model_message *
message_of(const struct envelope *e)
{
    char address[MODEL_ADDRESS_MAX];
    struct model_rcpt *r = NULL;
    if (e->count > 0 && text_copy(address, sizeof(address), e->recipients[0].address))
        r = model_find(text_from(address));
    return r != NULL ? r->message : NULL;
}

static bool
is_judged(const struct model_message *m)
{
    bool open = false;
    if (m->state != MODEL_ACKED || m->id[0] == '\0' || m->split != NULL ||
        m->is_aliased || m->acked_ms <= engine.lost_ms)
        return false;
    for (unsigned i = 0; i < m->rcpt_count; i++)
        open = open || is_open(&m->rcpts[i]);
    return open;
}

/* By the numbers of messages: which have a copy. */
static void
look_at_copy(void *context, const struct engine_copy *copy)
{
    bool *has = context;
    const struct model_message *m = message_of(copy->envelope);
    if (m == NULL)
        return;
    has[m->number] = true;
    if (!engine.is_settled || !is_judged(m) || roof_now_ms() - m->acked_ms < SETTLED_MS)
        return;
    judge_bytes(m, copy);
    if (!course.with[WITH_GROUP]) /* on its way two hosts have it */
        judge_copy(m, copy->envelope);
}

/* Mail of sendmail(1) that is quarantined before the daemon could copy it stays as it was. */
static bool
is_set_aside(const struct model_message *m)
{
    char note[MODEL_ID_MAX + 40];
    struct known_id *stored = NULL;
    HASH_FIND(hh, engine.stored, m->id, strlen(m->id), stored);
    snprintf(note, sizeof(note), HOST_SPOOL "/corrupt/%s.note", m->id);
    return stored == NULL && sim_disk_content(note).at != NULL;
}

/* How many open messages there are; *lacking: one of them that has no copy, or NULL. */
static unsigned
look_at_copies(const struct model_message **lacking, int64_t settled_ms)
{
    unsigned count = 0, all = model_count();
    bool *has = memory_new(all + 1);
    *lacking = NULL;
    engine.is_settled = settled_ms > 0;
    engine_each_copy(look_at_copy, has);
    for (unsigned i = 0; i < all; i++) {
        const struct model_message *m = model_at(i);
        if (!is_judged(m) || roof_now_ms() - m->acked_ms < settled_ms)
            continue;
        count++;
        if (!has[i] && *lacking == NULL && !is_set_aside(m))
            *lacking = m;
    }
    free(has);
    return count;
}

/* Those of a group go for a while, with their mail. */
static bool
hosts_run(void)
{
    for (unsigned i = 0; i < group_count() && !course.with[WITH_SIBLINGS]; i++)
        if (!group_host(i)->running)
            return false;
    return host.running;
}

static void
engine_on_look(void *context)
{
    const struct model_message *lacking = NULL;
    (void)context;
    if (engine.mood != ENGINE_UP || !hosts_run() || !siblings_are_well())
        engine.bad_ms = roof_now_ms();
    if (roof_now_ms() - engine.bad_ms > SETTLED_MS)
        (void)look_at_copies(&lacking, SETTLED_MS);
    if (lacking != NULL)
        roof_break("copied", lacking->id,
                   "it is open, and has no copy that can be read");
    roof_timer_start(&engine.look, course.with[WITH_GROUP] ? LOOK_RARELY_MS : LOOK_MS,
                     engine_on_look, NULL);
}

struct copies_of {
    char key[MODEL_ADDRESS_MAX]; /* a part of it */
    size_t count;
};

static void
count_copy_of(void *context, const char *key, const char *id, struct text field)
{
    struct copies_of *of = context;
    (void)id;
    (void)field;
    of->count += strstr(key, of->key) != NULL;
}

bool
engine_has_all(void)
{
    const struct model_message *lacking;
    if (!engine.is_there || !engine.is_required || engine.mood != ENGINE_UP ||
        roof_now_ms() - engine.bad_ms < LOST_AFTER_MS)
        return false;
    return look_at_copies(&lacking, 0) > 0 && lacking == NULL;
}

size_t
engine_copies_of(const char *host_name)
{
    struct copies_of of = {.count = 0};
    snprintf(of.key, sizeof(of.key), "}:%s:", host_name);
    if (engine.is_there)
        copies_database_each(engine.data, count_copy_of, &of);
    return of.count;
}

void
engine_lost_disk(void)
{
    engine.lost_ms = roof_now_ms();
}

static void
find_left(void *context, const struct engine_copy *copy)
{
    const char **left = context;
    if (*left == NULL)
        *left = memory_string(copy->id);
}

void
engine_judge(void)
{
    const char *left = NULL;
    size_t count = engine.is_there ? copies_database_count(engine.data) : 0;
    bool was_again = host.starts > 1 && !course.with[WITH_SIBLINGS];
    if (count == 0 || engine.has_forgotten || was_again)
        return;
    engine_each_copy(find_left, &left);
    roof_break("copied", left, "its copy is left, and %zu in all", count);
}

/* Longer than it takes until the laws hold (engine_on_look()). */
static void
await_look(void)
{
    (void)world_run_for(2 * SETTLED_MS, NULL);
}

struct copy_search {
    const struct model_message *message;
    bool is_found;
};

static void
find_copy(void *context, const struct engine_copy *copy)
{
    struct copy_search *search = context;
    search->is_found |= message_of(copy->envelope) == search->message;
}

/* A server that has lost all gets it again with the next word to it, and not when all is
 * compared some day. */
static void
judge_refill(const struct model_message *m)
{
    (void)world_run_for(REFILL_MS, NULL);
    struct copy_search search = {.message = m};
    engine_each_copy(find_copy, &search);
    if (!search.is_found && m->state == MODEL_ACKED && is_open(&m->rcpts[1]))
        roof_break("copied", m->id,
                   "it has no copy some time after the engine was emptied");
}

void
engine_audit(void)
{
    struct hop_mood good = {0}, slow = {.reply_ms = AUDIT_REPLY_MS};
    if (!engine.is_there || model_domains() < 2 || course.with[WITH_GROUP])
        return;
    world_set_moods(&slow);
    world_set_first_mood(&good);
    struct model_message *m = audit_message(0, 2, AUDIT_SIZE);
    m->rcpts[1].domain = 1;
    if (audit_try(m) == 250)
        await_look();
    set_mood(ENGINE_FULL);
    (void)audit_try(audit_message(1, 1, AUDIT_SIZE));
    set_mood(ENGINE_UP);
    await_look();
    empty_engine();
    judge_refill(m);
    world_set_moods(&good);
    audit_departure("mail with copies");
}

/* --------------------------------------------------------------------------------- */

void
engine_begin(void)
{
    struct net_address at = {
        .family = NET_IPV4, .ip = {10, 0, 4, 9},
             .port = 6379
    };
    static char lines[256];
    engine.chance = roof_fork("engine");
    engine.is_there = true;
    engine.has_replica = draw(2) == 0;
    engine.is_old = draw(2) == 0;
    engine.is_required = draw(4) > 0;
    engine.data = copies_database_new();
    engine.replica = copies_database_new();
    engine.service = network_serve(&at, asker_on_accept, NULL);
    snprintf(lines, sizeof(lines),
             "copies = redis://10.0.4.9\ncopies_replicas = %d\ncopies_required = %s\n"
             "copies_message_max = %s\n",
             engine.has_replica, engine.is_required ? "yes" : "no",
             draw(2) == 0 ? "1K" : "1M");
    editor_add(lines);
    roof_timer_start(&engine.look, LOOK_MS, engine_on_look, NULL);
    if (!engine.has_replica)
        roof_timer_start(&engine.old, OLD_MS, engine_on_old, NULL);
}
