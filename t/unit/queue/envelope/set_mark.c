/* The mark of a fragment's set: written, read, and everything else refused; also in an
 * envelope. */
#include "queue/envelope/set_mark.h"

#include "base/crc.h"
#include "queue/envelope/envelope.h"
#include "t/support/tap.h"

#include <ctype.h>

#define KEY "9f00112233445566778899aabbccddeeff0123456789abcdef0011223344550a"
static const char good[] = KEY ";0;1795219000";

static bool
reads(struct text t)
{
    struct set_mark mark;
    return set_mark_read(t, &mark);
}

TEST(round_trips)
{
    static const int64_t epochs[] = {0, 9, 1795219000, 999999999999};
    struct set_mark mark =
                        {
                            .key = {0x9f, 0x00, 0x11}
    },
                    read;
    char out[SET_MARK_SIZE];
    unsigned wrong = 0;
    for (unsigned depth = 0; depth <= SET_MARK_DEPTH_MAX; depth++)
        for (size_t i = 0; i < sizeof(epochs) / sizeof(*epochs); i++)
            for (unsigned byte = 0; byte < 256; byte++) {
                mark.depth = depth;
                mark.epoch_s = epochs[i];
                mark.ours = byte % 3 == 0;
                mark.key[byte % DIGEST_SIZE] = (unsigned char)byte;
                set_mark_write(&mark, out);
                wrong += !set_mark_read(text_from(out), &read) ||
                         memcmp(read.key, mark.key, DIGEST_SIZE) != 0 ||
                         read.depth != depth || read.epoch_s != epochs[i] ||
                         read.ours != mark.ours;
            }
    is_number(wrong, 0, "what is written is read");
    mark = (struct set_mark){
        .depth = 3, .epoch_s = SET_MARK_EPOCH_MAX_S, .ours = true};
    memset(mark.key, 0xff, DIGEST_SIZE);
    set_mark_write(&mark, out);
    is_number(strlen(out), SET_MARK_LENGTH_MAX, "the longest fills its room");
}

TEST(one_is_known)
{
    struct set_mark mark;
    char out[SET_MARK_SIZE];
    ok(set_mark_read(text_from(good), &mark));
    is_number(mark.key[0], 0x9f, "the first byte");
    is_number(mark.key[DIGEST_SIZE - 1], 0x0a, "the last byte");
    is_number(mark.depth, 0, "depth");
    is_number(mark.epoch_s, 1795219000, "epoch");
    ok_named(!mark.ours, "not ours");
    set_mark_write(&mark, out);
    is_string(out, good, "it is written as it was read");
}

