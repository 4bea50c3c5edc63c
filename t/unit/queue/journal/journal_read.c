/* Reading back: every damaged byte is harmless, or reported, or in the last batch, and
 * never makes a wrong record; what content forges is not believed; what failed is not
 * read; nothing changes on the disk. */
/* link: t/sim/disk.c */
/* link: t/sim/disk_world.c */
/* link: t/sim/disk_copy.c */
/* link: t/sim/loop.c */
#include "queue/journal/segment.h"

#include "t/support/journal_kit.h"

static const char directory[] = "/s/journal/000-255";

static void
segment_path(unsigned segment, char out[80])
{
    snprintf(out, 80, "%s/%04u", directory, segment);
}

/* Reads as an operator; the process has ended. */
static int
read_directory(struct kit *k)
{
    struct journal_reading reading = journal_kit_reading(k);
    return journal_read(k->disk, k->settings.directory, &reading, &k->summary);
}

/* --- Damage ---------------------------------------------------------------------- */

/* Some batches with all kinds of records in three segments; closed. */
static struct kit *
some_journal(void)
{
    struct kit *k = kit_start(16, 4, false);
    static const size_t sizes[] = {100, 5000, 0, 900, 9000, 12000, 16000, 3000};
    for (unsigned i = 0; i < 16; i++) {
        journal_kit_accept(k, sizes[i % 8]);
        if (i % 3 == 2)
            kit_mark(k, i, 50);
        if (i % 5 == 4)
            kit_end(k, i - 2, RECORD_END);
        if (i % 2 == 1)
            kit_drain(k);
        kit_turn(k);
    }
    kit_drain(k);
    kit_end_process(k);
    kit_begin_process(k, false, 1);
    return k;
}

/* The results of a reading, to compare another one with. */
static struct kit_found *
keep_found(const struct kit *k)
{
    struct kit_found *copy = malloc((k->count + 1) * sizeof(*copy));
    memcpy(copy, k->found, (k->count + 1) * sizeof(*copy));
    return copy;
}

static unsigned
missing(const struct kit *k, const struct kit_found *whole)
{
    unsigned count = 0;
    for (unsigned i = 1; i <= k->count; i++) {
        const struct kit_found *f = &k->found[i];
        count += f->accepts < whole[i].accepts;
        count += f->ends < whole[i].ends;
        for (unsigned mark = 0; mark < KIT_MARKS; mark++)
            count += f->marks[mark] < whole[i].marks[mark];
    }
    return count;
}

static bool
adds(const struct kit *k, const struct kit_found *whole)
{
    for (unsigned i = 1; i <= k->count; i++) {
        const struct kit_found *f = &k->found[i];
        bool more = f->accepts > whole[i].accepts || f->ends > whole[i].ends;
        for (unsigned mark = 0; mark < KIT_MARKS; mark++)
            more = more || f->marks[mark] > whole[i].marks[mark];
        if (more || f->wrong)
            return true;
    }
    return k->strangers > 0;
}

struct flips {
    unsigned all, harmless, torn, damaged, wrong;
};

static void
flip(struct kit *k, const struct kit_found *whole, unsigned segment, size_t offset,
     struct flips *flips)
{
    char path[80];
    segment_path(segment, path);
    if (!sim_disk_damage(path, offset))
        abort();
    int result = read_directory(k);
    unsigned lost = missing(k, whole);
    flips->all++;
    if (result != 0 || adds(k, whole))
        flips->wrong++;
    else if (lost == 0 && k->damages == 0)
        flips->harmless++;
    else if (k->damages > 0)
        flips->damaged++;
    else if (k->summary.torn || lost <= 2) /* what the last batch has */
        flips->torn++;
    else
        flips->wrong++;
    if (flips->wrong == 1)
        printf("# segment %u at %zu: lost %u, damages %u\n", segment, offset, lost,
               k->damages);
    sim_disk_damage(path, offset);
}

