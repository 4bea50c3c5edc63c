/* Signing: one operation a turn, one signature for a message and form, what is kept and
 * dropped, passes that end early, and reloads under them. */
#include "smtp/trust/signing.h"

#include "base/memory.h"
#include "t/support/dkim_kit.h"
#include "t/support/tap.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define LETTER "From: ann@a.test\r\nSubject: s\r\n\r\nhello\r\n"

struct world {
    struct loop *loop;
    struct log *log;
    struct signing *signing;
    struct envelope *e;
    int told;
};

static void
world_begin(struct world *w, struct dkim_keys *keys)
{
    *w = (struct world){.loop = loop_new()};
    w->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    w->signing = signing_new(w->loop, w->log, NULL, keys);
    w->e = envelope_new();
    w->e->id.time_ms = 1;
}

static void
world_end(struct world *w)
{
    envelope_free(&w->e);
    signing_free(&w->signing);
    loop_turn(w->loop, 0);
    log_free(&w->log);
    loop_free(&w->loop);
}

static void
on_done(void *context)
{
    struct world *w = context;
    w->told++;
}

static struct signing_pass *
pass_over(struct world *w, const char *letter, size_t piece, enum signing_form form)
{
    struct signing_pass *p =
        signing_pass_new(w->signing, w->e, TEXT("ann@sender.test"), form, TEXT(""));
    struct text rest = text_from(letter);
    for (; rest.length > 0; rest = text_after(rest, piece))
        signing_pass_add(p, text_before(rest, piece));
    return p;
}

static void
wait_told(struct world *w, int count)
{
    for (int i = 0; i < 1000 && w->told < count; i++)
        loop_turn(w->loop, 0);
    is_number(w->told, count, "told");
}

/* Signs the letter by itself; the caller frees. */
static char *
fields_of(struct world *w, const char *letter, size_t piece, enum signing_form form)
{
    struct signing_pass *p = pass_over(w, letter, piece, form);
    signing_pass_end(p, on_done, w);
    wait_told(w, w->told + 1);
    char *fields = text_string(signing_pass_result(p)->fields);
    signing_pass_free(&p);
    return fields;
}

TEST(shared)
{
    struct signing_pass *p[50];
    FIXTURE(world, w, world_begin, world_end, dkim_kit_keys("a.test", "s", 1));
    for (size_t i = 0; i < 50; i++) {
        p[i] = pass_over(&w, LETTER, 1 + i, SIGNING_PLAIN);
        signing_pass_end(p[i], on_done, &w);
        is_number(w.told, 0, "not before the call returns");
    }
    wait_told(&w, 50);
    is_number(signing_counts(w.signing).signed_count, 1, "50 hosts: one operation");
    is_number(signing_counts(w.signing).longest, 1, "one job in the line");
    for (size_t i = 0; i < 50; i++) {
        ok(text_equal(signing_pass_result(p[i])->fields,
                      signing_pass_result(p[0])->fields));
        is_text(signing_pass_result(p[i])->names, TEXT("a.test/s"), "who signed");
    }
    for (size_t i = 0; i < 50; i++)
        signing_pass_free(&p[i]);
    struct signing_pass *later =
        signing_pass_new(w.signing, w.e, TEXT("x@y.test"), SIGNING_PLAIN, TEXT(""));
    ok_named(signing_pass_has_enough(later), "a later one need not be read");
    signing_pass_free(&later);
    later = signing_pass_new(w.signing, w.e, TEXT("x@y.test"), SIGNING_7BIT, TEXT(""));
    ok_named(!signing_pass_has_enough(later), "another form must be");
    signing_pass_free(&later);
    later = signing_pass_new(w.signing, w.e, TEXT("x@y.test"), SIGNING_PLAIN,
                             TEXT("From: other@a.test\r\n"));
    ok_named(!signing_pass_has_enough(later), "so must one with a rewritten header");
    signing_pass_free(&later);
}

