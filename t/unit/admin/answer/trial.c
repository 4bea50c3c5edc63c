/* Test messages of the daemon: what each client is given, when it ends, how many there are at a time. */
/* link: t/sim/clock.c */
#include "admin/answer/trial.h"

#include "base/memory.h"
#include "queue/queue_operator.h"
#include "t/sim/clock.h"
#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/tap.h"
#include "t/support/until.h"

#include <stdlib.h>
#include <string.h>

static struct world w;
static struct trials *trials;
static const char *leaving;
static struct sched_session *sessions[TRIALS_MAX];
static size_t session_count;

struct heard {
    char types[200]; /* of the lines */
    unsigned ended;
    struct trial *trial;
};

static void
on_line(void *context, json_t *object)
{
    struct heard *h = context;
    const char *type = json_string_value(json_object_get(object, "type"));
    const char *state = json_string_value(json_object_get(object, "state"));
    const char *error = json_string_value(json_object_get(object, "error"));
    size_t used = strlen(h->types);
    snprintf(h->types + used, sizeof(h->types) - used, "%s%s", used > 0 ? " " : "",
             type ? type : state ? state : error ? error : "id");
    json_decref(object);
}

static void
on_ended(void *context, json_t *end)
{
    struct heard *h = context;
    on_line(h, end);
    h->ended++;
    trial_leave(&h->trial);
}

static const char *
host(void *context)
{
    return context;
}

static const char *
leaves(void *context)
{
    (void)context;
    return leaving;
}

static struct trial_refusal
begin(struct heard *h, const char *request)
{
    struct trial_refusal refusal;
    struct answer_events events = {.context = h, .line = on_line, .ended = on_ended};
    json_t *asked = json_loads(request, 0, NULL);
    *h = (struct heard){.ended = 0};
    h->trial = trial_ask(trials, asked, &events, &refusal);
    json_decref(asked);
    return refusal;
}

TEST(fates)
{
    struct heard h, other;
    ok(begin(&h, "{\"to\":\"a@keep.test\"}").why == NULL);
    is_string(h.types, "", "nothing is said before it returns");
    ok(begin(&other, "{\"to\":\"a@none.test\",\"from\":\"\"}").why == NULL);
    until(&w, h.ended == 1 && other.ended == 1);
    is_string(h.types, "id submitted held held", "it is held");
    is_string(other.types, "id submitted bounced notified ended bounced", "each hears of its own");
}

TEST(refused)
{
    struct heard h;
    is_string(begin(&h, "{\"to\":\"a\"}").why, "to must be one mail address: NAME@DOMAIN", "no domain");
    is_string(begin(&h, "{\"to\":\"a@b.test\",\"from\":\"a\"}").why, "from must be a mail address: NAME@DOMAIN", "nor a sender");
    ok(!begin(&h, "{}").is_later);
    ok_named(h.trial == NULL, "there is none");
    leaving = "the daemon stops";
    struct trial_refusal refusal = begin(&h, "{\"to\":\"a@keep.test\"}");
    is_string(refusal.why, "the daemon stops", "not now");
    ok(refusal.is_later);
    leaving = NULL;
    ok(trial_is_known("to") && trial_is_known("from") && !trial_is_known("bcc"));
}

/* Also the one whose client has gone, until it is stored. */
TEST(many)
{
    struct heard all[TRIALS_MAX], more;
    for (int i = 0; i < TRIALS_MAX; i++)
        ok(begin(&all[i], "{\"to\":\"a@slow.test\"}").why == NULL);
    ok(begin(&more, "{\"to\":\"a@keep.test\"}").is_later);
    trial_leave(&all[0].trial);
    ok_named(begin(&more, "{\"to\":\"a@keep.test\"}").is_later, "it is being stored");
    until(&w, strcmp(all[1].types, "id submitted") == 0);
    is_string(all[0].types, "", "its client hears no more");
    ok_named(begin(&more, "{\"to\":\"a@keep.test\"}").why == NULL, "now there is space");
    until(&w, more.ended == 1);
    clock_pass(TRIAL_FOR_MS - 1);
    clock_turn(w.loop);
    is_number(all[1].ended, 0, "they wait");
    clock_pass(2);
    until(&w, all[1].ended == 1 && all[TRIALS_MAX - 1].ended == 1);
    is_string(all[1].types, "id submitted waiting", "for a minute");
}

/* The first is being stored; the second was not asked for any more. */
TEST(end)
{
    struct heard h;
    ok(begin(&h, "{\"to\":\"a@keep.test\"}").why == NULL);
    trial_leave(&h.trial);
    trial_leave(&h.trial);
    trials_free(&trials);
    ok(trials == NULL);
    trials_free(&trials);
    is_string(h.types, "", "nobody hears of it");
}

static void
never_opens(void *context, struct sched_session *session, const struct target *target, const char *domain)
{
    (void)context, (void)target, (void)domain;
    if (session_count == TRIALS_MAX)
        abort();
    sessions[session_count++] = session;
}

static const char whole[] =
    "From: <ann@a.test>\r\nTo: <bob@b.test>\r\nSubject: Test of "
    "h.test\r\nAuto-Submitted: auto-generated\r\n"
    "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n"
    "This is a test of the mail system of h.test,\r\nmade by `petrel test` at Thu, 1 "
    "Jan 1970 00:00:00 +0000.\r\n"
    "It has arrived; nothing needs to be done.\r\n";

static void
test_message(void)
{
    struct buffer out;
    char *address = memory_new(TRIAL_MESSAGE_MAX + 1), host[400];
    setenv("TZ", "UTC", 1);
    buffer_init(&out, TRIAL_MESSAGE_MAX);
    ok(trial_write_message(&out, "h.test", TEXT("ann@a.test"), TEXT("bob@b.test"), 0));
    is_text(buffer_text(&out), text_from(whole), "a message");

    buffer_clear(&out);
    ok(trial_write_message(&out, "h.test", TEXT(""), TEXT("bob@b.test"), 0));
    ok(text_starts(buffer_text(&out), TEXT("From: <>\r\nTo: <bob@b.test>\r\n")));

    /* The longest names that a setting and an address may have. */
    buffer_clear(&out);
    memset(host, 'h', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    memset(address, 'a', TRIAL_MESSAGE_MAX);
    ok(trial_write_message(&out, host, text_of(address, 320), text_of(address, 320),
                          INT64_C(253402300799000)));
    ok(memmem(out.at, out.length, host, 256) == NULL);
    buffer_clear(&out);
    ok(!trial_write_message(&out, host, text_of(address, TRIAL_MESSAGE_MAX),
                           TEXT("b@b.test"), 0));
    buffer_free(&out);
    free(address);
}

int
main(void)
{
    char folder[100], name[] = "h.test";
    folder_make(folder, sizeof(folder), "trial");
    control_world_begin(&w, folder, TEXT("keep.test hold\nslow.test smtp://127.0.0.1:9\nh.test discard\nnone.test error:5.1.1 no"));
    manager_set_channel(w.manager, TARGET_SMTP, never_opens, NULL);
    trials = trials_new(&(struct trials_setup){.loop = w.loop, .events = w.events, .manager = w.manager, .hostname = host, .leaves = leaves, .context = name});
    clock_stop();
    tap_tests("");
    for (size_t i = 0; i < session_count; i++)
        manager_session_ended(w.manager, sessions[i], &outcome_no_trouble);
    control_world_end(&w);
    folder_remove(folder);
    test_message();
    return done();
}