static void
test_flips(void)
{
    struct kit *k = some_journal();
    struct flips flips = {0};
    is_number(read_directory(k), 0, "reads");
    ok(journal_kit_check(k, 0, "whole") && !k->summary.torn);
    is_number(k->summary.segments, 3, "three segments");
    struct kit_found *whole = keep_found(k);
    for (unsigned segment = 0; segment < 3; segment++) {
        char path[80];
        segment_path(segment, path);
        struct text bytes = sim_disk_content(path);
        char *copy = malloc(bytes.length);
        memcpy(copy, bytes.at, bytes.length);
        for (size_t at = 0; at < bytes.length; at++)
            /* All that tells something; of the rest a part. */
            if (copy[at] != '\0' ? at % 5 == 0 || at % JOURNAL_BLOCK < 200
                                 : at % 101 == 0 || at % JOURNAL_BLOCK < 64)
                flip(k, whole, segment, at, &flips);
        free(copy);
    }
    printf("# %u flips: %u harmless, %u torn, %u damages\n", flips.all, flips.harmless,
           flips.torn, flips.damaged);
    is_number(flips.wrong, 0, "no flip makes anything up, or loses it silently");
    ok(flips.all > 10000 && flips.damaged > flips.torn && flips.harmless > 0);
    is_number(read_directory(k), 0, "reads");
    ok(journal_kit_check(k, 0, "whole again"));
    free(whole);
    kit_stop(&k);
}

/* One byte of an acknowledged record: that one is reported with its bytes, all others
 * are read. */
static void
test_one_record(void)
{
    struct kit *k = kit_start(16, 4, false);
    char path[80];
    journal_kit_accept(k, 100);
    journal_kit_accept(k, 300);
    journal_kit_accept(k, 500);
    kit_drain(k);
    journal_kit_accept(k, 10);
    kit_drain(k);
    kit_end_process(k);
    kit_begin_process(k, false, 1);
    segment_path(0, path);
    sim_disk_damage(path, k->messages[2].place.offset + 7);
    is_number(read_directory(k), 0, "reads");
    ok(k->found[1].accepts == 1 && k->found[2].accepts == 0 &&
       k->found[3].accepts == 1 && k->found[4].accepts == 1);
    ok(k->damages == 1 && k->summary.damages == 1 && k->summary.records == 3);
    is_number(k->damaged_bytes, 332, "its bytes");
    is_string(k->where, "0000 at 196", "its place");
    sim_disk_damage(path, 3);
    is_number(read_directory(k), 0, "the header in front, too");
    ok(k->found[4].accepts == 1 && k->found[1].accepts == 0 && k->damages == 1);
    is_string(k->where, "0000 at 0", "the batch");
    ok(k->damaged_bytes > 900 && k->damaged_bytes <= JOURNAL_BLOCK);
    struct journal_reading reading = {.context = k, .record = kit_record};
    is_number(journal_read(k->disk, k->settings.directory, &reading, &k->summary), 0,
              "who does not want to know");
    is_number(k->summary.damages, 1, "still counts");
    kit_stop(&k);
}

static bool
refuse_second(void *context, const struct journal_record *record)
{
    (void)kit_record(context, record);
    return record->id.time_ms != 1002;
}

static void
test_no_sense(void)
{
    struct kit *k = kit_start(16, 4, false);
    journal_kit_accept(k, 100);
    journal_kit_accept(k, 200);
    journal_kit_accept(k, 300);
    kit_end_process(k);
    kit_begin_process(k, false, 1);
    struct journal_reading reading = journal_kit_reading(k);
    reading.record = refuse_second;
    is_number(journal_read(k->disk, k->settings.directory, &reading, &k->summary), 0,
              "reads");
    ok(k->damages == 1 && k->damaged_bytes == 232 && k->found[3].accepts == 1);
    kit_stop(&k);
}

