/* The envelope and its forms on disk: round trips, damage, limits. */
#include "queue/envelope/envelope.h"

#include "base/crc.h"
#include "base/memory.h"
#include "t/support/tap.h"

enum { FORM_MAX = 80 * 1024 * 1024 };

static struct id
an_id(unsigned char n)
{
    return id_make(1750000000000 + n, (const unsigned char[]){n, 2, 3, 4, 5});
}

static void
add(struct envelope *e, const char *address, unsigned notify, const char *original)
{
    if (!envelope_add(e, text_from(address), notify, text_from(original)))
        ok_named(false, "a recipient is taken");
}

static struct envelope *
sample(void)
{
    struct envelope *e = envelope_new();
    e->id = an_id(7);
    e->birth_ms = 1749999999123;
    e->sender = envelope_text(e, TEXT("Sender+x@example.org"));
    e->envelope_id = envelope_text(e, TEXT("QQ314159+2B"));
    e->ret = RETURN_HEADERS;
    e->eight_bit = e->utf8 = e->double_bounce = true;
    e->prefix = envelope_text(e, TEXT("Received: from a by b;\r\n\tsome day\r\n"));
    e->content_size = 1234567;
    e->content_crc = 0xfedcba98;
    e->delivery.due_ms = 1750000012345;
    e->delivery.attempts = 3;
    add(e, "a@example.org", NOTIFY_DEFAULT, "");
    add(e, "b@example.net", NOTIFY_SUCCESS | NOTIFY_DELAY, "rfc822;b+2B@example.net");
    add(e, "c@example.com", NOTIFY_NEVER, "");
    add(e, "d@example.edu", NOTIFY_FAILURE, "");
    return e;
}

static bool
same_particulars(const struct envelope *a, const struct envelope *b)
{
    return id_compare(a->id, b->id) == 0 && a->birth_ms == b->birth_ms &&
           text_equal(a->sender, b->sender) &&
           text_equal(a->envelope_id, b->envelope_id) && a->ret == b->ret &&
           a->eight_bit == b->eight_bit && a->utf8 == b->utf8 &&
           a->binary == b->binary && a->ascii_header == b->ascii_header &&
           a->double_bounce == b->double_bounce && a->priority == b->priority &&
           text_equal(a->fragment.made_of, b->fragment.made_of) && text_equal(a->trust, b->trust) &&
           text_equal(a->message_id, b->message_id) && text_equal(a->tag, b->tag) &&
           text_equal(a->prefix, b->prefix) && a->content_size == b->content_size &&
           a->content_crc == b->content_crc;
}

static bool
same_recipients(const struct envelope *a, const struct envelope *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++) {
        const struct recipient *left = &a->recipients[i], *right = &b->recipients[i];
        if (!text_equal(left->address, right->address) ||
            !text_equal(left->original, right->original) ||
            left->notify != right->notify || left->done != right->done)
            return false;
    }
    return true;
}

/* --- Forms ----------------------------------------------------------------------- */

struct forms {
    struct buffer todo, info, local, remote;
};

static void
write_forms(struct envelope *e, struct forms *f)
{
    buffer_init(&f->todo, FORM_MAX);
    buffer_init(&f->info, FORM_MAX);
    buffer_init(&f->local, FORM_MAX);
    buffer_init(&f->remote, FORM_MAX);
    envelope_write_todo(e, &f->todo);
    envelope_write_info(e, e->count / 2, &f->info);
    struct mark_place *places = memory_array(e->count + 1, sizeof(*places));
    for (unsigned i = 0; i < e->count; i++)
        places[i].channel = i % 2 == 0 ? CHANNEL_REMOTE : CHANNEL_LOCAL;
    envelope_write_channels(e, places, &f->local, &f->remote);
    envelope_take_places(e, places);
    e->storage.preprocessed = false; /* recipients may be added */
    free(places);
}

static void
free_forms(struct forms *f)
{
    buffer_free(&f->todo);
    buffer_free(&f->info);
    buffer_free(&f->local);
    buffer_free(&f->remote);
}

