/* Makes the history of the daemon. */
#include "admin/startup/history_wiring.h"

#include "admin/history/tail.h"
#include "queue/queue_operator.h"
#include "queue/spool/slices.h"

#include <stdio.h>
#include <stdlib.h>

enum { DISK_PART = 100 /* of the file system, unless history_size is set */ };

/* The default is too much for a small file system. */
static struct history_settings
history_wiring_settings(const struct configuration *c, struct manager *manager)
{
    struct history_settings settings = {.size = c->options.history_size,
                                        .age_ms = c->options.history_age_ms};
    struct disk_space space;
    bool is_set = settings_origin(c->settings, TEXT("history_size")) != NULL;
    if (settings.size > 0 && !is_set &&
        disk_space(queue_disk(manager_queue(manager)), &space) == 0 &&
        space.bytes > 0 && space.bytes / DISK_PART < settings.size)
        settings.size = space.bytes / DISK_PART;
    if (settings.size > 0 && settings.size < HISTORY_SIZE_LEAST)
        settings.size = HISTORY_SIZE_LEAST;
    return settings;
}

/* A history_setup.has_space. */
static bool
history_wiring_has_space(void *context)
{
    struct queue_health health = queue_health(manager_queue(context));
    return (health.bytes_free < 0 || health.bytes_free >= health.bytes_reserve) &&
           (health.inodes_free < 0 || health.inodes_free >= health.inodes_reserve);
}

/* A questions_on_part(). */
static json_t *
history_wiring_status(void *context)
{
    struct history_state state = history_state(context);
    return json_pack("{s:I,s:I,s:b,s:I}", "bytes", (json_int_t)state.bytes, "size",
                     (json_int_t)state.size, "paused", state.paused, "lost",
                     (json_int_t)state.lost);
}

/* "": the system does not tell. */
static void
history_wiring_boot(char out[TAIL_BOOT_MAX])
{
    char *content = NULL;
    size_t length = 0;
    out[0] = '\0';
    if (disk_read_whole("/proc/sys/kernel/random/boot_id", TAIL_BOOT_MAX, &content,
                        &length) == 0)
        snprintf(out, TAIL_BOOT_MAX, "%s", content);
    free(content);
}

struct history *
history_wiring_start(struct loop *loop, struct log *log, struct event_hub *events,
                     struct manager *manager, struct questions *questions,
                     const struct configuration *c)
{
    char part[SLICES_SUFFIX_MAX] = "", boot[TAIL_BOOT_MAX];
    struct history_settings settings = history_wiring_settings(c, manager);
    if (c->options.slices > 1)
        slices_part((unsigned)c->options.slices, (unsigned)c->options.slice, part);
    history_wiring_boot(boot);
    struct history_setup setup = {.loop = loop,
                                  .log = log,
                                  .events = events,
                                  .spool = queue_disk(manager_queue(manager)),
                                  .part = part,
                                  .boot = boot,
                                  .has_space = history_wiring_has_space,
                                  .context = manager};
    struct history *history = history_new(&setup, &settings);
    questions_on_part(questions, "history", history_wiring_status, history);
    return history;
}

void
history_wiring_reload(struct history *history, struct manager *manager,
                      const struct configuration *c)
{
    struct history_settings settings = history_wiring_settings(c, manager);
    history_reload(history, &settings);
}
