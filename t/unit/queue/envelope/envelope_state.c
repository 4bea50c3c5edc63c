/* The state that a message brings from another host: in the form that it is given in, in
 * todo/ and in info/. */
#include "queue/envelope/envelope.h"

#include "queue/spool/injected.h"
#include "t/support/tap.h"
#include "t/support/envelope_damage.h"

enum { FORM_MAX = 1024 * 1024 };

static struct envelope *
sample(void)
{
    struct envelope *e = envelope_new();
    e->id = id_make(1750000000000, (const unsigned char[]){1, 2, 3, 4, 5});
    e->birth_ms = 1749999999123;
    e->sender = envelope_text(e, TEXT("me@out.test"));
    for (unsigned i = 0; i < 5; i++)
        if (!envelope_add(e, TEXT("you@far.test"), NOTIFY_DEFAULT, TEXT("")))
            abort();
    return e;
}

/* It was deferred three times; one recipient has it, one has failed, one has failed and its
 * sender knows. */
static struct envelope *
delivered(void)
{
    struct envelope *e = sample();
    for (unsigned i = 1; i < 4; i++)
        e->recipients[i].done = true;
    e->delivery.done = 3;
    envelope_fail(
        e, &(struct failure){.recipient = 2,
                             .expired = true,
                             .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550,
                                                     "5.1.1", "no such user")});
    envelope_fail(
        e, &(struct failure){.recipient = 3,
                             .notified = true,
                             .relayed = true,
                             .outcome = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250,
                                                     "2.0.0", "taken")});
    e->delivery.due_ms = 1750000060000;
    e->delivery.attempts = 3;
    e->delivery.released = true;
    e->delivery.warned_s = 14400;
    e->moved = (struct moved_state){.came = TEXT("relay1/01JD3ZK5Q8-9F3K2C7A"),
                                    .first = TEXT("01JD3ZK5Q7-9F3K2C7A"),
                                    .given = 2,
                                    .hold = TEXT("1750000000 held by the operator\n"),
                                    .reason = TEXT("450 greylisted: come later")};
    return e;
}

static struct buffer
given_form(const struct envelope *e)
{
    struct buffer form;
    buffer_init(&form, FORM_MAX);
    ok(envelope_write_given(e, &form));
    return form;
}

static struct envelope *
read_again(const struct buffer *form, struct id id)
{
    struct envelope *again = envelope_new();
    ok(envelope_read_todo(buffer_text(form), id, again) == PROGRESS_DONE);
    return again;
}

static void
check_moved(const struct envelope *e, const char *hold)
{
    is_text(e->moved.came, TEXT("relay1/01JD3ZK5Q8-9F3K2C7A"), "from where it came");
    is_text(e->moved.first, TEXT("01JD3ZK5Q7-9F3K2C7A"), "its first name");
    is_number(e->moved.given, 2, "how often it has moved");
    is_text(e->moved.hold, text_from(hold), "why it is held");
}

TEST(given)
{
    struct envelope *e = delivered();
    struct buffer form = given_form(e);
    struct envelope *again = read_again(&form, e->id);
    const struct delivery_state *d = &again->delivery;
    check_moved(again, "1750000000 held by the operator\n");
    is_text(again->moved.reason, TEXT("450 greylisted: come later"), "why it waits");
    ok(!again->recipients[0].done && again->recipients[1].done &&
       again->recipients[2].done && again->recipients[3].done &&
       !again->recipients[4].done);
    is_number(d->done, 3, "marks");
    is_number(d->failure_count, 2, "failures");
    ok(d->failures[0].expired && !d->failures[0].notified && !d->failures[0].relayed);
    ok(d->failures[1].notified && d->failures[1].relayed && !d->failures[1].expired);
    is_text(text_from(d->failures[0].outcome.text), TEXT("no such user"), "its text");
    ok(d->due_ms == 1750000060000 && d->attempts == 3 && d->released &&
       d->warned_s == 14400);
    struct buffer twice = given_form(again);
    ok_named(text_equal(buffer_text(&form), buffer_text(&twice)),
             "written as it was read");
    buffer_free(&twice);
    buffer_free(&form);
    envelope_free(&again);
    envelope_free(&e);
}