/* NULL: some of it was refused. */
static struct envelope *
read_forms(struct text info, struct text local, struct text remote, struct id id)
{
    struct envelope *e = envelope_new();
    if (envelope_read_info(info, id, e) != PROGRESS_DONE ||
        (e->count > 0 && /* else there are no files of these */
         (envelope_read_channel(local, id, CHANNEL_LOCAL, e) != PROGRESS_DONE ||
          envelope_read_channel(remote, id, CHANNEL_REMOTE, e) != PROGRESS_DONE)))
        envelope_free(&e);
    return e;
}

static struct envelope *
read_all(const struct forms *f, struct id id)
{
    return read_forms(buffer_text(&f->info), buffer_text(&f->local),
                      buffer_text(&f->remote), id);
}

TEST(todo)
{
    struct envelope *e = sample(), *read = envelope_new();
    struct forms f;
    write_forms(e, &f);
    is_number(envelope_read_todo(buffer_text(&f.todo), e->id, read), PROGRESS_DONE,
              "a todo form is read");
    ok_named(same_particulars(e, read), "todo keeps every field");
    ok_named(same_recipients(e, read), "todo keeps every recipient");
    ok(!read->storage.preprocessed && read->delivery.done == 0 && read->recipients[0].mark.offset == -1);
    ok(read->delivery.due_ms == 0 && read->delivery.attempts == 0 && read->delivery.failure_count == 0);
    envelope_free(&read);
    ok_named(read == NULL, "freed is NULL");
    envelope_free(&read);

    read = envelope_new();
    is_number(envelope_read_todo(buffer_text(&f.todo), an_id(8), read), PROGRESS_BAD,
              "under another name it is damaged");
    envelope_free(&read);
    free_forms(&f);
    envelope_free(&e);
}

TEST(preprocessed)
{
    struct envelope *e = sample();
    struct forms f;
    e->recipients[2].done = e->recipients[3].done = true;
    e->delivery.done = 2;
    write_forms(e, &f);
    struct envelope *read = read_all(&f, e->id);
    ok_named(read != NULL, "info, local and remote are read");
    ok_named(same_particulars(e, read), "info keeps every field");
    ok_named(same_recipients(e, read), "the channels keep every recipient and mark");
    ok(read->storage.preprocessed && read->delivery.done == 2);
    is_number(read->delivery.due_ms, 1750000012345, "the due time is kept");
    is_number(read->delivery.attempts, 3, "and the number of attempts");
    ok(read->recipients[1].mark.channel == CHANNEL_LOCAL &&
       read->recipients[0].mark.channel == CHANNEL_REMOTE);
    bool same = true;
    for (unsigned i = 0; i < 4; i++)
        same &= read->recipients[i].mark.offset == e->recipients[i].mark.offset;
    ok_named(same, "reader and writer agree where the marks are");
    ok(f.remote.at[e->recipients[0].mark.offset] == 'T');
    ok(f.remote.at[e->recipients[2].mark.offset] == 'D');
    envelope_free(&read);

    f.remote.at[e->recipients[0].mark.offset] = 'D';
    read = read_all(&f, e->id);
    ok_named(read != NULL && read->recipients[0].done && read->delivery.done == 3,
             "a D written over a T keeps the file valid");
    envelope_free(&read);
    f.remote.at[e->recipients[0].mark.offset] = 'X';
    ok_named(read_all(&f, e->id) == NULL, "another mark does not");
    free_forms(&f);
    envelope_free(&e);
}

/* The M record of a todo form, up to its number's end. */
static bool
has_record(const struct forms *f, const char *record)
{
    return memmem(f->todo.at, f->todo.length, record, strlen(record)) != NULL;
}

TEST(priority)
{
    for (int priority = -9; priority <= 9; priority++) {
        struct envelope *e = sample(), *read = envelope_new();
        struct forms f;
        char name[40];
        e->priority = priority;
        write_forms(e, &f);
        snprintf(name, sizeof(name), "priority %d", priority);
        ok_named(envelope_read_todo(buffer_text(&f.todo), e->id, read) ==
                         PROGRESS_DONE &&
                     same_particulars(e, read),
                 name);
        envelope_free(&read);
        read = read_all(&f, e->id);
        ok_named(read && same_particulars(e, read), "info has it, too");
        ok_named(has_record(&f, " 4 0 0\n") == (priority == 0),
                 "none is the form of older versions");
        envelope_free(&read);
        free_forms(&f);
        envelope_free(&e);
    }
}