static void
test_lost_files(void)
{
    for (unsigned lost = 0; lost < 4; lost++) {
        struct kit *k = some_journal();
        char path[80];
        segment_path(lost, path);
        is_number(disk_unlink(k->disk, path), 0, "a file goes");
        is_number(read_directory(k), 0, "reads");
        /* The last one with records leaves no trace; the next is unused. */
        is_number(k->damages, lost < 2, lost < 2 ? "reported" : "nobody knows");
        ok_named(lost == 3 || missing(k, k->found) == 0, "the others are read");
        kit_stop(&k);
    }
    struct kit *k = some_journal();
    char zeros[JOURNAL_BLOCK] = {0}, path[80];
    segment_path(1, path);
    int file = disk_open_file(k->disk, path, true);
    ok(disk_write_at(k->disk, file, 0, text_of(zeros, sizeof(zeros))) == 0);
    is_number(read_directory(k), 0, "without its first block");
    ok(k->damages == 1 && k->summary.segments == 3);
    ok(disk_write_at(k->disk, file, 15 * JOURNAL_BLOCK,
                     text_of(zeros, sizeof(zeros))) == 0);
    is_number(read_directory(k), 0, "and its last");
    ok_named(k->damages > 0 && k->summary.segments == 2, "it is nobody's, and missed");
    ok(disk_write_at(k->disk, file, 0, TEXT("something else")) == 0);
    is_number(read_directory(k), 0, "and something else in it");
    ok_named(k->damages == 2 && k->damaged_bytes > 10000, "all of it is reported");
    disk_close_file(k->disk, file);
    kit_stop(&k);
}

static void
test_read_errors(int error)
{
    struct kit *k = some_journal();
    unsigned wrong = 0, calls = 0, healed = 0;
    is_number(read_directory(k), 0, "without errors");
    struct kit_found *whole = keep_found(k);
    unsigned count = k->count;
    for (uint64_t call = 1; calls == 0; call++) {
        sim_disk_count_anew();
        sim_disk_fail_at(call, error);
        int result = read_directory(k);
        if (!sim_disk_has_failed())
            calls = (unsigned)call;
        else if (result == 0 && error == EIO)
            healed++;
        else
            wrong += result != -error;
        if (result == 0)
            wrong +=
                k->damages != 0 || memcmp(k->found, whole, count * sizeof(*whole)) != 0;
    }
    ok_named(calls > 20 && wrong == 0, "when the disk does not answer, it says so");
    ok_named((healed > 5) == (error == EIO), "or it answers when asked again");
    free(whole);
    kit_stop(&k);
}

/* Each block of each segment in turn is gone for good: what is around it is read, what
 * it had is reported, always. */
TEST(bad_blocks)
{
    unsigned wrong = 0, lost = 0, tries = 0, silent = 0;
    for (unsigned segment = 1; segment <= 3; segment++)
        for (size_t block = 0; block < 16; block++) {
            char path[80];
            struct kit *k = some_journal();
            (void)read_directory(k);
            uint64_t records = k->summary.records;
            segment_path(segment, path);
            if (!sim_disk_wear(path, block * JOURNAL_BLOCK))
                abort();
            wrong += read_directory(k) != 0;
            lost += (unsigned)(records - k->summary.records);
            silent += k->summary.records < records && k->damages == 0;
            tries++;
            kit_stop(&k);
        }
    printf("# %u records in %u bad blocks\n", lost, tries);
    is_number(wrong, 0, "a bad sector does not hinder the start");
    is_number(silent, 0, "what it had is told");
    ok(lost > 10 && lost < 4 * tries);
}

/* --- Made by hand ---------------------------------------------------------------- */

struct hand {
    struct kit *kit;
    struct buffer bytes;
    uint64_t cookie, sequence;
};

static void
hand_begin(struct hand *h, uint64_t sequence)
{
    h->cookie = sequence * UINT64_C(0x9e3779b97f4a7c15) + 1;
    h->sequence = sequence;
    buffer_init(&h->bytes, (size_t)16 * JOURNAL_BLOCK);
}

static void
hand_pad(struct hand *h, size_t to)
{
    while (h->bytes.length < to)
        if (!buffer_add_byte(&h->bytes, '\0'))
            abort();
}

