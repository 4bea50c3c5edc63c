/* The reader of Maildirs. */
#include "t/roof/mailbox.h"

#include "base/disk/disk.h"
#include "t/roof/host.h"
#include "t/roof/roof.h"
#include "t/sim/sim_disk.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONTENT_MAX = 8 << 20, PATH_SIZE = 200, LOOK_MS = 1000 };

static struct {
    bool is_on;
    unsigned domain;
    struct roof_timer timer;
    uint64_t calls; /* of the disk, until the end of the last look */
    unsigned starts;
} reader;

struct folder {
    struct model_rcpt *rcpt;
    const char *path;
    unsigned count; /* of files, all or those that were seen before */
    bool reads;
};

/* Lines in a mailbox end as those of the system do. */
static void
read_file(struct model_rcpt *r, const char *path)
{
    struct text rest = sim_disk_content(path), line;
    struct buffer content;
    buffer_init(&content, CONTENT_MAX);
    while (rest.length > 0) {
        text_cut(&rest, '\n', &line);
        if (!buffer_add(&content, line) || !buffer_add(&content, TEXT("\r\n")))
            abort();
    }
    roof_note("mailbox: m%ur%u has mail", r->message->number, r->index);
    model_stored(r, buffer_text(&content));
    buffer_free(&content);
}

static bool
on_name(void *context, const char *name)
{
    struct folder *f = context;
    char path[PATH_SIZE];
    f->count++;
    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    if (f->reads)
        read_file(f->rcpt, path);
    return true;
}

/* A file that a restart has delivered once more has another name: all are read again, when
 * there are more than were stored. */
static void
look_into(struct model_rcpt *r, bool judges)
{
    char path[PATH_SIZE];
    struct disk *disk;
    snprintf(path, sizeof(path), "/mail/m%ur%u/new", r->message->number, r->index);
    if (disk_open(&disk, path, false) != 0)
        return;
    struct folder f = {.rcpt = r, .path = path};
    (void)!disk_list(disk, ".", on_name, &f);
    unsigned seen = r->stored;
    if (f.count > seen && !judges) {
        f.reads = true;
        r->stored = 0;
        (void)!disk_list(disk, ".", on_name, &f);
    }
    if (judges && f.count < seen)
        roof_break("once", NULL, "m%ur%u: what came into its mailbox is gone",
                   r->message->number, r->index);
    disk_close(&disk);
}

enum look { LOOK_FOR_FIRST, LOOK_FOR_ALL, LOOK_FOR_LOSS };

static void
look_at_all(enum look how)
{
    for (unsigned i = 0; reader.is_on && i < model_count(); i++) {
        struct model_message *m = model_at(i);
        for (unsigned j = 0; j < m->rcpt_count; j++)
            if (m->rcpts[j].domain == reader.domain && m->rcpts[j].accepted &&
                (how != LOOK_FOR_FIRST || m->rcpts[j].stored == 0))
                look_into(&m->rcpts[j], how == LOOK_FOR_LOSS);
    }
}

void
mailbox_look(void)
{
    look_at_all(LOOK_FOR_ALL);
}

bool
mailbox_has(const struct model_rcpt *r)
{
    return reader.is_on && r->domain == reader.domain;
}

void
mailbox_judge(void)
{
    look_at_all(LOOK_FOR_ALL);
    look_at_all(LOOK_FOR_LOSS);
    roof_timer_stop(&reader.timer);
    reader.is_on = false;
}

static void
on_look(void *context)
{
    (void)context;
    if (sim_disk_calls() != reader.calls || host.starts != reader.starts)
        look_at_all(LOOK_FOR_FIRST);
    reader.calls = sim_disk_calls();
    reader.starts = host.starts;
    roof_timer_start(&reader.timer, LOOK_MS, on_look, NULL);
}

void
mailbox_begin(unsigned domain)
{
    reader.is_on = true;
    reader.domain = domain;
    roof_timer_start(&reader.timer, LOOK_MS, on_look, NULL);
}