/* Each is there or not. */
TEST(optional)
{
    static const struct {
        struct text made_of, trust;
    } rows[] = {
        {TEXT(""),                             TEXT("")      },
        {TEXT("1\n01JD3ZK5Q8-9F3K2C7A 0 2\n"), TEXT("")      },
        {TEXT(""),                             TEXT("auth:C")},
        {TEXT("2\nJ1:\n"),                     TEXT("int")   },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct envelope *e = sample(), *read = envelope_new();
        struct forms f;
        e->fragment.made_of = envelope_text(e, rows[i].made_of);
        e->trust = envelope_text(e, rows[i].trust);
        write_forms(e, &f);
        ok(envelope_read_todo(buffer_text(&f.todo), e->id, read) == PROGRESS_DONE &&
           same_particulars(e, read) && read->count == e->count);
        envelope_free(&read);
        read = read_all(&f, e->id);
        ok_named(read && same_particulars(e, read), "info has it, too");
        ok_named(has_record(&f, "\nJ") == (rows[i].made_of.length > 0) &&
                     has_record(&f, "\nC") == (rows[i].trust.length > 0),
                 "none is the form of older versions");
        envelope_free(&read);
        free_forms(&f);
        envelope_free(&e);
    }
}

/* Its submitter, and the needs of its header. */
TEST(ours)
{
    static const struct text submitters[] = {TEXT(""), TEXT("user:ann"), TEXT("uid:0"),
                                             TEXT("user:a b 7\n")};
    for (size_t i = 0; i < sizeof(submitters) / sizeof(*submitters); i++)
        for (unsigned needs = 0; needs <= HEADER_NEEDS_ALL; needs++) {
            struct envelope *e = sample(), *read = envelope_new(), *again;
            struct forms f;
            e->ours = true;
            e->header_needs = needs;
            e->submitter = envelope_text(e, submitters[i]);
            write_forms(e, &f);
            ok(envelope_read_todo(buffer_text(&f.todo), e->id, read) ==
                   PROGRESS_DONE &&
               read->ours && read->header_needs == needs);
            is_text(read->submitter, submitters[i], "the submitter");
            again = read_all(&f, e->id);
            ok_named(again != NULL && again->ours && again->header_needs == needs &&
                         text_equal(again->submitter, submitters[i]) &&
                         same_particulars(e, again),
                     "info has it, too");
            envelope_free(&again);
            envelope_free(&read);
            free_forms(&f);
            envelope_free(&e);
        }
    struct envelope *e = sample(), *read = envelope_new();
    struct forms f;
    e->submitter = envelope_text(e, TEXT("user:ann"));
    write_forms(e, &f);
    ok_named(!has_record(&f, "\nO"), "mail of others has no such record");
    ok(envelope_read_todo(buffer_text(&f.todo), e->id, read) == PROGRESS_DONE);
    ok(!read->ours && read->submitter.length == 0);
    envelope_free(&read);
    free_forms(&f);
    envelope_free(&e);
}

/* A user that can forge a checksum cannot make an envelope that asserts elsewhere. */
TEST(bad_priority)
{
    static const char *const last[] = {" 10\n", " 19\n", " 00\n",
                                       " 20\n", " 99\n", " 1x\n"};
    struct envelope *e = sample();
    struct forms f;
    e->priority = 5; /* two digits */
    write_forms(e, &f);
    char *at = memmem(f.todo.at, f.todo.length, " 15\n", 4);
    ok(at != NULL);
    for (size_t i = 0; at && i < sizeof(last) / sizeof(last[0]); i++) {
        struct envelope *read = envelope_new();
        char name[ID_LENGTH + 1], trailer[20];
        size_t end = f.todo.length - 17;
        memcpy(at, last[i], 4);
        id_format(e->id, name);
        uint32_t crc = crc_add(crc_add(0, name, ID_LENGTH), f.todo.at, end);
        snprintf(trailer, sizeof(trailer), "crc %08x\nend\n", crc);
        memcpy(f.todo.at + end, trailer, 17);
        is_number(envelope_read_todo(buffer_text(&f.todo), e->id, read),
                  i < 2 ? PROGRESS_DONE : PROGRESS_BAD, last[i]);
        is_number(read->priority, i == 1 ? 9 : 0, "its priority");
        envelope_free(&read);
    }
    free_forms(&f);
    envelope_free(&e);
}

