/* Loses the disk of the first host. */
#include "t/roof/lost_disk.h"

#include "t/roof/engine.h"
#include "t/roof/host.h"
#include "t/roof/law_adoption.h"
#include "t/roof/model.h"
#include "t/roof/roof.h"
#include "t/roof/world_internal.h"
#include "t/sim/sim_disk.h"

#include <assert.h>
#include <stdio.h>

enum { PATH_SIZE = 256, WINDOW_MS = 4000, LOOK_MS = 50, LOOKS_MAX = 1000 };

static struct roof_timer look;
static unsigned looks;

struct emptied {
    struct disk *disk;
    const char *under;
};

/* Directories stay. */
static bool
on_name(void *context, const char *name)
{
    struct emptied *e = context;
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s%s%s", e->under, e->under[0] ? "/" : "", name);
    if (disk_unlink(e->disk, path) == 0)
        return true;
    struct emptied below = {e->disk, path};
    (void)!disk_list(e->disk, path, on_name, &below);
    return true;
}

void
lost_disk_empty(struct host *h)
{
    struct disk *disk = NULL;
    host_enter(h);
    int result = disk_open(&disk, HOST_SPOOL, false);
    assert(result == 0);
    struct emptied all = {disk, ""};
    (void)!disk_list(disk, "", on_name, &all);
    disk_close(&disk);
    host_leave();
}

/* Marks and ends that the engine may not have; and mail that it has, whose clients heard
 * nothing, and send it again. */
static void
forgive_window(void)
{
    model_moved_twice(TEXT(""));
    for (unsigned i = 0; i < model_count(); i++) {
        const struct model_message *m = model_at(i);
        for (unsigned r = 0; r < m->rcpt_count; r++)
            if (m->rcpts[r].stored > 0 && roof_now_ms() - m->rcpts[r].stored_ms < WINDOW_MS)
                model_moved_twice(text_from(m->id));
    }
}

/* From now on it may adopt. */
static void
on_line(const struct host *h, struct text line)
{
    if (h == &host)
        law_adoption_line(0, line);
}

static void
lose(void)
{
    if (!course.with[WITH_GROUP])
        hosts_on_line(on_line);
    roof_note("host: its disk is lost");
    forgive_window();
    trouble_end_host(false);
    lost_disk_empty(&host);
    engine_lost_disk();
}

/* Soon, when mail waits there. */
static void
on_look(void *context)
{
    (void)context;
    if (course.is_good || --looks == 0)
        return;
    if (host.running && !host.leaves && engine_has_all())
        lose();
    else
        roof_timer_start(&look, LOOK_MS, on_look, NULL);
}

void
lost_disk_act(void)
{
    looks = LOOKS_MAX;
    roof_timer_start(&look, LOOK_MS, on_look, NULL);
}
