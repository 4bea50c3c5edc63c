/* Sends a message, prints its events, and explains them. */
#include "admin/setup/test_command.h"

#include "admin/command/command.h"
#include "admin/view/trace_print.h"
#include "admin/view/control_client.h"
#include "base/json_field.h"
#include "admin/view/status.h"
#include "admin/answer/trial.h"
#include "admin/history/life.h"
#include "admin/sendmail/sendmail.h"
#include "admin/sendmail/submission.h"
#include "admin/settings/complaint.h"
#include "base/memory.h"
#include "base/sandbox/identity.h"
#include "base/settings/settings.h"
#include "queue/spool/spool_owner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    TEST_FOR_MS = 60 * 1000,
    TEST_POLL_MS = 200,
    TEST_REASON_MAX = 512,
    TEST_ERROR_MAX = 1024,
    TEST_DAY_MS = 24 * 3600 * 1000
};

static const char test_program[] = "petrel test";

/* How a following ended. */
enum test_end {
    TEST_ENDED,  /* nothing is left of the message */
    TEST_WAITS,  /* the time is over */
    TEST_HELD,   /* nothing will happen by itself */
    TEST_UNKNOWN /* it has gone, and no history is kept */
};

struct test_run {
    const struct options *options;
    struct loop *loop;
    struct test_letter letter;
    int64_t for_ms, end_ms; /* monotonic */
    char day[FORMAT_TIME_MAX];
    int64_t since_ms;
    json_t *delivered; /* events */
    size_t failed;
    bool removed, held;
};

/* --- Arguments -------------------------------------------------------------------- */

static int
test_usage(void)
{
    fputs("usage: petrel test [-v] ADDRESS [--from ADDRESS] [--for TIME]\n", stderr);
    return EX_USAGE;
}

static bool
test_take_flag(struct test_run *r, char **arguments, int *at, int count)
{
    const char *name = arguments[*at];
    if (strcmp(name, "-v") == 0)
        return r->letter.shows = true;
    if (*at + 1 == count)
        return false;
    const char *value = arguments[++*at];
    if (strcmp(name, "--from") == 0) {
        r->letter.from = value;
        return true;
    }
    return strcmp(name, "--for") == 0 &&
           settings_parse_duration(text_from(value), &r->for_ms) &&
           r->for_ms <= TEST_DAY_MS;
}

static bool
test_take_arguments(struct test_run *r, int count, char **arguments)
{
    for (int i = 0; i < count; i++) {
        if (arguments[i][0] == '-') {
            if (!test_take_flag(r, arguments, &i, count))
                return false;
        } else if (r->letter.to != NULL) {
            return false;
        } else {
            r->letter.to = arguments[i];
        }
    }
    return r->letter.to != NULL;
}

/* --- The letter ------------------------------------------------------------------- */

static int
test_set_sender(struct envelope *e, const char *from, const char *hostname)
{
    struct buffer normal;
    char user[IDENTITY_NAME_MAX];
    int code = 0;
    identity_name(user);
    buffer_init(&normal, RECIPIENTS_ADDRESS_MAX);
    if (from != NULL && text_equal(text_from(from), TEXT("<>")))
        from = "";
    if (from == NULL || from[0] != '\0') {
        if (recipients_qualify(text_from(from != NULL ? from : user), hostname,
                               &normal))
            e->sender = envelope_text(e, buffer_text(&normal));
        else
            code = complaint_say(test_program, EX_DATAERR,
                                 "the sender is not a mail address; write --from "
                                 "NAME@DOMAIN",
                                 from);
    }
    buffer_free(&normal);
    return code;
}

/* One address: a list would have several fates. */
static int
test_set_recipient(struct envelope *e, const char *to, const char *hostname)
{
    struct buffer normal;
    int code = 0;
    buffer_init(&normal, RECIPIENTS_ADDRESS_MAX);
    if (to[0] == '\0' || !recipients_qualify(text_from(to), hostname, &normal) ||
        !envelope_add(e, buffer_text(&normal), NOTIFY_DEFAULT, TEXT("")))
        code = complaint_say(test_program, EX_DATAERR,
                             "this is not one mail address; write NAME@DOMAIN", to);
    buffer_free(&normal);
    return code;
}

static int
test_submit(struct test_letter *letter, struct recipients *to, struct text message,
            struct loop *loop, const struct options *o)
{
    char error[TEST_ERROR_MAX];
    struct queue *queue;
    struct queue_settings queue_settings = o->manager.queue;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    int code = queue_open_injector(&queue, log, &queue_settings, error, sizeof(error));
    if (code == 0) {
        struct submission_settings settings = {.hostname = o->hostname,
                                               .message_size_limit =
                                                   o->message_size_limit,
                                               .uid = (unsigned)getuid()};
        struct submission *s = submission_new(&settings, loop, queue, to);
        (void)submission_add(s, message);
        code = submission_finish(s, letter->id, error, sizeof(error));
        submission_free(&s);
        queue_close(&queue);
    }
    log_free(&log);
    return code == 0 ? 0 : complaint_say(test_program, code, error, "");
}