/* Two flags each in numbers that were one flag. */
TEST(flags)
{
    for (unsigned i = 0; i < 16; i++) {
        struct envelope *e = sample(), *read = envelope_new();
        struct forms f;
        char record[40];
        e->eight_bit = (i & 1) != 0;
        e->binary = (i & 2) != 0;
        e->utf8 = (i & 4) != 0;
        e->ascii_header = (i & 8) != 0;
        write_forms(e, &f);
        snprintf(record, sizeof(record), " %u %u %u %u ", (unsigned)e->ret, i & 3,
                 i >> 2, (unsigned)e->double_bounce);
        ok_named(has_record(&f, record), record);
        ok(envelope_read_todo(buffer_text(&f.todo), e->id, read) == PROGRESS_DONE &&
           same_particulars(e, read));
        ok(envelope_has_utf8_header(read) == (i >> 2 == 1));
        envelope_free(&read);
        free_forms(&f);
        envelope_free(&e);
    }
}

TEST(due)
{
    struct envelope *e = sample();
    struct forms f;
    char due[ENVELOPE_DUE_SIZE];
    write_forms(e, &f);
    e->delivery.due_ms = 1760000000000;
    e->delivery.attempts = 17;
    envelope_write_due(e, due);
    memcpy(f.info.at + ENVELOPE_DUE_OFFSET, due, sizeof(due));
    struct envelope *read = read_all(&f, e->id);
    ok_named(read != NULL && read->delivery.due_ms == 1760000000000 && read->delivery.attempts == 17,
             "a due time is overwritten in place");
    envelope_free(&read);
    struct envelope head = {0};
    envelope_read_due(text_before(buffer_text(&f.info), 48), e->id, &head);
    ok_named(head.delivery.due_ms == 1760000000000 && head.delivery.attempts == 17,
             "the first 48 bytes tell it");
    envelope_read_due(text_before(buffer_text(&f.info), 47), e->id, &head);
    ok_named(head.delivery.due_ms == 0 && head.delivery.attempts == 0, "fewer mean now");
    ok(!head.delivery.released);
    e->delivery.released = true;
    e->delivery.due_ms = 1760000000001;
    envelope_write_due(e, due);
    memcpy(f.info.at + ENVELOPE_DUE_OFFSET, due, sizeof(due));
    envelope_read_due(buffer_text(&f.info), e->id, &head);
    ok_named(head.delivery.released && head.delivery.due_ms == 1760000000001 && head.delivery.attempts == 17,
             "a release is told with it");
    f.info.at[ENVELOPE_DUE_OFFSET + 14] = '-';
    envelope_read_due(buffer_text(&f.info), e->id, &head);
    ok_named(head.delivery.due_ms == 0, "another byte there is damage");
    ok(head.delivery.warned_s == 0 && head.delivery.warned_kept_s == 0);
    e->delivery.released = head.delivery.released = false;
    e->delivery.warned_s = 1;
    envelope_write_due(e, due);
    memcpy(f.info.at + ENVELOPE_DUE_OFFSET, due, sizeof(due));
    read = read_all(&f, e->id);
    ok_named(read != NULL && read->delivery.warned_s != 0 && read->delivery.warned_kept_s != 0 && !read->delivery.released &&
                 read->delivery.due_ms == 1760000000001,
             "that the sender knows is told with it");
    envelope_free(&read);
    f.info.at[ENVELOPE_DUE_OFFSET + 3] ^= 1;
    envelope_read_due(buffer_text(&f.info), e->id, &head);
    ok_named(head.delivery.due_ms == 0 && head.delivery.warned_s != 0, "and believed when the rest is torn");
    f.info.at[ENVELOPE_DUE_OFFSET + 22] = ' ';
    envelope_read_due(buffer_text(&f.info), e->id, &head);
    ok_named(head.delivery.due_ms == 0 && head.delivery.warned_s == 0, "unless its byte says no");
    e->delivery.warned_s = 0;
    envelope_read_due(TEXT(""), e->id, &head);
    ok(head.delivery.due_ms == 0 && head.delivery.warned_s == 0);
    e->delivery.due_ms = -5;
    e->delivery.attempts = 4000000000u;
    envelope_write_due(e, due);
    memcpy(f.info.at + ENVELOPE_DUE_OFFSET, due, sizeof(due));
    envelope_read_due(buffer_text(&f.info), e->id, &head);
    ok_named(head.delivery.due_ms == 0 && head.delivery.attempts == 9999999, "out of range is cut");
    e->delivery.due_ms = INT64_MAX;
    envelope_write_due(e, due);
    memcpy(f.info.at + ENVELOPE_DUE_OFFSET, due, sizeof(due));
    envelope_read_due(buffer_text(&f.info), e->id, &head);
    is_number(head.delivery.due_ms, 99999999999999, "above as well");
    free_forms(&f);
    envelope_free(&e);
}