TEST(others_are_refused)
{
    static const char *const bad[] = {
        "",
        ";",
        ";;",
        KEY,
        KEY ";",
        KEY ";0",
        KEY ";0;",
        KEY ";;1",
        KEY ";4;1",
        KEY ";9;1",
        KEY ";00;1",
        KEY ";10;1",
        KEY ";-1;1",
        KEY ";0;-1",
        KEY ";0;+1",
        KEY ";0;0x1",
        KEY ";0;1.5",
        KEY ";0; 1",
        KEY ";0;1 ",
        KEY "; 0;1",
        " " KEY ";0;1",
        KEY ";0;1;",
        KEY ";0;1;2",
        KEY ";0;o",
        KEY ";0;1O",
        KEY ";0;1oo",
        KEY ";0;o1",
        KEY ";0;1o ",
        KEY "o",
        "o",
        KEY ";0;1234567890123",
        KEY ";0;000000000000001",
        KEY ",0,1",
        "0" KEY ";0;1",
        "9F00112233445566778899aabbccddeeff0123456789abcdef0011223344550a;0;1",
        "9g00112233445566778899aabbccddeeff0123456789abcdef0011223344550a;0;1",
        "00112233445566778899aabbccddeeff0123456789abcdef0011223344550a;0;1",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok_named(!reads(text_from(bad[i])), bad[i]);
    ok_named(!reads(TEXT(KEY ";0;1\0")), "a NUL behind it");
    ok_named(!reads((struct text){0}), "no text at all");
    ok_named(reads(TEXT(KEY ";0;000000000001")), "zeros in front, within 12 digits");
    unsigned cut = 0;
    for (size_t size = 0; size <= strlen(KEY ";0;"); size++)
        cut += reads(text_before(text_from(good), size));
    is_number(cut, 0, "nothing cut short before the time is read");
}

/* Any byte at any place: only its own kind of digit may stand there. */
TEST(each_byte_counts)
{
    char t[sizeof(good)];
    unsigned wrong = 0;
    for (size_t at = 0; at < sizeof(good) - 1; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            bool hex = strchr("0123456789abcdef", (int)byte) != NULL && byte != 0;
            bool legal = at < 64                ? hex
                         : at == 64 || at == 66 ? byte == ';'
                         : at == 65             ? byte >= '0' && byte <= '3'
                         : at == sizeof(good) - 2
                             ? isdigit((int)byte) != 0 || byte == 'o'
                             : isdigit((int)byte) != 0;
            memcpy(t, good, sizeof(good));
            t[at] = (char)byte;
            wrong += reads(text_of(t, sizeof(good) - 1)) != legal;
        }
    is_number(wrong, 0, "each byte is of its kind");
}

/* --- In an envelope --------------------------------------------------------------- */

enum { FORM_MAX = 64 * 1024 };

/* by_peer: with MARK. */
static struct envelope *
envelope_of(bool by_peer, struct buffer *todo)
{
    struct envelope *e = envelope_new();
    e->id = id_make(1750000000000, (const unsigned char[]){1, 2, 3, 4, 5});
    e->sender = envelope_text(e, TEXT("a@example.org"));
    e->trust = envelope_text(e, TEXT("int"));
    e->fragment.set_mark = envelope_text(e, TEXT(good));
    e->fragment.by_peer = by_peer;
    if (!envelope_add(e, TEXT("b@example.org"), NOTIFY_DEFAULT, TEXT("")))
        ok_named(false, "a recipient is taken");
    buffer_init(todo, FORM_MAX);
    envelope_write_todo(e, todo);
    return e;
}

static bool
has(const struct buffer *form, const char *what)
{
    return memmem(form->at, form->length, what, strlen(what)) != NULL;
}

/* The checksum of a todo form is put right. */
static void
forge(struct buffer *todo, struct id id)
{
    char name[ID_LENGTH + 1], trailer[20];
    size_t end = todo->length - 17;
    id_format(id, name);
    uint32_t crc = crc_add(crc_add(0, name, ID_LENGTH), todo->at, end);
    snprintf(trailer, sizeof(trailer), "crc %08x\nend\n", crc);
    memcpy(todo->at + end, trailer, 17);
}

/* Only what has come with it keeps it: towards a peer it is made anew. */
TEST(only_received_is_kept)
{
    struct buffer todo, info;
    struct envelope *e = envelope_of(false, &todo), *read = envelope_new();
    ok(!has(&todo, "\nS"));
    ok(envelope_read_todo(buffer_text(&todo), e->id, read) == PROGRESS_DONE);
    ok(!read->fragment.by_peer && read->fragment.set_mark.length == 0);
    buffer_free(&todo);
    envelope_free(&read);
    envelope_free(&e);

    e = envelope_of(true, &todo);
    ok(has(&todo, "\nC3:int\nS77:" KEY ";0;1795219000\nT0"));
    read = envelope_new();
    ok(envelope_read_todo(buffer_text(&todo), e->id, read) == PROGRESS_DONE);
    ok(read->fragment.by_peer && read->count == 1);
    is_text(read->fragment.set_mark, TEXT(good), "todo has it");
    envelope_free(&read);
    read = envelope_new();
    buffer_init(&info, FORM_MAX);
    envelope_write_info(e, 0, &info);
    ok(envelope_read_info(buffer_text(&info), e->id, read) == PROGRESS_DONE);
    ok(read->fragment.by_peer);
    is_text(read->fragment.set_mark, TEXT(good), "info has it, too");
    envelope_free(&read);
    envelope_free(&e);
    buffer_free(&todo);
    buffer_free(&info);
}

static unsigned
damaged_are_read(struct text whole, struct id id)
{
    static char copy[FORM_MAX];
    unsigned count = 0;
    for (size_t bit = 0; bit < 8 * whole.length; bit++) {
        struct envelope *read = envelope_new();
        memcpy(copy, whole.at, whole.length);
        copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
        count +=
            envelope_read_todo(text_of(copy, whole.length), id, read) == PROGRESS_DONE;
        envelope_free(&read);
    }
    return count;
}

/* A reader of an envelope may trust its mark. */
TEST(damage_is_found)
{
    static const struct {
        const char *record;
        enum progress progress;
    } rows[] = {
        {"\nS77:" KEY ";3;1795219001\n",  PROGRESS_DONE},
        {"\nS77:" KEY ";4;1795219000\n",  PROGRESS_BAD },
        {"\nS77:" KEY ";1;179521900x\n",  PROGRESS_BAD },
        {"\nS77:" KEY ",1;1795219000\n",  PROGRESS_BAD },
        {"\nS76:" KEY ";1;1795219000\n",  PROGRESS_BAD },
        {"\nJ77:" KEY ";1;1795219000\n",  PROGRESS_BAD }, /* not in order */
        {"\nX77:" KEY ";1;1795219000\n",  PROGRESS_BAD },
        {"\nS0:\nS73:" KEY "123456789\n", PROGRESS_BAD },
        {"\nS73:" KEY "123456789\nS0:\n", PROGRESS_BAD },
    };
    struct buffer todo;
    struct envelope *e = envelope_of(true, &todo);
    is_number(damaged_are_read(buffer_text(&todo), e->id), 0, "no flipped bit is read");
    char *at = memmem(todo.at, todo.length, "\nS", 2);
    ok(at != NULL);
    for (size_t i = 0; at && i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct envelope *read = envelope_new();
        ok(strlen(rows[i].record) == 83);
        memcpy(at, rows[i].record, 83);
        forge(&todo, e->id);
        ok_named(envelope_read_todo(buffer_text(&todo), e->id, read) ==
                     rows[i].progress,
                 "a forged record");
        envelope_free(&read);
    }
    buffer_free(&todo);
    envelope_free(&e);
}