static void
test_show(const struct test_letter *letter, struct text message,
          const struct options *o)
{
    char *address[] = {memory_string(letter->to)};
    fwrite(message.at, 1, message.length, stdout);
    puts("");
    (void)fflush(stdout);
    (void)sendmail_verify(1, address, o);
    free(address[0]);
}

int
test_send(struct test_letter *letter, struct loop *loop, const struct options *o)
{
    struct envelope *e = envelope_new();
    struct recipients to = {.envelope = e, .hostname = o->hostname};
    struct buffer message;
    buffer_init(&message, TRIAL_MESSAGE_MAX);
    int code = test_set_recipient(e, letter->to, o->hostname);
    if (code == 0)
        code = test_set_sender(e, letter->from, o->hostname);
    if (code == 0 && !trial_write_message(&message, o->hostname, e->sender,
                                          e->recipients[0].address, loop_now_ms(loop)))
        code = complaint_say(test_program, EX_DATAERR,
                             "the addresses are too long; use shorter ones", "");
    if (code == 0 && letter->shows)
        test_show(letter, buffer_text(&message), o);
    if (code == 0) {
        sendmail_give_spool(o);
        code = test_submit(letter, &to, buffer_text(&message), loop, o);
    }
    recipients_free(&to);
    buffer_free(&message);
    return code;
}

/* --- Following -------------------------------------------------------------------- */

static bool
test_is_over(struct test_run *r)
{
    return loop_monotonic_ms(r->loop) >= r->end_ms;
}

static void
test_take_event(struct test_run *r, json_t *event)
{
    const char *type = json_field_string(event, "type");
    if (r->since_ms == 0)
        r->since_ms = json_field_number(event, "time_ms");
    trace_print_next(event, r->since_ms, r->day, stdout);
    (void)fflush(stdout);
    if (strcmp(type, "delivered") == 0)
        json_array_append(r->delivered, event);
    else if (strcmp(type, "bounced") == 0 || strcmp(type, "expired") == 0 ||
             strcmp(type, "returned") == 0)
        r->failed++;
    r->removed = r->removed || strcmp(type, "removed") == 0;
    r->held = strcmp(type, "held") == 0 || (r->held && strcmp(type, "released") != 0);
}

/* Takes the line. True: more follow. */
static bool
test_take_line(struct test_run *r, json_t *line, enum test_end *end)
{
    bool goes_on = line != NULL && json_object_get(line, "ok") == NULL;
    if (line != NULL && json_field_is_true(line, "ok"))
        *end = TEST_ENDED;
    else if (goes_on && json_field_string(line, "type")[0] != '\0')
        test_take_event(r, line);
    if (goes_on && (r->held || test_is_over(r))) {
        *end = r->held ? TEST_HELD : TEST_WAITS;
        goes_on = false;
    }
    json_decref(line);
    return goes_on;
}

/* The daemon gives signs of life each second, so that the time is watched. */
static enum test_end
test_follow(struct test_run *r, struct control_client *daemon)
{
    enum test_end end = TEST_UNKNOWN;
    json_t *line = control_client_question(
        daemon, json_pack("{s:s,s:s}", "command", "follow", "id", r->letter.id));
    while (test_take_line(r, line, &end))
        line = control_client_next(daemon);
    return end;
}

/* Without a history only the queue knows that the message is there. */
static enum test_end
test_watch(struct test_run *r, struct control_client *daemon)
{
    for (;;) {
        json_t *state = control_client_question(
            daemon, json_pack("{s:s,s:s}", "command", "state", "id", r->letter.id));
        const char *place = json_field_string(state, "place");
        bool gone = state == NULL || strcmp(place, "gone") == 0;
        json_decref(state);
        if (gone)
            return TEST_UNKNOWN;
        if (test_is_over(r))
            return TEST_WAITS;
        loop_turn(r->loop, TEST_POLL_MS);
    }
}

/* --- Explanations ----------------------------------------------------------------- */

static void
test_say_delivered(const struct test_run *r)
{
    size_t i;
    json_t *event;
    char at[FORMAT_TIME_MAX];
    json_array_foreach (r->delivered, i, event) {
        const char *relay = json_field_string(event, "relay");
        (void)format_time_local(json_field_number(event, "time_ms"), LOCAL_YEAR, at);
        printf("<%s>: ", json_field_string(event, "recipient"));
        if (strchr(relay, '[') != NULL || strncmp(relay, "unix:", 5) == 0)
            printf("handed to %s at %s; whether it reaches the inbox is up to them\n",
                   relay, at);
        else
            printf("delivered here at %s: %s\n", at, json_field_string(event, "text"));
    }
}

