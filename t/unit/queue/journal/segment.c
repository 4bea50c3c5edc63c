/* The bytes of the journal are read back as they were written, and nothing else is
 * believed: not a damaged byte, not a length that is too large, not what has no cookie. */
#include "queue/journal/segment.h"

#include "t/support/tap.h"

enum { SIZE = 64 * 1024 };
static const uint64_t cookie = UINT64_C(0x0123456789abcdef);
static const struct id first_id = {.time_ms = 1700000000000, .hash = 0xff12345678};

static struct batch_header
some_header(void)
{
    return (struct batch_header){.length = 4242,
                                 .count = 7,
                                 .sequence = UINT64_C(0x1122334455667788),
                                 .cookie = cookie,
                                 .number = 99,
                                 .previous = 97,
                                 .oldest = 5};
}

TEST(header)
{
    char bytes[BATCH_HEADER_SIZE];
    struct batch_header h = some_header(), back;
    segment_write_header(&h, bytes);
    ok(segment_read_header(text_of(bytes, sizeof(bytes)), &back));
    ok_named(back.length == h.length && back.count == h.count &&
                 back.sequence == h.sequence && back.cookie == h.cookie &&
                 back.number == h.number && back.previous == h.previous &&
                 back.oldest == h.oldest,
             "a header is what it was");
    ok_named(memcmp(bytes + 16, "\x88\x77\x66\x55\x44\x33\x22\x11", 8) == 0,
             "little-endian");
    ok(!segment_read_header(text_of(bytes, sizeof(bytes) - 1), &back));
    unsigned believed = 0;
    for (size_t bit = 0; bit < (size_t)60 * 8; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        believed += segment_read_header(text_of(bytes, sizeof(bytes)), &back);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    }
    is_number(believed, 0, "no bit may change");
    h.length = BATCH_HEADER_SIZE - 1;
    segment_write_header(&h, bytes);
    ok_named(!segment_read_header(text_of(bytes, sizeof(bytes)), &back), "too short");
    h = some_header();
    h.sequence = 0;
    segment_write_header(&h, bytes);
    ok_named(!segment_read_header(text_of(bytes, sizeof(bytes)), &back), "no sequence");
    memset(bytes, 0, sizeof(bytes));
    ok_named(!segment_read_header(text_of(bytes, sizeof(bytes)), &back), "zeros");
}

/* ACCEPT "hello world" in two pieces, MARK "x", END. */
static void
some_records(struct buffer *out)
{
    struct text pieces[] = {TEXT("hello "), TEXT("world")}, mark = TEXT("x");
    struct id second = {.time_ms = 2, .hash = 3};
    buffer_init(out, SIZE);
    is_number(segment_add_record(out, cookie, RECORD_ACCEPT, first_id, pieces, 2),
              RECORD_HEADER_SIZE, "the payload's place");
    is_number(segment_add_record(out, cookie, RECORD_MARK, second, &mark, 1),
              2 * RECORD_HEADER_SIZE + 11, "of the next one");
    (void)segment_add_record(out, cookie, RECORD_END, second, NULL, 0);
}

TEST(records)
{
    struct journal_record r;
    FIXTURE(buffer, out, some_records, buffer_free);
    struct text rest = buffer_text(&out);
    ok(segment_take_record(&rest, cookie, &r) == PROGRESS_DONE);
    ok(r.type == RECORD_ACCEPT && id_compare(r.id, first_id) == 0);
    is_text(r.payload, TEXT("hello world"), "the pieces are one");
    ok(segment_take_record(&rest, cookie, &r) == PROGRESS_DONE && r.type == RECORD_MARK);
    is_text(r.payload, TEXT("x"), "payload");
    ok(segment_take_record(&rest, cookie, &r) == PROGRESS_DONE && r.type == RECORD_END &&
       r.payload.length == 0);
    is_number(rest.length, 0, "the end");
    ok(segment_take_record(&rest, cookie, &r) == PROGRESS_BAD);
    rest = buffer_text(&out);
    ok_named(segment_take_record(&rest, cookie + 1, &r) == PROGRESS_BAD &&
                 rest.length == 0,
             "with another cookie there is none");
}

