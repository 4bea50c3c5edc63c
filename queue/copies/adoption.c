/* Owners of copies: our sign of life, those of others, and the lease of copies that are lost. */
#include "queue/copies/adoption.h"

#include "base/event/event.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "queue/copies/adoption_internal.h"
#include "queue/manager/manager.h"
#include "queue/queue_operator.h"
#include "sched/sched.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GAP_MS = 3 * ADOPTION_BEAT_MS,
    FORMER_MS = 6 * ADOPTION_SILENT_MS,
    NAMESAKE_SIGNS = 3,
    UNREADABLE_MS = 60 * 1000, /* from one try to the next */
    ADOPTION_KEYS = 4
};

void
adoption_write_who(const char *host, uint64_t run, char out[ADOPTION_WHO_MAX + 1])
{
    snprintf(out, ADOPTION_WHO_MAX + 1, "%s %016" PRIx64, host, run);
}

void
adoption_rest(struct adoption *a)
{
    a->rest_until_ms = loop_monotonic_ms(a->setup.loop) + ADOPTION_BEAT_MS;
}

/* --- Questions ---------------------------------------------------------------------- */

static struct text
adoption_key(const struct adoption *a, char kind, const char *name,
             const struct adoption_slot *slot, char out[COPIES_KEY_MAX + 1])
{
    char whole[COPIES_NAME_MAX + 16];
    snprintf(whole, sizeof(whole), kind == 'a' ? "%s:adopted" : "%s",
             kind == 'b' ? "beat" : name);
    if (kind == 'l')
        copies_key_chunks(a->setup.settings, name, slot->id, out);
    else
        copies_key(a->setup.settings, whole, out);
    return text_from(out);
}

static void
adoption_on_answer(void *context, const struct redis_reply *reply, const char *why)
{
    struct adoption *a = context;
    assert(a->ask_count > 0);
    struct adoption_ask ask = a->asks[a->ask_first];
    a->ask_first = (a->ask_first + 1) % ADOPTION_ASKS_MAX;
    a->ask_count--;
    if (reply != NULL && reply->kind != REDIS_TEXT) {
        reply = NULL;
        why = "an odd answer";
    }
    if (reply == NULL)
        adoption_rest(a);
    ask.heard(a, ask.slot, reply, why);
    adoption_stir(a);
}

void
adoption_ask(struct adoption *a, adoption_heard *heard, struct adoption_slot *slot,
             const struct adoption_script *script, const char *name,
             const char *const *words)
{
    struct text all[ADOPTION_WORDS_MAX];
    char keys[ADOPTION_KEYS][COPIES_KEY_MAX + 1], count[8];
    size_t used = 0, key_count = strlen(script->keys);
    assert(a->ask_count < ADOPTION_ASKS_MAX && key_count < ADOPTION_KEYS);
    snprintf(count, sizeof(count), "%zu", key_count + 1);
    copies_key_owner(a->setup.settings, keys[key_count]);
    all[used++] = text_from(count);
    all[used++] = text_from(keys[key_count]);
    for (size_t i = 0; i < key_count; i++)
        all[used++] = adoption_key(a, script->keys[i], name, slot, keys[i]);
    all[used++] = text_from(a->setup.who);
    all[used++] = text_from(name);
    for (; *words != NULL && used < ADOPTION_WORDS_MAX; words++)
        all[used++] = text_from(*words);
    a->asks[(a->ask_first + a->ask_count++) % ADOPTION_ASKS_MAX] =
        (struct adoption_ask){heard, slot};
    copies_engine_run(a->setup.engine, script->text, all, used, script->must_last,
                      adoption_on_answer, a);
}

/* --- Owners --------------------------------------------------------------------------- */

struct text
adoption_host(const char *name)
{
    return text_before(text_from(name), strcspn(name, ": "));
}

static int64_t
adoption_now_ms(const struct adoption *a)
{
    return loop_monotonic_ms(a->setup.loop);
}

struct adoption_row *
adoption_find(const struct adoption *a, struct text name)
{
    for (size_t i = 0; i < a->row_count; i++)
        if (text_equal(text_from(a->rows[i].name), name))
            return &a->rows[i];
    return NULL;
}