/* A batch with one record, MARK number of message 1; returns its offset. */
static size_t
hand_batch(struct hand *h, uint64_t number, uint64_t previous, uint64_t oldest,
           unsigned mark)
{
    char header[BATCH_HEADER_SIZE], byte = (char)mark;
    struct text payload = text_of(&byte, 1);
    size_t offset = segment_align(h->bytes.length);
    hand_pad(h, offset + sizeof(header));
    (void)segment_add_record(&h->bytes, h->cookie, RECORD_MARK, kit_id(1), &payload, 1);
    struct batch_header b = {.length = (uint32_t)(h->bytes.length - offset),
                             .count = 1,
                             .sequence = h->sequence,
                             .cookie = h->cookie,
                             .number = number,
                             .previous = previous,
                             .oldest = oldest};
    segment_write_header(&b, header);
    memcpy(h->bytes.at + offset, header, sizeof(header));
    return offset;
}

static void
hand_end(struct hand *h, unsigned segment, uint64_t oldest)
{
    char path[80], header[BATCH_HEADER_SIZE];
    struct batch_header copy = {.length = BATCH_HEADER_SIZE,
                                .sequence = h->sequence,
                                .cookie = h->cookie,
                                .oldest = oldest};
    hand_pad(h, (size_t)16 * JOURNAL_BLOCK);
    segment_write_header(&copy, header);
    if (oldest > 0)
        memcpy(h->bytes.at + 15 * JOURNAL_BLOCK, header, sizeof(header));
    segment_path(segment, path);
    (void)disk_unlink(h->kit->disk, path);
    int file = disk_create(h->kit->disk, path, 0600);
    if (file < 0 || disk_write(h->kit->disk, file, buffer_text(&h->bytes)) < 0)
        abort();
    disk_close_file(h->kit->disk, file);
    buffer_free(&h->bytes);
}

static struct kit *
by_hand(struct hand *h)
{
    struct kit *k = kit_new(16, 4);
    sim_disk_reset();
    kit_begin_process(k, false, 1);
    disk_make_directory(k->disk, "journal", 0700);
    disk_make_directory(k->disk, k->settings.directory, 0700);
    k->count = 1;
    *h = (struct hand){.kit = k};
    return k;
}

/* Which marks were read, as digits. */
static const char *
marks(struct kit *k)
{
    static char out[KIT_MARKS + 1];
    int result = read_directory(k);
    for (unsigned i = 0; i < KIT_MARKS; i++)
        out[i] = (char)('0' + k->found[1].marks[i]);
    return result == 0 && k->strangers == 0 ? out : "?";
}

TEST(failed_batches)
{
    struct hand h;
    struct kit *k = by_hand(&h);
    /* Batch 2 failed, though it is whole; 3 begins the next segment. */
    hand_begin(&h, 4);
    hand_batch(&h, 1, 0, 4, 0);
    hand_end(&h, 2, 4);
    hand_begin(&h, 5);
    hand_batch(&h, 2, 1, 5, 1);
    hand_end(&h, 0, 4);
    is_string(marks(k), "0100", "as the last one it counts, with what it tells");
    hand_begin(&h, 6);
    size_t third = hand_batch(&h, 3, 1, 4, 2);
    h.bytes.at[third + 70] ^= 1; /* torn */
    hand_end(&h, 1, 4);
    is_string(marks(k), "1000", "not once a header tells that it failed");
    ok(k->summary.torn && k->damages == 0);
    hand_begin(&h, 6);
    hand_batch(&h, 3, 1, 4, 2);
    hand_end(&h, 1, 4);
    is_string(marks(k), "1010", "nor with the batch behind it");
    ok(!k->summary.torn && k->damages == 0);
    /* A restart goes on in front of what a dead process has left. */
    (void)disk_unlink(k->disk, "journal/000-255/0002");
    hand_begin(&h, 5);
    hand_batch(&h, 1, 0, 5, 0);
    hand_batch(&h, 4, 1, 5, 3);
    hand_end(&h, 0, 5);
    hand_begin(&h, 6);
    third = hand_batch(&h, 3, 1, 5, 2);
    h.bytes.at[third + 70] ^= 1;
    hand_end(&h, 1, 5);
    is_string(marks(k), "1001", "an older number says nothing of a newer one");
    is_number(journal_kit_open(k), 0, "opens");
    journal_keep(k->journal, &(struct journal_place){.sequence = 5});
    unsigned number = journal_kit_accept(k, 100);
    is_number(k->messages[number].place.sequence, 7, "goes on behind all there is");
    kit_drain(k);
    kit_end_process(k);
    kit_begin_process(k, false, 1);
    is_string(marks(k), "1001", "once more");
    is_number(k->found[number].accepts, 1, "with what is new");
    kit_stop(&k);
}