TEST(damage)
{
    struct envelope *e = delivered();
    struct buffer form = given_form(e);
    envelope_damage_check(&form, e->id);
    buffer_free(&form);
    envelope_free(&e);
}

/* Mail that was born here and has not been tried: three records less, and not a byte more
 * in the ordinary form. */
TEST(ordinary)
{
    struct envelope *e = sample();
    struct buffer form;
    buffer_init(&form, FORM_MAX);
    envelope_write_todo(e, &form);
    ok(memmem(form.at, form.length, "\nH", 2) == NULL &&
       memmem(form.at, form.length, "\nL", 2) == NULL);
    buffer_free(&form);
    form = given_form(e);
    struct envelope *again = read_again(&form, e->id);
    ok(again->moved.given == 0 && again->moved.came.length == 0 &&
       again->moved.hold.length == 0 && again->moved.reason.length == 0 && again->delivery.done == 0);
    envelope_free(&again);
    buffer_free(&form);
    envelope_free(&e);
}

TEST(info)
{
    struct envelope *e = delivered(), *again = envelope_new();
    struct buffer form;
    buffer_init(&form, FORM_MAX);
    envelope_write_info(e, 0, &form);
    ok(envelope_read_info(buffer_text(&form), e->id, again) == PROGRESS_DONE);
    check_moved(again, "");
    buffer_free(&form);
    envelope_free(&again);
    envelope_free(&e);
}

/* Nobody but a host of the group says so. */
TEST(injected)
{
    struct envelope *e = delivered();
    struct buffer form = given_form(e);
    struct envelope *again = read_again(&form, e->id);
    ok(injected_take(again, 1000, 1750000000000) == NULL);
    ok(again->moved.given == 0 && again->moved.came.length == 0 &&
       again->moved.first.length == 0 && again->moved.hold.length == 0);
    ok(again->delivery.done == 0 && again->delivery.failure_count == 0 &&
       again->delivery.failures == NULL && again->delivery.due_ms == 0 &&
       again->delivery.attempts == 0 && !again->delivery.released &&
       again->delivery.warned_s == 0);
    for (unsigned i = 0; i < again->count; i++)
        ok(!again->recipients[i].done &&
           again->recipients[i].refused == RECIPIENT_GOOD);
    buffer_free(&form);
    envelope_free(&again);
    envelope_free(&e);
}

TEST(bounds)
{
    static const char *const bad[] = {"relay1", "/01JD3ZK5Q8-9F3K2C7A", "relay1/01JD",
                                      "relay1/"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct envelope *e = delivered(), *again = envelope_new();
        e->moved.came = text_from(bad[i]);
        struct buffer form = given_form(e);
        ok(envelope_read_todo(buffer_text(&form), e->id, again) == PROGRESS_BAD);
        buffer_free(&form);
        envelope_free(&again);
        envelope_free(&e);
    }
}

/* Failures beyond eight megabytes stay where they are. */
TEST(too_long)
{
    struct envelope *e = sample();
    struct failure f = {.outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550,
                                                "5.1.1", "%0400d", 1)};
    while (e->count < 30000)
        if (!envelope_add(e, TEXT("you@far.test"), NOTIFY_DEFAULT, TEXT("")))
            abort();
    for (unsigned i = 0; i < e->count; i++) {
        f.recipient = i;
        e->recipients[i].done = true;
        e->delivery.done++;
        envelope_fail(e, &f);
    }
    struct buffer form;
    buffer_init(&form, 64 * FORM_MAX);
    ok(!envelope_write_given(e, &form));
    buffer_free(&form);
    envelope_free(&e);
}