/* "HOST:IDENTITY HOST RUN NUMBER" */
static void
adoption_read_row(struct adoption *a, struct text line)
{
    struct text rest = line, name, host, run, beat;
    char owner[ADOPTION_WHO_MAX + 1];
    if (!text_word(&rest, " ", &name) || !text_word(&rest, " ", &host) ||
        !text_word(&rest, " ", &run) || !text_word(&rest, " ", &beat) ||
        name.length > COPIES_NAME_MAX || text_find(name, ':') == TEXT_NONE ||
        host.length > GROUP_HOST_MAX || run.length > ADOPTION_RUN_DIGITS ||
        beat.length >= sizeof(a->rows->beat))
        return;
    snprintf(owner, sizeof(owner), "%.*s %.*s", TEXT_ARGS(host), TEXT_ARGS(run));
    struct adoption_row *row = adoption_find(a, name);
    if (row == NULL && a->row_count == ADOPTION_OWNERS_MAX &&
        !text_equal(name, text_from(a->name)))
        return;
    if (row == NULL) {
        a->rows = memory_resize(a->rows, (a->row_count + 1) * sizeof(*a->rows));
        row = &a->rows[a->row_count++];
        *row = (struct adoption_row){.since_ms = adoption_now_ms(a)};
        (void)text_copy(row->name, sizeof(row->name), name);
    }
    row->is_listed = true;
    if (strcmp(row->owner, owner) == 0 && text_equal(text_from(row->beat), beat))
        return;
    row->signs = strcmp(row->owner, owner) == 0 ? row->signs + 1 : 0;
    if (strcmp(owner, a->setup.who) != 0)
        row->unreadable = 0; /* for us to say */
    if (text_equal(host, adoption_host(row->name)) && !text_equal(beat, TEXT("-")))
        row->is_ordered = false; /* it is back */
    row->since_ms = adoption_now_ms(a);
    memcpy(row->owner, owner, sizeof(owner));
    (void)text_copy(row->beat, sizeof(row->beat), beat);
}

/* While nobody could reach the engine nobody was silent. */
static void
adoption_read_rows(struct adoption *a, struct text list)
{
    int64_t now_ms = adoption_now_ms(a);
    bool is_gap = now_ms - a->heard_ms > GAP_MS;
    struct text line;
    size_t kept = 0;
    for (size_t i = 0; i < a->row_count; i++) {
        a->rows[i].is_listed = false;
        if (is_gap)
            a->rows[i].since_ms = now_ms;
    }
    while (list.length > 0) {
        (void)!text_cut(&list, '\n', &line);
        adoption_read_row(a, line);
    }
    for (size_t i = 0; i < a->row_count; i++)
        if (a->rows[i].is_listed)
            a->rows[kept++] = a->rows[i];
    a->row_count = kept;
    a->heard_ms = now_ms;
}

static bool
adoption_is_silent(const struct adoption *a, const struct adoption_row *row,
                   int64_t for_ms)
{
    return adoption_now_ms(a) - row->since_ms >= for_ms;
}

static bool
adoption_is_own_host(const struct adoption *a, const char *name)
{
    return text_equal(adoption_host(name), adoption_host(a->setup.who));
}

static bool
adoption_is_own_disk(const struct adoption *a, const char *name)
{
    return strcmp(strchr(name, ':') + 1, a->setup.identity) == 0;
}

/* Another daemon of our disk has them, or will when it starts. */
static bool
adoption_is_slice(const struct adoption *a, const char *name)
{
    struct text own = text_from(a->setup.settings->host), host = adoption_host(name);
    uint64_t slice;
    while (own.length > 0 && own.at[own.length - 1] != '.')
        own.length--;
    return a->setup.settings->slices > 1 && adoption_is_own_disk(a, name) &&
           text_starts(host, own) &&
           text_number(text_after(host, own.length), UINT64_MAX, &slice) &&
           slice < a->setup.settings->slices;
}

/* The name is back, with another disk. */
static bool
adoption_is_replaced(const struct adoption *a, const struct adoption_row *row)
{
    for (size_t i = 0; i < a->row_count; i++) {
        const struct adoption_row *other = &a->rows[i];
        if (other != row && other->signs > 0 &&
            !adoption_is_silent(a, other, ADOPTION_SILENT_MS) &&
            text_equal(adoption_host(other->name), adoption_host(row->name)) &&
            text_equal(adoption_host(other->owner), adoption_host(row->name)))
            return true;
    }
    return false;
}