TEST(empty_and_odd)
{
    struct envelope *e = envelope_new(), *read = envelope_new();
    struct forms f;
    e->id = an_id(1);
    e->sender = envelope_text(e, TEXT(""));
    e->content_size = 0;
    if (!envelope_add(e, text_of("a\0\n:b@x", 7), 0, TEXT("x\ny")))
        ok(false);
    write_forms(e, &f);
    is_number(envelope_read_todo(buffer_text(&f.todo), e->id, read), PROGRESS_DONE,
              "null sender, no prefix, odd bytes");
    is_text(read->sender, TEXT(""), "the null sender is empty");
    ok_named(same_recipients(e, read), "any byte survives");
    envelope_free(&read);
    free_forms(&f);

    e->count = 0;
    write_forms(e, &f);
    read = envelope_new();
    is_number(envelope_read_todo(buffer_text(&f.todo), e->id, read), PROGRESS_DONE,
              "no recipient at all");
    is_number(read->count, 0, "stays none");
    envelope_free(&read);
    read = read_all(&f, e->id);
    ok(read != NULL && read->count == 0);
    envelope_free(&read);
    free_forms(&f);
    envelope_free(&e);
}

TEST(many)
{
    struct envelope *e = sample(), *read = envelope_new();
    struct forms f;
    char address[64];
    for (unsigned i = e->count; i < 10000; i++) {
        snprintf(address, sizeof(address), "user%u@host%u.example.org", i, i % 97);
        add(e, address, i % 16, i % 3 == 0 ? "rfc822;x" : "");
        e->recipients[i].done = i % 5 == 0;
        e->delivery.done += i % 5 == 0;
    }
    write_forms(e, &f);
    struct envelope *again = read_all(&f, e->id);
    ok_named(again != NULL && same_recipients(e, again) && again->delivery.done == e->delivery.done,
             "10,000 recipients in two channels");
    envelope_free(&again);
    is_number(envelope_read_todo(buffer_text(&f.todo), e->id, read), PROGRESS_DONE,
              "10,000 recipients in todo");
    is_number(read->count, 10000, "all there");
    envelope_free(&read);
    free_forms(&f);
    while (e->count < ENVELOPE_RECIPIENTS_MAX)
        add(e, "x@y", 0, "");
    ok_named(!envelope_add(e, TEXT("x@y"), 0, TEXT("")), "the limit of recipients");
    is_number(e->count, ENVELOPE_RECIPIENTS_MAX, "is kept");
    write_forms(e, &f);
    read = envelope_new();
    is_number(envelope_read_todo(buffer_text(&f.todo), e->id, read), PROGRESS_DONE,
              "and can be read back");
    envelope_free(&read);
    free_forms(&f);
    envelope_free(&e);
}