static size_t
used_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* A pass may wait for a slow host long after its signature is made. */
static void
note_trouble(void *context, const char *name, const char *domain, const char *why)
{
    (void)domain;
    struct buffer *said = context;
    ok(buffer_format(said, "%s: %s\n", name, why));
}

TEST(trouble)
{
    struct dkim_keys *keys = dkim_kit_keys("a.test", "s", 2);
    FIXTURE(buffer, said, buffer_init, buffer_free, 1000);
    FIXTURE(world, w, world_begin, world_end, NULL);
    signing_each_trouble(w.signing, note_trouble, &said);
    signing_reload(w.signing, keys);
    signing_each_trouble(w.signing, note_trouble, &said);
    is_number(said.length, 0, "no keys, or keys that are well");
    keys->list[0].record = DKIM_RECORD_NONE;
    signing_each_trouble(w.signing, note_trouble, &said);
    is_text(buffer_text(&said),
            TEXT("s._domainkey.a.test: it has no TXT record: receivers cannot verify its "
                 "signatures\n"),
            "a key without its record");
    buffer_clear(&said);
    keys->list[0].broken = true;
    signing_each_trouble(w.signing, note_trouble, &said);
    is_text(buffer_text(&said),
            TEXT("s._domainkey.a.test: the key cannot sign, and mail waits\n"),
            "a key that cannot sign");
}

TEST(memory)
{
    enum { PASSES = 20, LONG = 500 * 1024, KEPT = 8 * 1024 };
    struct signing_pass *p[PASSES];
    char *letter = memory_new(LONG + 1);
    FIXTURE(world, w, world_begin, world_end, dkim_kit_keys("a.test", "s", 1));
    for (int odd = 0; odd < 2; odd++) {
        /* A long body; a header that is too long. */
        memset(letter, 'x', LONG);
        memcpy(letter, LETTER, odd ? 4 : strlen(LETTER));
        size_t before = used_bytes();
        for (size_t i = 0; i < PASSES; i++) {
            w.e->id.time_ms = (uint64_t)(1 + i + (odd ? PASSES : 0));
            p[i] = pass_over(&w, letter, 32 * 1024, SIGNING_PLAIN);
            signing_pass_end(p[i], on_done, &w);
        }
        wait_told(&w, (odd + 1) * PASSES);
        ok_named(used_bytes() <= before + (size_t)(PASSES * KEPT),
                 odd ? "nor does a header that is too long"
                     : "a content leaves nothing");
        for (size_t i = 0; i < PASSES; i++)
            signing_pass_free(&p[i]);
    }
    free(letter);
}

/* Another client: it is answered in each turn. */
struct other {
    struct loop *loop;
    struct loop_task task;
    uint64_t answers;
};

static void
on_other(void *context)
{
    struct other *o = context;
    o->answers++;
    loop_post(o->loop, &o->task, on_other, o);
}

/* 50 sessions want a signature at a time: how many operations one turn has had at most;
 * *turns: how many it took. */
static uint64_t
most_of(struct dkim_keys *keys, uint64_t *turns, const char *name)
{
    struct world w;
    struct signing_pass *p[50];
    uint64_t most = 0;
    world_begin(&w, keys);
    struct other other = {.loop = w.loop};
    loop_post(w.loop, &other.task, on_other, &other);
    for (size_t i = 0; i < 50; i++) {
        w.e->id.time_ms = i + 1;
        p[i] = pass_over(&w, LETTER, 7, SIGNING_PLAIN);
        signing_pass_end(p[i], on_done, &w);
    }
    is_number(signing_counts(w.signing).longest, 50, name);
    for (*turns = 0; *turns < 200 && w.told < 50; ++*turns) {
        uint64_t before = signing_counts(w.signing).signed_count,
                 told = (uint64_t)w.told;
        loop_turn(w.loop, 0);
        uint64_t made = signing_counts(w.signing).signed_count - before;
        most = made > most ? made : most;
        for (uint64_t i = told; i < (uint64_t)w.told; i++)
            ok(signing_pass_result(p[i])->names.length > 0); /* in their order */
    }
    is_number(w.told, 50, "  all are told");
    is_number((long)other.answers, (long)*turns,
              "  another client is answered in each turn");
    for (size_t i = 0; i < 50; i++)
        signing_pass_free(&p[i]);
    loop_unpost(w.loop, &other.task);
    world_end(&w);
    return most;
}