/* Somebody has copied a segment. */
TEST(copied)
{
    struct hand h;
    struct kit *k = by_hand(&h);
    for (unsigned i = 0; i < 2; i++) {
        hand_begin(&h, 5);
        hand_batch(&h, 1, 0, 5, 0);
        hand_batch(&h, 2, 1, 5, 1);
        if (i == 1)
            hand_batch(&h, 3, 2, 5, 2);
        hand_end(&h, i, 5);
    }
    is_string(marks(k), "1110", "each batch once");
    is_number(k->damages, 0, "no damage");
    is_number(journal_kit_open(k), 0, "opens");
    journal_keep(k->journal, &(struct journal_place){.sequence = 5});
    unsigned number = journal_kit_accept(k, 100);
    is_number(k->messages[number].place.sequence, 6, "goes on in neither");
    kit_drain(k);
    kit_end_process(k);
    kit_begin_process(k, false, 1);
    is_string(marks(k), "1110", "once more");
    is_number(k->found[number].accepts, 1, "with what is new");
    kit_stop(&k);
}

TEST(chain)
{
    struct hand h;
    struct kit *k = by_hand(&h);
    hand_begin(&h, 5);
    hand_batch(&h, 1, 0, 5, 0);
    hand_end(&h, 0, 5);
    hand_begin(&h, 6);
    hand_batch(&h, 3, 2, 5, 2);
    hand_end(&h, 1, 5);
    is_string(marks(k), "1010", "2 is not there");
    is_number(k->damages, 1, "reported once");
    is_string(k->where, "0000 at 4096", "where it should have been");
    hand_begin(&h, 6);
    hand_batch(&h, 3, 2, 6, 2);
    hand_end(&h, 1, 5);
    is_string(marks(k), "0010", "nobody needs it");
    is_number(k->damages, 0, "nor reports it");
    hand_begin(&h, 6);
    hand_batch(&h, 3, 2, 5, 2);
    hand_end(&h, 1, 7);
    is_string(marks(k), "0000", "as the last block tells: nothing is needed");
    is_number(k->damages, 0, "nor missed");
    (void)disk_unlink(k->disk, "journal/000-255/0000");
    hand_begin(&h, 6);
    hand_batch(&h, 3, 2, 5, 2);
    hand_end(&h, 1, 5);
    is_string(marks(k), "0010", "the oldest one is gone");
    is_number(k->damages, 1, "reported");
    kit_stop(&k);
}

/* Lengths that are wrong though all checksums are right. */
TEST(lengths)
{
    static const uint32_t lengths[] = {64,    65,      4096,      16 * 4096,
                                       65537, 1 << 30, UINT32_MAX};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct hand h;
        struct kit *k = by_hand(&h);
        char header[BATCH_HEADER_SIZE];
        hand_begin(&h, 5);
        hand_batch(&h, 1, 0, 5, 0);
        size_t at = hand_batch(&h, 2, 1, 5, 1);
        hand_batch(&h, 3, 2, 5, 2);
        struct batch_header b = {.length = lengths[i],
                                 .count = UINT32_MAX,
                                 .sequence = 5,
                                 .cookie = h.cookie,
                                 .number = 2,
                                 .previous = 1,
                                 .oldest = 5};
        segment_write_header(&b, header);
        memcpy(h.bytes.at + at, header, sizeof(header));
        hand_end(&h, 0, 5);
        const char *found = marks(k);
        ok_named(found[0] == '1' && found[1] <= '1', "it ends, within the bytes");
        kit_stop(&k);
    }
}