/* One damaged byte costs one record. */
TEST(damage)
{
    unsigned wrong = 0;
    FIXTURE(buffer, out, some_records, buffer_free);
    size_t ends[] = {RECORD_HEADER_SIZE + 11, 2 * RECORD_HEADER_SIZE + 12, out.length};
    for (size_t i = 0; i < out.length; i++) {
        struct journal_record r;
        unsigned hit = i < ends[0] ? 0 : i < ends[1] ? 1 : 2;
        out.at[i] = (char)~out.at[i];
        struct text rest = buffer_text(&out);
        for (unsigned n = 0; n < 3; n++) {
            bool good = segment_take_record(&rest, cookie, &r) == PROGRESS_DONE;
            wrong += good == (n == hit) || rest.length != out.length - ends[n];
        }
        out.at[i] = (char)~out.at[i];
    }
    is_number(wrong, 0, "the others are found again");
}

TEST(lengths)
{
    struct buffer out;
    unsigned wrong = 0;
    some_records(&out);
    /* Cut off anywhere: nothing is read beyond the end (with ASan). */
    for (size_t length = 0; length < out.length; length++) {
        char *copy = malloc(length + 1);
        memcpy(copy, out.at, length);
        struct text rest = text_of(copy, length);
        struct journal_record r;
        unsigned good = 0, steps = 0;
        while (rest.length > 0 && steps++ < 10)
            good += segment_take_record(&rest, cookie, &r) == PROGRESS_DONE;
        wrong += good > 2 || steps >= 10 || rest.length > 0;
        free(copy);
    }
    is_number(wrong, 0, "a cut batch ends");
    buffer_free(&out);
    /* A record that claims more than there is, in front of a good one. */
    char many[100] = {0};
    struct text payload = text_of(many, sizeof(many)), good = TEXT("good");
    buffer_init(&out, SIZE);
    (void)segment_add_record(&out, cookie, RECORD_MARK, first_id, &payload, 1);
    out.length = RECORD_HEADER_SIZE;
    (void)segment_add_record(&out, cookie, RECORD_MARK, first_id, &good, 1);
    struct text rest = buffer_text(&out);
    struct journal_record r;
    ok(segment_take_record(&rest, cookie, &r) == PROGRESS_BAD);
    ok(segment_take_record(&rest, cookie, &r) == PROGRESS_DONE);
    is_text(r.payload, good, "the good one is found");
    buffer_free(&out);
}

TEST(whole)
{
    struct buffer out, records;
    char header[BATCH_HEADER_SIZE] = {0};
    struct batch_header h = some_header();
    some_records(&records);
    buffer_init(&out, SIZE);
    ok(buffer_add(&out, text_of(header, sizeof(header))) &&
       buffer_add(&out, buffer_text(&records)));
    h.length = (uint32_t)out.length;
    h.count = 3;
    ok(segment_is_whole(buffer_text(&out), 0, &h));
    h.count = 2;
    ok_named(!segment_is_whole(buffer_text(&out), 0, &h), "more than it says");
    h.count = 4;
    ok_named(!segment_is_whole(buffer_text(&out), 0, &h), "less than it says");
    h.count = 3;
    h.length++;
    ok_named(!segment_is_whole(buffer_text(&out), 0, &h), "longer than the bytes");
    h.length -= 2;
    ok_named(!segment_is_whole(buffer_text(&out), 0, &h), "shorter than the records");
    h.length++;
    ok(!segment_is_whole(buffer_text(&out), 1, &h));
    ok(!segment_is_whole(buffer_text(&out), out.length + 5, &h));
    out.at[out.length - 1] ^= 1;
    ok_named(!segment_is_whole(buffer_text(&out), 0, &h), "damaged");
    h.length = BATCH_HEADER_SIZE;
    h.count = 0;
    ok_named(segment_is_whole(buffer_text(&out), 0, &h), "empty");
    buffer_free(&out);
    buffer_free(&records);
}

TEST(places)
{
    is_number(segment_align(0), 0, "0");
    is_number(segment_align(1), JOURNAL_BLOCK, "1");
    is_number(segment_align(JOURNAL_BLOCK), JOURNAL_BLOCK, "a block");
    is_number(segment_batches_end((size_t)16 * JOURNAL_BLOCK), 15 * JOURNAL_BLOCK,
              "the last block is not for batches");
    is_number(segment_batches_end(JOURNAL_BLOCK), JOURNAL_BLOCK, "a single block");
    is_number(segment_batches_end(JOURNAL_BLOCK + 1), JOURNAL_BLOCK + 1, "no blocks");
    is_number(segment_batches_end(0), 0, "nothing");
}