static bool
adoption_is_heard(const struct adoption *a, const struct adoption_row *row)
{
    char host[GROUP_HOST_MAX + 1];
    return !text_copy(host, sizeof(host), adoption_host(row->owner)) ||
           (a->setup.is_heard != NULL && a->setup.is_heard(a->setup.context, host));
}

/* Whether these copies are lost, and ours to take. */
static bool
adoption_is_lost(const struct adoption *a, const struct adoption_row *row)
{
    int64_t after_ms = a->adopt_after_ms;
    if (strcmp(row->name, a->name) == 0 || adoption_is_slice(a, row->name) ||
        adoption_now_ms(a) < row->rest_until_ms)
        return false;
    if (strcmp(row->owner, a->setup.who) == 0)
        return true;
    if (!adoption_is_silent(a, row, ADOPTION_SILENT_MS))
        return false;
    /* Our disk or name of before; or what an earlier run of ours had begun to take. */
    if (row->is_ordered || adoption_is_own_host(a, row->owner) ||
        adoption_is_own_disk(a, row->name))
        return true;
    if (adoption_is_replaced(a, row) &&
        text_equal(adoption_host(row->owner), adoption_host(row->name)))
        return adoption_is_silent(a, row, (int64_t)2 * ADOPTION_SILENT_MS);
    return after_ms > 0 && adoption_is_silent(a, row, after_ms) &&
           !adoption_is_heard(a, row);
}

/* Copies of our disk under a name of before, or perhaps: it has mail, and lost its identity. A
 * clone of it, or a host with our name, that lives gives signs. */
static bool
adoption_has_former(const struct adoption *a)
{
    bool is_any = false;
    for (size_t i = 0; i < a->row_count; i++) {
        const struct adoption_row *row = &a->rows[i];
        is_any |= strcmp(row->name, a->name) != 0 &&
                  (adoption_is_own_disk(a, row->name) ||
                   adoption_is_own_host(a, row->name)) &&
                  !adoption_is_slice(a, row->name) &&
                  (row->signs == 0 || strcmp(row->owner, a->setup.who) == 0);
    }
    return is_any && a->had_mail;
}

void
adoption_release(struct adoption *a)
{
    struct sched_counts counts = sched_count(manager_sched(a->setup.manager));
    if (!a->has_counted) {
        a->has_counted = queue_has_found_all(manager_queue(a->setup.manager));
        a->had_mail =
            !a->has_counted || counts.incoming + counts.active + counts.deferred > 0;
    }
    a->is_waiting =
        adoption_now_ms(a) - a->start_ms < FORMER_MS && adoption_has_former(a);
    manager_pause(a->setup.manager, a->is_waiting);
}

/* --- Leases ---------------------------------------------------------------------------- */

static void
adoption_close(struct adoption *a, const char *owner, bool lives)
{
    struct text host = adoption_host(owner);
    bool is_own = adoption_is_own_host(a, owner), was_fenced = a->is_fenced;
    comparison_stop(a);
    a->stage = ADOPTION_CLOSED;
    if (is_own)
        snprintf(a->why, sizeof(a->why),
                 "another run of this host, or a clone of its spool, owns its copies");
    else
        snprintf(a->why, sizeof(a->why), "%.*s adopts the mail of this host",
                 TEXT_ARGS(host));
    copies_keeper_close(a->setup.keeper, a->why);
    a->is_fenced |= !is_own || lives;
    manager_pause(a->setup.manager, true);
    if (is_own || was_fenced)
        return;
    log_say(a->setup.log, LOG_LEVEL_WARNING, "copies", NULL,
            "%s: none is accepted or delivered until what it has taken has ended here",
            a->why);
}

/* "NUMBER ADOPTED", or "- ADOPTED". False: it is no answer of that script, and nothing is known. */
static bool
adoption_read_claim(struct adoption *a, struct text answer, uint64_t *number,
                    uint64_t *adopted)
{
    struct text word;
    *number = 0;
    bool is_good =
        text_word(&answer, " ", &word) &&
        (text_equal(word, TEXT("-")) || text_number(word, UINT64_MAX, number)) &&
        text_number(text_trim(answer), UINT64_MAX, adopted);
    if (!is_good)
        copies_engine_fail(a->setup.engine, "an odd answer of the server");
    return is_good;
}