TEST(byte_limit)
{
    struct envelope *e = envelope_new();
    enum { HALF = ENVELOPE_BYTES_MAX / 2 };
    char *big = memory_new(HALF);
    ok(envelope_add(e, text_of(big, HALF), 0, TEXT("")));
    ok_named(!envelope_add(e, text_of(big, HALF), 0, TEXT("")), "the limit of bytes");
    is_number(e->count, 1, "adds nobody");
    ok(envelope_text(e, text_of(big, HALF)).at == NULL);
    free(big);
    envelope_free(&e);
}

/* --- Damage ---------------------------------------------------------------------- */

typedef bool reads(const struct forms *f, struct text form, struct id id);

static bool
reads_todo(const struct forms *f, struct text form, struct id id)
{
    struct envelope *e = envelope_new();
    enum progress result = envelope_read_todo(form, id, e);
    (void)f;
    envelope_free(&e);
    return result == PROGRESS_DONE;
}

static bool
is_read(struct envelope *e)
{
    bool good = e != NULL;
    envelope_free(&e);
    return good;
}

static bool
reads_info(const struct forms *f, struct text form, struct id id)
{
    return is_read(
        read_forms(form, buffer_text(&f->local), buffer_text(&f->remote), id));
}

static bool
reads_local(const struct forms *f, struct text form, struct id id)
{
    return is_read(
        read_forms(buffer_text(&f->info), form, buffer_text(&f->remote), id));
}

static bool
reads_remote(const struct forms *f, struct text form, struct id id)
{
    return is_read(read_forms(buffer_text(&f->info), buffer_text(&f->local), form, id));
}

/* The only bytes whose change is no damage. */
static bool
is_soft(const struct envelope *e, const struct forms *f, const struct buffer *form,
        size_t offset)
{
    if (form == &f->info)
        return offset >= ENVELOPE_DUE_OFFSET &&
               offset < ENVELOPE_DUE_OFFSET + ENVELOPE_DUE_SIZE;
    enum channel channel = form == &f->local ? CHANNEL_LOCAL : CHANNEL_REMOTE;
    for (unsigned i = 0; i < e->count && form != &f->todo; i++)
        if (e->recipients[i].mark.channel == channel &&
            e->recipients[i].mark.offset == (int32_t)offset)
            return true;
    return false;
}

static void
test_damage_of(const struct envelope *e, struct forms *f, struct buffer *form,
               reads *read, const char *name)
{
    unsigned cut = 0, flipped = 0, longer = 0;
    struct text whole = buffer_text(form);
    char *copy = memory_new(whole.length + 1), label[100];
    snprintf(label, sizeof(label), "%s: undamaged it is read", name);
    ok_named(read(f, whole, e->id), label);
    for (size_t size = 0; size < whole.length; size++)
        cut += read(f, text_before(whole, size), e->id);
    snprintf(label, sizeof(label), "%s: none of %zu truncations is read", name,
             whole.length);
    is_number(cut, 0, label);
    for (size_t at = 0; at < whole.length; at++)
        for (unsigned bit = 0; bit < 9; bit++) {
            memcpy(copy, whole.at, whole.length);
            copy[at] = (char)(copy[at] ^ (bit < 8 ? 1 << bit : 0xff));
            if (!is_soft(e, f, form, at))
                flipped += read(f, text_of(copy, whole.length), e->id);
            else
                read(f, text_of(copy, whole.length), e->id);
        }
    snprintf(label, sizeof(label), "%s: no flipped bit of %zu bytes is read", name,
             whole.length);
    is_number(flipped, 0, label);
    memcpy(copy, whole.at, whole.length);
    for (unsigned byte = 0; byte < 256; byte++) {
        copy[whole.length] = (char)byte;
        longer += read(f, text_of(copy, whole.length + 1), e->id);
    }
    snprintf(label, sizeof(label), "%s: with a byte too many it is not read", name);
    is_number(longer, 0, label);
    free(copy);
}