TEST(line)
{
    uint64_t turns;
    is_number((long)most_of(dkim_kit_keys("a.test", "s", 1), &turns, "50 by RSA"), 1,
              "  no turn has two operations");
    is_number((long)turns, 51, "  and none is idle");
    struct dkim_keys *keys = dkim_kit_ed25519("a.test", "s", false);
    if (keys == NULL)
        return;
    is_number((long)most_of(keys, &turns, "50 by Ed25519"), 32, "  32 in a turn");
    is_number((long)turns, 3, "  and the rest in the next one");
    is_number(
        (long)most_of(dkim_kit_ed25519("a.test", "s", true), &turns, "50 by both"), 2,
        "  one of each in a turn");
    is_number((long)turns, 51, "  which takes as long as RSA alone");
}

/* A turn signs the jobs that it prepares; without an event of its own the loop goes
 * on. */
TEST(same_turn)
{
    FIXTURE(world, w, world_begin, world_end, dkim_kit_keys("a.test", "s", 1));
    struct signing_pass *p = pass_over(&w, LETTER, 7, SIGNING_PLAIN);
    signing_pass_end(p, on_done, &w);
    loop_turn(w.loop, 60 * 1000);
    is_number(signing_counts(w.signing).signed_count, 1,
              "signed at the end of the turn");
    is_number(w.told, 0, "but not told within it");
    loop_turn(w.loop, 60 * 1000);
    is_number(w.told, 1, "told in the next one");
    signing_pass_free(&p);
}

/* Changes of SMTP are made before: the digest is that of the bytes that arrive. */
TEST(normalized)
{
    FIXTURE(world, w, world_begin, world_end, dkim_kit_keys("a.test", "s", 1));
    char *a = fields_of(&w, LETTER, 3, SIGNING_PLAIN);
    signing_reload(w.signing, dkim_kit_keys("a.test", "s", 1));
    w.e->id.time_ms = 2;
    char *b = fields_of(&w, "From: ann@a.test\nSubject: s\n\nhello", 3, SIGNING_PLAIN);
    const char *bh = strstr(a, "bh="), *other = strstr(b, "bh=");
    ok_named(bh != NULL && other != NULL && strncmp(bh, other, 47) == 0,
             "bare LF and a missing last line end");
    free(a);
    free(b);
    w.e->id.time_ms = 3;
    a = fields_of(&w, "From: ann@a.test\nSubject: s\n\nhello", 3, SIGNING_RAW);
    is_string(a, "", "a raw header with bare LF is not signed");
    free(a);
}

TEST(unsigned)
{
    static const char *const letters[] = {
        "From: a@other.test\r\n\r\nx\r\n",
        "Subject: s\r\n\r\nx\r\n",
        "From: a@a.test\r\nFrom: a@a.test\r\n\r\nx\r\n",
        "From: a@a.test\r\nnonsense\r\n\r\nx\r\n",
        "",
        "\r\n",
        "x"};
    struct world w;
    world_begin(&w, dkim_kit_keys("a.test", "s", 1));
    for (size_t i = 0; i < sizeof(letters) / sizeof(*letters); i++) {
        w.e->id.time_ms = i + 1;
        char *fields = fields_of(&w, letters[i], 2, SIGNING_PLAIN);
        is_string(fields, "", letters[i]);
        free(fields);
    }
    is_number(signing_counts(w.signing).signed_count, 0, "nothing is signed");
    world_end(&w);
    world_begin(&w, dkim_kit_keys("sender.test", "s", 1));
    char *fields = fields_of(&w, "From: a@list.test\r\n\r\nx\r\n", 2, SIGNING_PLAIN);
    ok_named(strstr(fields, "d=sender.test;") != NULL, "the sender's domain signs");
    free(fields);
    world_end(&w);
}