static void
adoption_on_own(struct adoption *a, struct adoption_slot *slot,
                const struct redis_reply *reply, const char *why)
{
    uint64_t number, adopted;
    (void)slot;
    a->is_claiming = false;
    if (reply == NULL)
        adoption_refused(a, a->name, why);
    else if (adoption_read_claim(a, reply->text, &number, &adopted))
        comparison_begin(a, number, adopted);
}

static void
adoption_on_lease(struct adoption *a, struct adoption_slot *slot,
                  const struct redis_reply *reply, const char *why)
{
    uint64_t number, adopted;
    (void)slot;
    a->is_claiming = false;
    if (reply == NULL)
        adoption_refused(a, a->claimed, why);
    if (reply == NULL || !adoption_read_claim(a, reply->text, &number, &adopted))
        return;
    struct adoption_row *row = adoption_find(a, text_from(a->claimed));
    if (row != NULL) /* until the next list */
        snprintf(row->owner, sizeof(row->owner), "%s", a->setup.who);
    struct text host = adoption_host(a->claimed);
    log_say(a->setup.log, LOG_LEVEL_INFO, "copies", NULL,
            "adopting the mail of %.*s, whose spool was %.8s", TEXT_ARGS(host),
            strchr(a->claimed, ':') + 1);
}

/* row NULL: nobody owns ours. */
static void
adoption_claim(struct adoption *a, const char *name, const struct adoption_row *row,
               adoption_heard *heard)
{
    a->is_claiming = true;
    snprintf(a->claimed, sizeof(a->claimed), "%s", name);
    adoption_ask(
        a, heard, NULL, &adoption_script_claim, name,
        ADOPTION_WORDS(row != NULL ? row->owner : "", row != NULL ? row->beat : "-"));
}

/* A clean stop leaves no sign, and no doubt. Nor is there any when another host adopts: the claim
 * fences it, and each message that it has taken is known. */
static void
adoption_judge_own(struct adoption *a)
{
    const struct adoption_row *row = adoption_find(a, text_from(a->name));
    bool is_ours = row != NULL && strcmp(row->owner, a->setup.who) == 0;
    if (a->is_claiming)
        return;
    if (row == NULL || (is_ours && a->stage <= ADOPTION_CLOSED) ||
        (!is_ours && (adoption_is_silent(a, row, ADOPTION_SILENT_MS) ||
                      (row->beat[0] == '-' && adoption_is_own_host(a, row->owner)))))
        adoption_claim(a, a->name, row, adoption_on_own);
    else if (!is_ours) {
        adoption_close(a, row->owner, row->signs > 0);
        if (!adoption_is_own_host(a, row->owner))
            adoption_claim(a, a->name, row, adoption_on_own);
    }
}

/* Two hosts that live have one name, or one spool. */
static void
adoption_judge_names(struct adoption *a)
{
    bool is_any = false;
    for (size_t i = 0; i < a->row_count; i++) {
        const struct adoption_row *row = &a->rows[i];
        is_any |= adoption_is_own_host(a, row->owner) &&
                  strcmp(row->owner, a->setup.who) != 0 &&
                  row->signs >= NAMESAKE_SIGNS &&
                  !adoption_is_silent(a, row, ADOPTION_SILENT_MS);
    }
    if (is_any && !a->state.has_namesake)
        log_say(a->setup.log, LOG_LEVEL_WARNING, "copies", NULL,
                "another host that lives has the name %.*s, or a clone of this spool: "
                "each host needs its own cluster_host and its own spool",
                TEXT_ARGS(adoption_host(a->setup.who)));
    a->state.has_namesake = is_any;
}

static enum adoption_met adoption_met_lost(struct adoption *a,
                                           const struct adoption_entry *entry);
static void adoption_on_taken_all(struct adoption *a, const char *name);

static void
adoption_find_lost(struct adoption *a)
{
    bool is_closed =
        a->setup.closed != NULL && a->setup.closed(a->setup.context) != NULL;
    for (size_t i = 0; i < a->row_count && !a->is_claiming; i++) {
        const struct adoption_row *row = &a->rows[i];
        bool is_ours = strcmp(row->owner, a->setup.who) == 0;
        if (!adoption_is_lost(a, row) || (is_closed && !is_ours))
            continue;
        if (!is_ours)
            adoption_claim(a, row->name, row, adoption_on_lease);
        else
            adoption_walk_begin(a, row->name, false, adoption_met_lost,
                                adoption_on_taken_all);
        return;
    }
}

