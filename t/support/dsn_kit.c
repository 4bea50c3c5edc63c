/* Notifications of tests. */
#include "t/support/dsn_kit.h"

#include "base/memory.h"
#include "mime/header.h"
#include "t/support/tap.h"

const struct dsn_settings dsn_kit_settings = {.hostname = "h.test", .size_limit = 2000};
struct dsn *dsn_kit_under_way;

const struct text dsn_kit_mail = TEXT("From: Ann <ann@a.test>\r\n"
                                      "Subject: a\r\n\tfolded one\r\n"
                                      "\r\n"
                                      "The body.\r\n");

struct envelope *
dsn_kit_accept(struct kit *k, const char *sender, struct text content)
{
    static const char *const to[] = {"bob@b.test", "carol@c.test", "dan@d.test", NULL};
    struct envelope *e = queue_kit_accept(k, kit_envelope(sender, to), content);
    if (e == NULL)
        abort();
    return e;
}

void
dsn_kit_fail(struct kit *k, struct envelope *e, unsigned index, bool expired)
{
    struct failure f = {.recipient = index,
                        .expired = expired,
                        .outcome =
                            outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                                         "550 5.1.1 <%u> no such user", index)};
    snprintf(f.outcome.remote, sizeof(f.outcome.remote), "mx.b.test[192.0.2.1]:25");
    queue_settle(k->queue, e, index, &f);
}

struct dsn_settings
dsn_kit_settings_in(const struct kit *k, const struct dsn_settings *with)
{
    struct dsn_settings made = *with;
    made.queue = k->queue;
    made.loop = k->loop;
    made.events = k->events;
    return made;
}

void
dsn_kit_take(struct kit *k, struct told *t)
{
    kit_turns(k, 3);
    is_number(k->answers, t->result == DSN_BEGUN, "stored comes if promised");
    t->notice = k->stored;
    k->stored = NULL;
    if (t->notice == NULL)
        return;
    free(t->bytes);
    t->length = (size_t)t->notice->content_size;
    t->bytes = memory_new(t->length + 1);
    int content = queue_content_open(k->queue, t->notice);
    if (queue_content_read(k->queue, content, 0, t->bytes, t->length) !=
        (int64_t)t->length)
        abort();
    queue_content_close(k->queue, content);
}

struct told
dsn_kit_tell(struct kit *k, const struct envelope *e, const struct dsn_settings *with)
{
    struct told t = {.bytes = memory_string("")};
    k->answers = 0;
    k->stored = NULL;
    struct dsn_settings here = dsn_kit_settings_in(k, with);
    t.result = dsn_begin(&here, e, &dsn_kit_under_way, kit_stored, k);
    ok_named(k->answers == 0, "nothing is called back at once");
    dsn_kit_take(k, &t);
    return t;
}

void
dsn_kit_forget(struct kit *k, struct told *t, struct envelope **e)
{
    free(t->bytes);
    if (t->notice)
        queue_retire(k->queue, &t->notice);
    if (e)
        queue_retire(k->queue, e);
}

bool
told_has(const struct told *t, const char *words)
{
    return strstr(t->bytes, words) != NULL;
}

void
told_shows(const struct told *t, const char *words)
{
    char name[100];
    text_copy(name, sizeof(name), text_before(text_from(words), strcspn(words, "\r")));
    ok_named(told_has(t, words), name[0] ? name : "a recipient without more");
}

void
told_field(const struct told *t, const char *name, char *out, size_t size)
{
    struct text rest = text_of(t->bytes, t->length);
    struct header_field f;
    struct buffer value;
    buffer_init(&value, 1000);
    while (header_next(&rest, &f))
        if (text_equal_nocase(f.name, text_from(name)) &&
            !header_unfold(f.value, &value))
            abort();
    text_copy(out, size, text_trim(buffer_text(&value)));
    buffer_free(&value);
}

void
told_field_is(const struct told *t, const char *name, const char *want)
{
    char value[500];
    told_field(t, name, value, sizeof(value));
    is_string(value, want, name);
}

struct text
told_part(const struct told *t, int which)
{
    char value[500], mark[200];
    told_field(t, "Content-Type", value, sizeof(value));
    const char *start = strstr(value, "boundary=\"");
    if (start == NULL)
        return TEXT("");
    start += strlen("boundary=\"");
    snprintf(mark, sizeof(mark), "\r\n--%.*s", (int)strcspn(start, "\""), start);
    const char *at = t->bytes;
    for (int i = 0; i <= which && at; i++) {
        at = strstr(at, mark);
        at = at ? at + strlen(mark) : NULL;
    }
    const char *next = at ? strstr(at, mark) : NULL;
    return next ? text_of(at, (size_t)(next - at)) : TEXT("");
}

bool
told_is_mail(const struct told *t)
{
    struct text rest = text_of(t->bytes, t->length), line;
    while (text_cut(&rest, '\n', &line) && rest.at)
        if (line.length == 0 || line.length > 999 ||
            text_find(line, '\r') != line.length - 1)
            return false;
    return line.length == 0;
}
