/* Writes the letter and puts it into the spool. */
#include "admin/setup/test_send.h"

#include "admin/control/test_message.h"
#include "admin/sendmail/sendmail.h"
#include "admin/sendmail/submission.h"
#include "admin/sendmail/verify.h"
#include "admin/settings/complaint.h"
#include "base/memory.h"
#include "base/sandbox/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

enum { TEST_ERROR_MAX = 1024 };

static const char test_program[] = "petrel test";

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
    (void)verify_addresses(1, address, o);
    free(address[0]);
}

int
test_send(struct test_letter *letter, struct loop *loop, const struct options *o)
{
    struct envelope *e = envelope_new();
    struct recipients to = {.envelope = e, .hostname = o->hostname};
    struct buffer message;
    buffer_init(&message, TEST_MESSAGE_MAX);
    int code = test_set_recipient(e, letter->to, o->hostname);
    if (code == 0)
        code = test_set_sender(e, letter->from, o->hostname);
    if (code == 0 && !test_message_write(&message, o->hostname, e->sender,
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