static enum adoption_met
adoption_met_lost(struct adoption *a, const struct adoption_entry *entry)
{
    bool is_here = adoption_is_here(a, entry->id);
    if (is_here && !copies_keeper_has(a->setup.keeper, entry->id)) {
        a->walk.taken_ms = adoption_now_ms(a); /* it is no refusal */
        return ENTRY_LATER;
    }
    if (is_here || (adoption_is_own_disk(a, a->walk.name) &&
                    !manager_handles(a->setup.manager, entry->id)))
        return adoption_drop_entry(a, entry);
    return adoption_take_entry(a, entry);
}

static void
adoption_on_done(struct adoption *a, struct adoption_slot *slot,
                 const struct redis_reply *reply, const char *why)
{
    (void)slot;
    if (reply == NULL)
        adoption_refused(a, "", why);
}

static void
adoption_say_done(struct adoption *a, const char *name, const char *heir)
{
    char known[16];
    snprintf(known, sizeof(known), "%d", ADOPTION_KNOWN_S);
    adoption_ask(a, adoption_on_done, NULL, &adoption_script_done, name,
                 ADOPTION_WORDS(known, heir));
}

/* Their host may be back with another disk; else siblings wait for it as for one that is lost. */
void
adoption_leave(struct adoption *a)
{
    struct adoption_row *row = adoption_find(a, text_from(a->walk.name));
    char host[GROUP_HOST_MAX + 1], heir[ADOPTION_WHO_MAX + 1];
    (void)text_copy(host, sizeof(host), adoption_host(a->walk.name));
    adoption_write_who(host, 0, heir);
    if (row != NULL)
        row->rest_until_ms = adoption_now_ms(a) + a->adopt_after_ms + ADOPTION_STUCK_MS;
    log_say(a->setup.log, LOG_LEVEL_WARNING, "copies", NULL,
            "no more mail of %s can be taken here: other hosts may adopt it", host);
    adoption_say_done(a, a->walk.name, heir);
    adoption_walk_end(a);
}

static void
adoption_on_taken_all(struct adoption *a, const char *name)
{
    struct adoption_row *row = adoption_find(a, text_from(name));
    if (row != NULL && row->unreadable > 0) {
        row->rest_until_ms = adoption_now_ms(a) + UNREADABLE_MS;
        return;
    }
    log_say(a->setup.log, LOG_LEVEL_INFO, "copies", NULL, "all mail of %.*s is adopted",
            TEXT_ARGS(adoption_host(name)));
    adoption_say_done(a, name, "");
    if (row != NULL) /* until the next list */
        *row = a->rows[--a->row_count];
}

/* --- Signs of life ----------------------------------------------------------------------- */

static void
adoption_on_beat(struct adoption *a, struct adoption_slot *slot,
                 const struct redis_reply *reply, const char *why)
{
    (void)slot;
    (void)why;
    a->is_beating = false;
    if (reply == NULL)
        return;
    adoption_read_rows(a, reply->text);
    adoption_judge_own(a);
    adoption_judge_names(a);
}

static void
adoption_say_beat(struct adoption *a, bool is_goodbye)
{
    char number[24] = "";
    if (!is_goodbye)
        snprintf(number, sizeof(number), "%" PRIu64, ++a->beats);
    a->is_beating = true;
    adoption_ask(a, adoption_on_beat, NULL, &adoption_script_beat, a->name,
                 ADOPTION_WORDS(number));
}

static void
adoption_on_time(void *context)
{
    struct adoption *a = context;
    loop_timer_start(a->setup.loop, &a->beat, ADOPTION_BEAT_MS, adoption_on_time, a);
    comparison_note(a);
    if (copies_engine_is_ready(a->setup.engine) && !a->is_beating)
        adoption_say_beat(a, false);
    adoption_stir(a);
}

void
adoption_refused(struct adoption *a, const char *name, const char *why)
{
    struct text owner;
    char host[GROUP_HOST_MAX + 1];
    struct adoption_row *row = adoption_find(a, text_from(name));
    if (!copies_engine_is_ready(a->setup.engine) || !copies_is_fenced(why, &owner))
        return;
    if (strcmp(name, a->name) == 0) {
        (void)text_copy(host, sizeof(host), owner);
        adoption_fenced(a, host);
        return;
    }
    if (row != NULL) /* the next list says by whom */
        row->rest_until_ms = adoption_now_ms(a) + ADOPTION_BEAT_MS;
    adoption_walk_lost(a, name);
}