static int
test_say_ended(const struct test_run *r)
{
    test_say_delivered(r);
    if (r->failed == 0 && json_array_size(r->delivered) > 0)
        return 0;
    if (r->failed == 0 && r->removed)
        puts("It was removed from the queue: send it again");
    else
        puts("It failed: follow the hint above, or the reply, and run "
             "`petrel doctor`");
    return EX_UNAVAILABLE;
}

/* The last conversation with the first site that has it. */
static void
test_show_site(const struct test_run *r, const json_t *why)
{
    const json_t *hop = json_array_get(json_object_get(why, "hops"), 0);
    const char *name = json_field_string(json_object_get(hop, "site"), "site");
    if (name[0] == '\0')
        return;
    char flag[] = "--site", *arguments[] = {flag, memory_string(name)};
    (void)status_command(2, arguments, r->options);
    free(arguments[1]);
}

static int
test_say_waits(const struct test_run *r, struct control_client *daemon)
{
    printf("It still waits after %lld s:\n", (long long)(r->for_ms / 1000));
    (void)fflush(stdout);
    command_queue_waits(r->letter.id, r->options);
    (void)fflush(stdout);
    if (r->letter.shows && daemon != NULL) {
        json_t *why = control_client_question(
            daemon, json_pack("{s:s,s:s}", "command", "why", "id", r->letter.id));
        test_show_site(r, why);
        json_decref(why);
    }
    printf(
        "Run `petrel trace -f %s` to follow it, `petrel queue rm %s` to give it up\n",
        r->letter.id, r->letter.id);
    return EX_TEMPFAIL;
}

static int
test_say(const struct test_run *r, enum test_end end, struct control_client *daemon)
{
    switch (end) {
    case TEST_ENDED:
        return test_say_ended(r);
    case TEST_HELD:
        printf("It is held: say in `routes` where mail goes (`petrel init --force` "
               "does), then "
               "run `petrel queue release %s`\n",
               r->letter.id);
        return EX_TEMPFAIL;
    case TEST_WAITS:
        return test_say_waits(r, daemon);
    case TEST_UNKNOWN:
        break;
    }
    if (r->options->history.size == 0)
        printf("It has left the queue, and history_size is 0: look for %s in the log\n",
               r->letter.id);
    else
        printf(
            "The daemon has ended, or does not answer: run `petrel trace %s` later\n",
            r->letter.id);
    return EX_TEMPFAIL;
}

/* --- The daemon ------------------------------------------------------------------- */

static int
test_no_daemon(const struct test_run *r, int reason, const char *error)
{
    struct identity owner;
    bool known = identity_find_number(&owner, spool_owner_of(r->options->spool));
    const char *user = !known ? "the daemon's user" : owner.uid != 0 ? owner.name : "";
    if (reason == EACCES) {
        fprintf(stderr,
                "petrel test: %s was sent, but only root%s%s may ask what becomes of "
                "it: run `sudo petrel trace -f %s`\n",
                r->letter.id, user[0] != '\0' ? " and " : "", user, r->letter.id);
        return EX_NOPERM;
    }
    fprintf(stderr,
            "petrel test: no daemon runs (%s); %s is safe in %s and will be sent when "
            "one starts: run `systemctl start petrel`, or `petrel run`\n",
            error, r->letter.id, r->options->spool);
    return EX_TEMPFAIL;
}

static int
test_observe(struct test_run *r)
{
    char error[TEST_REASON_MAX] = "";
    struct control_client *daemon =
        control_client_new(r->loop, r->options->control, error, sizeof(error));
    if (daemon == NULL)
        return test_no_daemon(r, errno, error);
    printf("queued as %s\n", r->letter.id);
    (void)fflush(stdout);
    r->end_ms = loop_monotonic_ms(r->loop) + r->for_ms;
    enum test_end end =
        r->options->history.size > 0 ? test_follow(r, daemon) : test_watch(r, daemon);
    control_client_free(&daemon);
    if (end == TEST_WAITS)
        daemon = control_client_new(r->loop, r->options->control, error, sizeof(error));
    int code = test_say(r, end, daemon);
    control_client_free(&daemon);
    return fflush(stdout) != 0 || ferror(stdout) ? EX_IOERR : code;
}

int
test_command(int count, char **arguments, const struct options *options)
{
    struct test_run r = {.options = options,
                         .for_ms = TEST_FOR_MS,
                         .loop = loop_new(),
                         .delivered = json_array()};
    int code = test_take_arguments(&r, count, arguments) ? 0 : test_usage();
    if (code == 0)
        code = test_send(&r.letter, r.loop, options);
    if (code == 0)
        code = test_observe(&r);
    json_decref(r.delivered);
    loop_free(&r.loop);
    return code;
}
