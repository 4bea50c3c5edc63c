/* Fuzz target: the file of suppressed addresses, and lists that are imported. Any bytes are read or passed over;
 * what was read is written again, and read the same; what a list has can be exported. */
/* link: t/sim/loop.c t/sim/disk.c t/sim/disk_world.c t/sim/disk_copy.c t/sim/disk_cut.c */
#include "base/crc.h"
#include "base/log/log_internal.h"
#include "queue/suppression/suppression.h"
#include "queue/suppression/suppression_record.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/must.h"

#include <inttypes.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
count_one(void *context, const struct suppression_entry *entry, int64_t until_ms)
{
    must(entry->address.length > 0 && until_ms >= 0);
    ++*(size_t *)context;
    return true;
}

static size_t
open_file(struct loop *loop, struct log *log, struct disk *disk)
{
    struct suppression_settings settings = {.is_on = true, .limit = 1000};
    size_t count = 0;
    struct suppression *s = suppression_new(loop, log, disk, "lock/suppressed", &settings);
    (void)suppression_each(s, 0, SIZE_MAX, count_one, &count);
    suppression_free(&s);
    return count;
}

static void
write_file(struct disk *disk, const uint8_t *data, size_t size)
{
    int file = disk_create(disk, "lock/suppressed", 0600);
    must(disk_write(disk, file, TEXT("petrel suppressed 1\n")) == 0);
    must(disk_write(disk, file, text_of(data, size)) == 0);
    disk_close_file(disk, file);
}

/* A line whose sum is right, so that the rest is examined. */
static void
try_line(struct text line)
{
    struct suppression_record r, again;
    char sum[10];
    struct buffer out;
    buffer_init(&out, SUPPRESSION_LINE_MAX + line.length);
    snprintf(sum, sizeof(sum), "%08" PRIx32 " ", crc_add(0, line.at, line.length));
    must(buffer_add(&out, text_of(sum, 9)) && buffer_add(&out, line));
    if (suppression_record_read(buffer_text(&out), &r)) {
        buffer_clear(&out);
        must(suppression_record_write(&r.entry, &out));
        must(suppression_record_read(text_before(buffer_text(&out), out.length - 1), &again));
        must(text_equal(r.entry.address, again.entry.address));
    }
    buffer_clear(&out);
    const char *why = suppression_import_line(line, 1000, &r);
    if (why[0] == '\0' && r.entry.class != SUPPRESSION_NONE) {
        must(suppression_export_line(&r.entry, &out));
        must(suppression_import_line(buffer_text(&out), 1000, &again)[0] == '\0');
        must(text_equal(r.entry.address, again.entry.address));
    }
    buffer_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct disk *disk;
    struct buffer lines;
    struct text rest = text_of(data, size), line;
    buffer_init(&lines, 1 << 20);
    sim_disk_reset();
    struct loop *loop = sim_loop_new(1);
    struct log *log = log_new(loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    log_capture(log, &lines);
    must(disk_open(&disk, "/spool", true) == 0 && disk_make_directory(disk, "lock", 0700) == 0);
    write_file(disk, data, size);
    size_t first = open_file(loop, log, disk);
    must(open_file(loop, log, disk) == first);
    while (text_cut(&rest, '\n', &line))
        try_line(line);
    disk_close(&disk);
    log_free(&log);
    loop_free(&loop);
    buffer_free(&lines);
    return 0;
}