void
adoption_fenced(struct adoption *a, const char *owner)
{
    bool is_any = strcmp(owner, "nobody") != 0; /* else all is lost there */
    if (a->stage > ADOPTION_CLOSED)
        adoption_close(a, is_any ? owner : a->setup.who, is_any);
    loop_timer_start(a->setup.loop, &a->beat, 0, adoption_on_time, a);
}

static void
adoption_go(void *context)
{
    struct adoption *a = context;
    if (!copies_engine_is_ready(a->setup.engine) ||
        adoption_now_ms(a) < a->rest_until_ms) /* the next beat comes here, too */
        return;
    if (a->is_waiting && a->stage >= ADOPTION_COMPARING)
        adoption_release(a);
    comparison_go(a);
    adoption_walk_go(a);
    if (a->stage == ADOPTION_OPEN && a->walk.name[0] == '\0' && !adoption_is_taking(a))
        adoption_find_lost(a);
}

void
adoption_stir(struct adoption *a)
{
    loop_post(a->setup.loop, &a->task, adoption_go, a);
}

/* --- The engine ----------------------------------------------------------------------------- */

static void
adoption_on_patience(void *context)
{
    struct adoption *a = context;
    a->sent_ms = adoption_now_ms(a);
    if (a->stage == ADOPTION_AWAY && !a->is_fenced)
        manager_pause(a->setup.manager, false);
}

/* Others may have adopted our mail by now, if it is not the engine that is away, but we: then
 * nothing could be delivered meanwhile. What comes first after such a time may be the end of
 * it, and the engine is asked before more goes out. */
static void
adoption_on_doubt(void *context)
{
    struct adoption *a = context;
    if (a->stage != ADOPTION_AWAY)
        return;
    manager_pause(a->setup.manager, true);
    loop_timer_start(a->setup.loop, &a->patience, ADOPTION_DOUBT_MS,
                     adoption_on_patience, a);
}

static void
adoption_on_sent(void *context, const struct event *event)
{
    struct adoption *a = context;
    int64_t now_ms = adoption_now_ms(a), gap_ms = now_ms - a->sent_ms;
    (void)event;
    a->sent_ms = now_ms;
    if (a->stage == ADOPTION_AWAY && a->away_ms > 0 && a->adopt_after_ms > 0 &&
        now_ms - a->away_ms >= a->adopt_after_ms && gap_ms >= ADOPTION_SILENT_MS)
        loop_post(a->setup.loop, &a->doubt, adoption_on_doubt, a);
}

static void
adoption_on_ready(void *context)
{
    struct adoption *a = context;
    a->away_ms = a->rest_until_ms = 0;
    a->is_beating = a->is_claiming = false;
    adoption_take_again(a);
    loop_timer_start(a->setup.loop, &a->beat, 0, adoption_on_time, a);
}

/* Mail that is here goes on, unless another host has it. */
static void
adoption_on_lost(void *context)
{
    struct adoption *a = context;
    comparison_stop(a);
    a->is_waiting = false;
    a->stage = ADOPTION_AWAY;
    if (!a->is_fenced && !heap_has(&a->patience.node))
        manager_pause(a->setup.manager, false);
    if (a->away_ms == 0)
        a->away_ms = a->sent_ms = adoption_now_ms(a);
}

bool
adoption_is_here(const struct adoption *a, struct id id)
{
    struct manager *m = a->setup.manager;
    return sched_find(manager_sched(m), id).place != SCHED_UNKNOWN ||
           manager_active(m, id) != NULL || !queue_lacks(manager_queue(m), id);
}