/* A record that is not needed any more is read only if it is known to have been
 * acknowledged: here the segment of batch 3, which said that 2 had failed, was used again. */
TEST(past)
{
    struct hand h;
    struct kit *k = by_hand(&h);
    struct journal_reading reading = journal_kit_reading(k);
    reading.with_past = true;
    hand_begin(&h, 4);
    hand_batch(&h, 1, 0, 4, 0);
    hand_batch(&h, 2, 1, 4, 1);
    hand_end(&h, 2, 4);
    hand_begin(&h, 7);
    hand_batch(&h, 9, 8, 7, 2);
    hand_batch(&h, 10, 9, 7, 3);
    hand_end(&h, 0, 7);
    is_string(marks(k), "0011", "what is needed");
    is_number(journal_read(k->disk, k->settings.directory, &reading, &k->summary), 0,
              "and the past");
    is_number(k->found[1].marks[0], 1, "was acknowledged");
    is_number(k->found[1].marks[1], 0, "is not known to have been");
    kit_stop(&k);
}

/* A file that is shorter than what its header says. */
TEST(truncated)
{
    struct hand h;
    struct kit *k = by_hand(&h);
    for (size_t size = 0; size <= 3 * JOURNAL_BLOCK; size += 999) {
        hand_begin(&h, 5);
        hand_batch(&h, 1, 0, 5, 0);
        hand_batch(&h, 2, 1, 5, 1);
        hand_batch(&h, 3, 2, 5, 2);
        struct text bytes = text_before(buffer_text(&h.bytes), size);
        (void)disk_unlink(k->disk, "journal/000-255/0000");
        int file = disk_create(k->disk, "journal/000-255/0000", 0600);
        if (disk_write(k->disk, file, bytes) < 0)
            abort();
        disk_close_file(k->disk, file);
        buffer_free(&h.bytes);
        const char *found = marks(k);
        bool good = k->damages == 0 && found[0] == (size > 96 ? '1' : '0') &&
                    found[1] == (size > JOURNAL_BLOCK + 96 ? '1' : '0');
        ok_named(good, "as far as it goes");
    }
    kit_stop(&k);
}

/* --- Forged content -------------------------------------------------------------- */

/* The payload of a large message, with forged batches at all block boundaries. */
static unsigned
accept_forged(struct kit *k, uint64_t sequence)
{
    struct hand h = {.kit = k};
    unsigned number = ++k->count;
    struct kit_message *m = &k->messages[number];
    hand_begin(&h, sequence);
    h.cookie = UINT64_C(0x6666666666666666);
    hand_pad(&h, 96); /* where it will be */
    for (unsigned i = 0; i < 3; i++)
        hand_batch(&h, 1000 + i, 999, sequence > 1 ? 1000 : 1, 3);
    struct text payload = text_after(buffer_text(&h.bytes), 96);
    *m = (struct kit_message){.size = payload.length};
    if (journal_accept(k->journal, kit_id(number), &payload, 1, true, &m->place,
                       &m->batch) != JOURNAL_APPENDED ||
        m->place.offset != 96)
        abort();
    buffer_free(&h.bytes);
    return number;
}

TEST(forged)
{
    for (unsigned what = 0; what < 4; what++) {
        struct kit *k = kit_start(16, 4, false);
        char path[80];
        accept_forged(k, what % 2 == 0 ? 1 : UINT64_MAX - 1);
        kit_drain(k);
        journal_kit_accept(k, 100);
        kit_drain(k);
        kit_end_process(k);
        kit_begin_process(k, false, 1);
        segment_path(0, path);
        if (what >= 2)
            sim_disk_damage(path, 20); /* the true header */
        is_number(read_directory(k), 0, "reads");
        is_number(k->found[1].marks[3], 0, "what is forged is not read");
        is_number(k->found[2].accepts, 1, "what is behind it is");
        is_number(k->damages, what >= 2, "damage");
        ok(k->strangers == 0 && k->found[1].accepts == (what < 2));
        is_number(journal_kit_open(k), 0, "opens");
        ok(journal_kit_accept(k, 10) > 0);
        is_number(k->messages[3].place.sequence, 1, "and goes on behind it");
        kit_stop(&k);
    }
}

