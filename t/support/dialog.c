/* Reads a dialogue of t/dialog/ (its README says how they are written). */
#include "t/support/dialog.h"

void
dialog_must(bool good, const char *what)
{
    if (!good) {
        printf("Bail out! %s\n", what);
        exit(1);
    }
}

static unsigned
dialog_hex(char c)
{
    const char *digits = "0123456789abcdef", *at = strchr(digits, c);
    dialog_must(c != '\0' && at != NULL, "bad \\x escape");
    return (unsigned)(at - digits);
}

/* \r \n \t \\ \xNN, and \{N text} for N copies of text (without escapes). */
static void
dialog_unescape(struct text t, struct buffer *out)
{
    while (t.length > 0) {
        char c = t.at[0];
        t = text_after(t, 1);
        if (c == '\\' && t.length > 0) {
            c = t.at[0];
            t = text_after(t, 1);
            if (c == 'x' && t.length >= 2) {
                c = (char)(dialog_hex(t.at[0]) * 16 + dialog_hex(t.at[1]));
                t = text_after(t, 2);
            } else if (c == '{') {
                struct text inside, number;
                uint64_t times = 0;
                dialog_must(text_cut(&t, '}', &inside) &&
                                text_cut(&inside, ' ', &number) &&
                                text_number(number, 100000000, &times),
                            "bad \\{N text}");
                for (uint64_t i = 0; i < times; i++)
                    dialog_must(buffer_add(out, inside), "dialogue too large");
                continue;
            } else if (c == 'r') {
                c = '\r';
            } else if (c == 'n') {
                c = '\n';
            } else if (c == 't') {
                c = '\t';
            }
        }
        dialog_must(buffer_add_byte(out, c), "dialogue too large");
    }
}

static struct dialog_step *
dialog_add(struct dialog *d, enum dialog_kind kind)
{
    dialog_must(d->count < DIALOG_STEPS_MAX, "too many steps");
    struct dialog_step *step = &d->steps[d->count++];
    step->kind = kind;
    buffer_init(&step->bytes, DIALOG_BYTES_MAX);
    return step;
}

static void
dialog_read_option(struct dialog *d, struct text option)
{
    struct text key;
    uint64_t value = 1;
    dialog_must(text_cut(&option, '=', &key), "bad option");
    d->faked = d->faked || text_equal(key, TEXT("room"));
    if (option.at != NULL)
        dialog_must(text_number(option, INT32_MAX, &value), "bad option");
    if (text_equal(key, TEXT("lmtp")))
        d->lmtp = true;
    else if (text_equal(key, TEXT("stranger")))
        d->may_relay = false;
    else if (text_equal(key, TEXT("peer")))
        d->peer = true;
    else if (text_equal(key, TEXT("etrn")))
        d->rules.etrn = true;
    else if (text_equal(key, TEXT("priority")))
        d->rules.priority = true;
    else if (text_equal(key, TEXT("priority_of_strangers")))
        d->rules.priority_of_strangers = true;
    else if (text_equal(key, TEXT("size_limit")))
        d->rules.size_limit = (int64_t)value;
    else if (text_equal(key, TEXT("room")))
        d->space = (int64_t)value;
    else if (text_equal(key, TEXT("recipient_limit")))
        d->rules.recipient_limit = (int)value;
    else if (text_equal(key, TEXT("error_limit")))
        d->rules.error_limit = (int)value;
    else if (text_equal(key, TEXT("hop_limit")))
        d->rules.hop_limit = (int)value;
    else
        dialog_must(false, "unknown option");
}

/* "store", "refuse CODE ENHANCED text" or "full CODE ENHANCED text". */
static void
dialog_read_answer(struct dialog *d, struct text t)
{
    struct text word, code, enhanced = TEXT("");
    uint64_t number = 250;
    struct dialog_answer *answer = &d->answers[d->answer_count++];
    char text[200], triple[12];
    d->faked = true;
    dialog_must(text_word(&t, " ", &word), "bad R:");
    answer->begin = text_equal(word, TEXT("full"));
    answer->refusal =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "stored");
    if (text_equal(word, TEXT("store")))
        return;
    dialog_must(text_word(&t, " ", &code) && text_number(code, 599, &number) &&
                    text_word(&t, " ", &enhanced),
                "bad R:");
    text_copy(text, sizeof(text), text_trim(t));
    text_copy(triple, sizeof(triple), enhanced);
    answer->refusal =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, (int)number, triple, "%s", text);
}