TEST(damage)
{
    struct envelope *e = sample();
    struct forms f;
    write_forms(e, &f);
    test_damage_of(e, &f, &f.todo, reads_todo, "todo");
    test_damage_of(e, &f, &f.info, reads_info, "info");
    test_damage_of(e, &f, &f.local, reads_local, "local");
    test_damage_of(e, &f, &f.remote, reads_remote, "remote");
    ok_named(!is_read(read_forms(buffer_text(&f.info), buffer_text(&f.remote),
                                 buffer_text(&f.local), e->id)),
             "channels do not swap");
    struct envelope *twice = envelope_new();
    ok(envelope_read_info(buffer_text(&f.info), e->id, twice) == PROGRESS_DONE &&
       envelope_read_channel(buffer_text(&f.local), e->id, CHANNEL_LOCAL, twice) ==
           PROGRESS_DONE);
    is_number(envelope_read_channel(buffer_text(&f.local), e->id, CHANNEL_LOCAL, twice),
              PROGRESS_BAD, "a recipient that comes twice is damage");
    envelope_free(&twice);
    for (size_t at = ENVELOPE_DUE_OFFSET; at < ENVELOPE_DUE_OFFSET + ENVELOPE_DUE_SIZE;
         at++) {
        struct envelope head = {0};
        f.info.at[at] ^= 1;
        envelope_read_due(buffer_text(&f.info), e->id, &head);
        if (head.delivery.due_ms != 0 || head.delivery.attempts != 0)
            ok_named(false, "a torn due slot means now");
        f.info.at[at] ^= 1;
    }
    free_forms(&f);
    envelope_free(&e);
}

/* --- Failures -------------------------------------------------------------------- */

static struct outcome
failure_text(const char *text)
{
    struct outcome o =
        outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "%s", text);
    snprintf(o.remote, sizeof(o.remote), "mx.example.org[192.0.2.1]:25");
    return o;
}

static struct envelope *
sample_with_failures(struct buffer *out)
{
    struct envelope *e = sample();
    struct outcome o = failure_text("no such user\xff \n\nfailure here: a:b");
    buffer_init(out, 65536);
    envelope_fail(e, &(struct failure){.recipient = 1, .expired = false, .outcome = o});
    o = failure_text("");
    o.remote[0] = '\0';
    o.code = 0;
    envelope_fail(e, &(struct failure){.recipient = 3, .expired = true, .outcome = o});
    envelope_write_failure(e, &e->delivery.failures[0], out);
    envelope_write_failure(e, &e->delivery.failures[1], out);
    return e;
}

TEST(failures)
{
    struct buffer out;
    struct envelope *e = sample_with_failures(&out), *read = sample();
    envelope_read_failures(buffer_text(&out), read);
    is_number(read->delivery.failure_count, 2, "failures are read");
    for (unsigned i = 0; i < 2 && i < read->delivery.failure_count; i++) {
        ok(read->delivery.failures[i].recipient == e->delivery.failures[i].recipient);
        ok(read->delivery.failures[i].expired == e->delivery.failures[i].expired);
        ok(read->delivery.failures[i].outcome.code == e->delivery.failures[i].outcome.code);
        is_string(read->delivery.failures[i].outcome.text, e->delivery.failures[i].outcome.text, "text");
        is_string(read->delivery.failures[i].outcome.remote, e->delivery.failures[i].outcome.remote,
                  "remote");
        is_string(read->delivery.failures[i].outcome.enhanced, "5.1.1", "enhanced code");
    }
    ok_named(read->recipients[1].done && read->recipients[3].done && read->delivery.done == 2,
             "a failure that is written down is done, mark or not");
    envelope_read_failures(buffer_text(&out), read);
    ok_named(read->delivery.failure_count == 2 && read->delivery.done == 2, "read again, it counts once");
    ok(!read->delivery.failures[0].notified && !read->delivery.failures[1].notified);
    struct failure note = e->delivery.failures[0];
    note.notified = true;
    note.outcome.text[0] = '\0';
    envelope_write_failure(e, &note, &out);
    envelope_read_failures(buffer_text(&out), read);
    ok_named(read->delivery.failures[0].notified && !read->delivery.failures[1].notified,
             "a later record says that one of them was reported");
    ok_named(read->delivery.failure_count == 2 &&
                 read->delivery.failures[0].outcome.text[0] != '\0',
             "and changes nothing else");
    envelope_free(&read);

    read = sample();
    read->id = an_id(9);
    envelope_read_failures(buffer_text(&out), read);
    is_number(read->delivery.failure_count, 0, "another message's failures are not ours");
    envelope_read_failures(TEXT(""), read);
    envelope_free(&read);
    buffer_free(&out);
    envelope_free(&e);
}