/* Random bytes everywhere, also behind good headers. */
TEST(garbage)
{
    uint64_t mix = 88172645463325252u;
    unsigned wrong = 0;
    for (unsigned round = 0; round < 200; round++) {
        struct kit *k = round % 2 == 0 ? some_journal() : kit_start(16, 4, false);
        unsigned segment = round % 3;
        char path[80];
        if (round % 2 == 1) {
            kit_end_process(k);
            kit_begin_process(k, false, 1);
        }
        segment_path(segment, path);
        int file = disk_open_file(k->disk, path, true);
        if (file < 0)
            file = disk_create(k->disk, path, 0600);
        char bytes[2000];
        for (unsigned i = 0; i < 20; i++) {
            for (size_t at = 0; at < sizeof(bytes); at++) {
                mix ^= mix << 13, mix ^= mix >> 7, mix ^= mix << 17;
                bytes[at] = (char)mix;
            }
            if (disk_write_at(k->disk, file,
                              (int64_t)(mix % (16 * JOURNAL_BLOCK - 2000)),
                              text_of(bytes, sizeof(bytes))) < 0)
                abort();
        }
        disk_close_file(k->disk, file);
        wrong += read_directory(k) != 0 || k->strangers > 0;
        for (unsigned i = 1; i <= k->count; i++)
            wrong += k->found[i].wrong;
        wrong += journal_kit_open(k) != 0;
        if (k->journal != NULL)
            kit_adopt(k);
        (void)kit_accept_as(k, 100, true);
        kit_stop(&k);
    }
    is_number(wrong, 0, "200 rounds of garbage make no record");
}

/* --- Readers beside a daemon ----------------------------------------------------- */

TEST(beside)
{
    struct kit *k = kit_start(16, 4, false);
    struct kit *other = kit_new(16, 4);
    unsigned wrong = 0;
    k->ends_crowded = true;
    other->disk = k->disk;
    for (unsigned i = 0; i < 600; i++) {
        journal_kit_accept(k, i * 97 % 5000);
        if (i % 3 == 0)
            kit_turn(k);
        for (unsigned old = 1; i % 20 == 19 && old + 5 < k->count; old++)
            if (kit_is_live(&k->messages[old]))
                kit_end(k, old, RECORD_END);
        other->count = k->count;
        memcpy(other->messages, k->messages, KIT_MESSAGES * sizeof(*k->messages));
        uint64_t before = sim_disk_digest();
        wrong += read_directory(other) != 0 || !journal_kit_check(other, 0, "beside");
        wrong += sim_disk_digest() != before;
    }
    is_number(wrong, 0, "sees all that is durable, and changes nothing");
    kit_free(&other);
    kit_stop(&k);
    k = kit_new(16, 4);
    sim_disk_reset();
    kit_begin_process(k, false, 1);
    is_number(read_directory(k), 0, "no directory is empty");
    ok(k->summary.segments == 0 && k->summary.records == 0 && !k->summary.torn);
    kit_stop(&k);
}

/* A start reads what is needed, not all there is. */
TEST(quick)
{
    struct kit *k = kit_start(64, 8, false);
    for (unsigned i = 1; i <= 300; i++) {
        journal_kit_accept(k, 4000);
        kit_turn(k);
        if (i > 10 && kit_is_live(&k->messages[i - 10]))
            kit_end(k, i - 10, RECORD_END);
        kit_turn(k);
    }
    kit_drain(k);
    kit_end_process(k);
    kit_begin_process(k, false, 1);
    is_number(read_directory(k), 0, "reads");
    ok(journal_kit_check(k, 0, "quick") && k->summary.segments <= 2);
    kit_stop(&k);
}

int
main(void)
{
    test_flips();
    test_one_record();
    test_no_sense();
    test_lost_files();
    test_read_errors(EIO);
    test_read_errors(ENOMEM);
    tap_tests("");
    return done();
}