/* Headers too long for a signature, and content beyond one piece. */
TEST(large)
{
    FIXTURE(world, w, world_begin, world_end, dkim_kit_keys("a.test", "s", 1));
    FIXTURE(buffer, letter, buffer_init, buffer_free, 4 * 1024 * 1024);
    ok(buffer_add(&letter, TEXT("From: a@a.test\r\nX: ")));
    while (letter.length < 300 * 1024)
        ok(buffer_add(&letter, TEXT("0123456789012345678901234567890\r\n ")));
    ok(buffer_add(&letter, TEXT("\r\n\r\nx\r\n")) && buffer_add_byte(&letter, '\0'));
    char *fields = fields_of(&w, letter.at, 30000, SIGNING_PLAIN);
    is_string(fields, "", "a header of more than 256 KiB");
    free(fields);
    buffer_clear(&letter);
    ok(buffer_add(&letter, TEXT("From: a@a.test\r\n\r\n")));
    while (letter.length < 1024 * 1024)
        ok(buffer_add(&letter, TEXT(".0123456789012345678901234567890\r\n")));
    ok(buffer_add_byte(&letter, '\0'));
    w.e->id.time_ms = 2;
    fields = fields_of(&w, letter.at, SIZE_MAX, SIGNING_PLAIN);
    ok_named(strncmp(fields, "DKIM-Signature:", 15) == 0, "a large body in one piece");
    free(fields);
}

/* At every step of a pass the keys go, or the pass does. */
TEST(reload)
{
    for (int step = 0; step < 6; step++) {
        FIXTURE(world, w, world_begin, world_end, dkim_kit_keys("a.test", "old", 2));
        struct signing_pass *p =
            signing_pass_new(w.signing, w.e, TEXT("x@y.test"), SIGNING_PLAIN, TEXT(""));
        if (step == 0)
            signing_reload(w.signing, NULL);
        signing_pass_add(p, TEXT(LETTER));
        if (step == 1)
            signing_reload(w.signing, NULL);
        signing_pass_end(p, on_done, &w);
        if (step == 2)
            signing_reload(w.signing, NULL);
        loop_turn(w.loop, 0);
        if (step == 3)
            signing_reload(w.signing, dkim_kit_keys("a.test", "new", 1));
        if (step == 4)
            signing_pass_free(&p);
        else
            wait_told(&w, 1);
        if (step < 4)
            is_text(signing_pass_result(p)->names,
                    step == 0 ? TEXT("") : TEXT("a.test/old,a.test/old"),
                    "signed by the keys of its beginning");
        if (p != NULL)
            signing_pass_free(&p);
    }
}

/* More messages than are kept; and a pass whose job is dropped while it reads. */
TEST(kept)
{
    FIXTURE(world, w, world_begin, world_end, dkim_kit_keys("other.test", "s", 1));
    for (uint64_t i = 1; i <= SIGNING_KEPT_MAX + 1; i++) {
        w.e->id.time_ms = i;
        struct signing_pass *p = pass_over(&w, LETTER, 50, SIGNING_PLAIN);
        signing_pass_end(p, on_done, &w);
        signing_pass_free(&p);
    }
    w.e->id.time_ms = 1;
    struct signing_pass *first =
        signing_pass_new(w.signing, w.e, TEXT("x@y.test"), SIGNING_PLAIN, TEXT(""));
    ok_named(!signing_pass_has_enough(first), "the oldest is dropped");
    w.e->id.time_ms = 2;
    struct signing_pass *second =
        signing_pass_new(w.signing, w.e, TEXT("x@y.test"), SIGNING_PLAIN, TEXT(""));
    ok_named(signing_pass_has_enough(second), "the next is kept");
    signing_reload(w.signing, NULL);
    signing_pass_add(second, TEXT("ignored"));
    signing_pass_end(second, on_done, &w);
    wait_told(&w, 1);
    signing_pass_free(&first);
    signing_pass_free(&second);
}