TEST(successes)
{
    struct envelope *e = sample(), *read = sample();
    struct buffer out;
    struct outcome good =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "250 Ok");
    struct failure there = {.recipient = 1, .outcome = good};
    struct failure onwards = {.recipient = 3, .relayed = true, .outcome = good};
    buffer_init(&out, 65536);
    envelope_write_failure(e, &there, &out);
    envelope_write_failure(e, &onwards, &out);
    envelope_read_failures(buffer_text(&out), read);
    is_number(read->delivery.failure_count, 2, "successes that are to be told");
    for (unsigned i = 0; i < 2 && i < read->delivery.failure_count; i++) {
        const struct failure *f = &read->delivery.failures[i];
        is_number(f->outcome.verdict, VERDICT_DELIVERED, "are no failures");
        ok(f->relayed == (i == 1) && !f->expired);
    }
    is_number(read->delivery.done, 2, "and done");
    buffer_free(&out);
    envelope_free(&read);
    envelope_free(&e);
}

TEST(torn_failures)
{
    struct buffer out, torn;
    struct envelope *e = sample_with_failures(&out), *read;
    size_t first = 0;
    unsigned wrong = 0;
    buffer_init(&torn, 65536);
    envelope_write_failure(e, &e->delivery.failures[0], &torn);
    first = torn.length;
    for (size_t size = 0; size < out.length; size++) {
        read = sample();
        envelope_read_failures(text_before(buffer_text(&out), size), read);
        wrong += read->delivery.failure_count != (size >= first);
        envelope_free(&read);
    }
    is_number(wrong, 0, "a torn end is passed over in silence");

    wrong = 0;
    for (size_t size = 0; size < first; size++) {
        buffer_clear(&torn);
        if (!buffer_add(&torn, text_before(buffer_text(&out), size)) ||
            !buffer_add(&torn, buffer_text(&out)))
            ok(false);
        read = sample();
        envelope_read_failures(buffer_text(&torn), read);
        wrong += read->delivery.failure_count != 2;
        envelope_free(&read);
    }
    is_number(wrong, 0, "what was appended after a torn one is found");

    wrong = 0;
    for (size_t at = 0; at < out.length; at++) {
        out.at[at] = (char)~out.at[at];
        read = sample();
        envelope_read_failures(buffer_text(&out), read);
        wrong += read->delivery.failure_count > 1;
        envelope_free(&read);
        out.at[at] = (char)~out.at[at];
    }
    is_number(wrong, 0, "a flipped byte makes one failure unreadable, no other");
    buffer_free(&torn);
    buffer_free(&out);
    envelope_free(&e);
}

TEST(fail)
{
    struct envelope *e = sample();
    struct outcome o = failure_text("one");
    envelope_fail(e, &(struct failure){.recipient = 0, .expired = false, .outcome = o});
    o = failure_text("two");
    envelope_fail(e, &(struct failure){.recipient = 0, .expired = false, .outcome = o});
    is_number(e->delivery.failure_count, 1, "told twice in a row is one failure");
    is_string(e->delivery.failures[0].outcome.text, "two", "the last");
    for (unsigned i = 0; i < 4; i++)
        envelope_fail(
            e, &(struct failure){.recipient = i, .expired = false, .outcome = o});
    is_number(e->delivery.failure_count, 4, "failures grow");
    envelope_free(&e);
}