struct adoption *
adoption_new(const struct adoption_setup *setup)
{
    struct adoption *a = memory_new(sizeof(*a));
    a->setup = *setup;
    a->adopt_after_ms = setup->settings->adopt_after_ms;
    a->start_ms = adoption_now_ms(a);
    copies_name(setup->settings->host, setup->identity, a->name);
    comparison_read_bound(a);
    take_serve(setup->take, &a->gifts);
    for (size_t i = 0; i < ADOPTION_SLOTS; i++)
        a->slots[i].adoption = a;
    snprintf(a->why, sizeof(a->why), "it is not known yet whose its copies are");
    a->client = (struct copies_client){
        .ready = adoption_on_ready, .lost = adoption_on_lost, .context = a};
    manager_pause(setup->manager, true);
    loop_timer_start(setup->loop, &a->patience, ADOPTION_PATIENCE_MS,
                     adoption_on_patience, a);
    loop_timer_start(setup->loop, &a->beat, ADOPTION_BEAT_MS, adoption_on_time, a);
    event_read(setup->events, EVENT_BIT(EVENT_DELIVERED) | EVENT_BIT(EVENT_GIVEN),
               adoption_on_sent, a);
    copies_engine_join(setup->engine, &a->client);
    return a;
}

void
adoption_reload(struct adoption *a, int64_t adopt_after_ms)
{
    a->adopt_after_ms = adopt_after_ms;
}

void
adoption_free(struct adoption **adoption)
{
    struct adoption *a = *adoption;
    if (a == NULL)
        return;
    *adoption = NULL;
    comparison_note(a);
    comparison_note(a); /* at the first it is settled */
    if (copies_engine_is_ready(a->setup.engine) && a->ask_count < ADOPTION_ASKS_MAX)
        adoption_say_beat(a, true);
    copies_engine_leave(a->setup.engine, &a->client);
    comparison_stop(a);
    for (size_t i = 0; i < ADOPTION_SLOTS; i++) {
        struct adoption_slot *slot = &a->slots[i];
        if (slot->step == SLOT_STORING)
            a->gifts.take_ignore(a->gifts.context, slot);
        buffer_free(&slot->form);
    }
    loop_timer_stop(a->setup.loop, &a->beat);
    loop_timer_stop(a->setup.loop, &a->patience);
    loop_unpost(a->setup.loop, &a->task);
    loop_unpost(a->setup.loop, &a->doubt);
    event_read(a->setup.events, 0, adoption_on_sent, a);
    free(a->walk.entries);
    free(a->rows);
    free(a);
}

/* Its copies, or those that it had begun to take. */
static bool
adoption_is_of(const struct adoption_row *row, struct text host)
{
    return text_equal_nocase(adoption_host(row->name), host) ||
           text_equal_nocase(adoption_host(row->owner), host);
}

bool
adoption_order(struct adoption *a, struct text host, char why[ADOPTION_WHY_MAX])
{
    bool is_any = false;
    why[0] = '\0';
    if (a->stage == ADOPTION_AWAY)
        snprintf(why, ADOPTION_WHY_MAX, "the server of copies does not answer");
    for (size_t i = 0; i < a->row_count && why[0] == '\0'; i++) {
        struct adoption_row *row = &a->rows[i];
        if (!adoption_is_of(row, host) || strcmp(row->name, a->name) == 0)
            continue;
        struct text owner = adoption_host(row->owner);
        if (row->beat[0] != '-' && !adoption_is_silent(a, row, ADOPTION_SILENT_MS) &&
            !adoption_is_own_host(a, row->owner))
            snprintf(why, ADOPTION_WHY_MAX,
                     "%.*s lives: it has said so in the last %d s", TEXT_ARGS(owner),
                     ADOPTION_SILENT_MS / 1000);
        row->is_ordered = is_any = true;
    }
    if (why[0] == '\0' && !is_any)
        snprintf(why, ADOPTION_WHY_MAX, "there are no copies of mail of %.*s",
                 TEXT_ARGS(host));
    for (size_t i = 0; i < a->row_count && why[0] != '\0'; i++)
        if (adoption_is_of(&a->rows[i], host))
            a->rows[i].is_ordered = false;
    adoption_stir(a);
    return why[0] == '\0';
}

struct adoption_state
adoption_state(const struct adoption *a)
{
    struct adoption_state s = a->state;
    for (size_t i = 0; i < a->row_count; i++)
        s.unreadable += a->rows[i].unreadable;
    s.unreadable_at = a->unreadable_at;
    s.is_ours = a->stage > ADOPTION_CLOSED;
    s.why = s.is_ours ? "" : a->why;
    s.is_comparing = a->stage > ADOPTION_CLOSED && a->stage < ADOPTION_OPEN;
    s.host = a->walk.name[0] != '\0' && strcmp(a->walk.name, a->name) != 0
                 ? a->walk.name
                 : "";
    return s;
}