static void
dialog_read_line(struct dialog *d, struct text line)
{
    static const struct {
        const char *tag;
        enum dialog_kind kind;
        bool escaped;
    } tags[] = {
        {"C",          DIALOG_SEND,    false},
        {"C<raw>",     DIALOG_SEND,    true },
        {"S",          DIALOG_REPLY,   false},
        {"X",          DIALOG_CLOSED,  false},
        {"E",          DIALOG_EVENT,   false},
        {"M",          DIALOG_MESSAGE, false},
        {"M<content>", DIALOG_CONTENT, true },
        {"M<has>",     DIALOG_PREFIX,  false},
        {"M<lacks>",   DIALOG_LACKS,   false},
        {"M<none>",    DIALOG_NOTHING, false},
    };
    struct text tag;
    if (line.length == 0 || line.at[0] == '#')
        return;
    dialog_must(text_cut(&line, ':', &tag), "a line without a tag");
    if (line.length > 0 && line.at[0] == ' ')
        line = text_after(line, 1);
    if (text_equal(tag, TEXT("O"))) {
        dialog_read_option(d, line);
        return;
    }
    if (text_equal(tag, TEXT("R"))) {
        dialog_read_answer(d, line);
        return;
    }
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        if (!text_equal(tag, text_from(tags[i].tag)))
            continue;
        struct dialog_step *step = dialog_add(d, tags[i].kind);
        if (tags[i].escaped)
            dialog_unescape(line, &step->bytes);
        else
            dialog_must(buffer_add(&step->bytes, line), "too large");
        if (tags[i].kind == DIALOG_SEND && !tags[i].escaped)
            dialog_must(buffer_add(&step->bytes, TEXT("\r\n")), "too large");
        d->paced = d->paced || tags[i].kind == DIALOG_EVENT;
        return;
    }
    printf("# %.*s\n", TEXT_ARGS(tag));
    dialog_must(false, "unknown tag");
}

static void
dialog_show_recipient(const struct recipient *r, struct buffer *out)
{
    dialog_must(buffer_add(out, r->address), "show");
    if (r->notify != 0)
        dialog_must(buffer_format(out, "/notify=%u", r->notify), "show");
    if (r->original.length > 0)
        dialog_must(buffer_format(out, "/orcpt=%.*s", TEXT_ARGS(r->original)), "show");
}

enum server_flush
dialog_flush(void *context, const char *node, const char *client)
{
    (void)context;
    if (client[0] == '\0' || !text_ends_nocase(text_from(node), TEXT(".example")))
        return SERVER_FLUSH_DENIED;
    if (strstr(node, "busy.example"))
        return SERVER_FLUSH_UNABLE;
    return strstr(node, "recent.example") ? SERVER_FLUSH_RECENT : SERVER_FLUSH_STARTED;
}

/* An envelope as M: has it. */
static void
dialog_show(const struct envelope *e, struct buffer *out)
{
    bool good = buffer_format(out, "%.*s >", TEXT_ARGS(e->sender));
    for (unsigned i = 0; i < e->count; i++) {
        good = buffer_add(out, i == 0 ? TEXT(" ") : TEXT(", ")) && good;
        dialog_show_recipient(&e->recipients[i], out);
    }
    good = (!e->eight_bit || buffer_add(out, TEXT(" 8bit"))) && good;
    good = (!e->binary || buffer_add(out, TEXT(" binary"))) && good;
    good = (!e->utf8 || buffer_add(out, TEXT(" utf8"))) && good;
    good = (!e->ascii_header || buffer_add(out, TEXT(" ascii"))) && good;
    if (e->priority != 0)
        good = buffer_format(out, " priority=%d", e->priority) && good;
    good = (e->ret != RETURN_FULL || buffer_add(out, TEXT(" ret=full"))) && good;
    good = (e->ret != RETURN_HEADERS || buffer_add(out, TEXT(" ret=hdrs"))) && good;
    if (e->envelope_id.length > 0)
        good = buffer_format(out, " envid=%.*s", TEXT_ARGS(e->envelope_id)) && good;
    if (e->fragment.by_peer)
        good = buffer_format(out, " xdefrag=%.*s", TEXT_ARGS(e->fragment.set_mark)) && good;
    if (e->trust.length > 0)
        good = buffer_format(out, " trust=%.*s", TEXT_ARGS(e->trust)) && good;
    dialog_must(good, "show");
}

bool
dialog_fits(const struct dialog_step *step, const struct envelope *e,
            struct text content, struct buffer *shown)
{
    struct text want = buffer_text(&step->bytes);
    buffer_clear(shown);
    if (step->kind == DIALOG_MESSAGE || step->kind == DIALOG_CONTENT) {
        if (step->kind == DIALOG_MESSAGE)
            dialog_show(e, shown);
        else
            dialog_must(buffer_add(shown, content), "show");
        return text_equal(want, buffer_text(shown));
    }
    for (size_t i = 0; i < e->prefix.length; i++) {
        char c = e->prefix.at[i];
        if (c != '\r' && c != '\n')
            dialog_must(buffer_add_byte(shown, c == '\t' ? ' ' : c), "show");
    }
    bool has = memmem(shown->at, shown->length, want.at, want.length) != NULL;
    return has == (step->kind == DIALOG_PREFIX);
}

struct dialog *
dialog_read(const char *path)
{
    static char content[256 * 1024];
    struct dialog *d = memory_new(sizeof(*d));
    struct text rest, line;
    FILE *file = fopen(path, "r");
    dialog_must(file != NULL, path);
    rest = text_of(content, fread(content, 1, sizeof(content), file));
    fclose(file);
    d->may_relay = true;
    d->rules = (struct server_rules){.hostname = "mx.example.org",
                                     .size_limit = 1000000,
                                     .recipient_limit = 100,
                                     .hop_limit = 50,
                                     .error_limit = 20};
    while (text_cut(&rest, '\n', &line))
        dialog_read_line(d, line);
    return d;
}

void
dialog_free(struct dialog *d)
{
    for (size_t i = 0; i < d->count; i++)
        buffer_free(&d->steps[i].bytes);
    free(d);
}
