/* Records that events are told from: Message-ID and tag, in todo/ID and in info/ID. */
#include "queue/envelope/envelope.h"

#include "t/support/tap.h"

static const struct id id = {.time_ms = 1750000000000, .hash = 7};

static bool
has_record(const struct buffer *form, const char *start)
{
    return memmem(form->at, form->length, start, strlen(start)) != NULL;
}

static void
check_names(struct text message_id, struct text tag, bool good)
{
    struct envelope *e = envelope_new(), *read = envelope_new(), *again = envelope_new();
    struct buffer todo, info;
    e->id = id;
    e->message_id = envelope_text(e, message_id);
    e->tag = envelope_text(e, tag);
    ok(envelope_add(e, TEXT("a@b"), 0, TEXT("")));
    buffer_init(&todo, 100000);
    buffer_init(&info, 100000);
    envelope_write_todo(e, &todo);
    envelope_write_info(e, 0, &info);
    ok((envelope_read_todo(buffer_text(&todo), id, read) == PROGRESS_DONE) == good);
    ok((envelope_read_info(buffer_text(&info), id, again) == PROGRESS_DONE) == good);
    if (good) {
        is_text(read->message_id, message_id, "the Message-ID");
        is_text(read->tag, tag, "the tag");
        is_text(again->message_id, message_id, "info has it, too");
        is_text(again->tag, tag, "and the tag");
        ok(has_record(&todo, "\nI") == (message_id.length > 0));
        ok(has_record(&todo, "\nG") == (tag.length > 0));
    }
    buffer_free(&todo);
    buffer_free(&info);
    envelope_free(&again);
    envelope_free(&read);
    envelope_free(&e);
}

int
main(void)
{
    char long_one[ENVELOPE_MESSAGE_ID_MAX + 1];
    memset(long_one, 'x', sizeof(long_one));
    struct text most = text_of(long_one, ENVELOPE_MESSAGE_ID_MAX);
    struct text tag = text_of(long_one, ENVELOPE_TAG_MAX);
    check_names(TEXT(""), TEXT(""), true);
    check_names(TEXT("<a@b>"), TEXT(""), true);
    check_names(TEXT(""), TEXT("order 17"), true);
    check_names(TEXT("\xc3\xa4 \xff"), TEXT("\tT0 "), true);
    check_names(most, tag, true);
    check_names(text_of(long_one, sizeof(long_one)), tag, false);
    check_names(most, text_of(long_one, ENVELOPE_TAG_MAX + 1), false);
    return done();
}
