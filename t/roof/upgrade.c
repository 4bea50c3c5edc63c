/* Versions: the stand-in for queue/envelope/envelope_form.c. */
#include "t/roof/upgrade.h"

#include "queue/envelope/envelope_form.h"
#include "base/id.h"
#include "base/memory.h"
#include "t/roof/host.h"
#include "t/roof/operator.h"
#include "t/roof/roof.h"
#include "t/sim/sim_disk.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { OLDER = 1, NEWER = 2, IDS_MAX = 20, COMMAND_SIZE = 512, COMMANDS_AT_A_TIME = 8 };

static struct {
    uint64_t chance;
    unsigned installed;
    unsigned form; /* of the program whose calls come now */
    uint64_t seen; /* of the disk, before a start */
    struct roof_timer again, more;
    char (*unread)[ID_LENGTH + 1]; /* ids of mail that an older daemon cannot read */
    size_t unread_count, released;
    bool is_over; /* the weather is good for good */
} upgrade = {.installed = OLDER, .form = OLDER};

unsigned
envelope_form(void)
{
    return upgrade.form;
}

static void
install(unsigned form)
{
    upgrade.installed = form;
    roof_note("upgrade: the %s version is installed",
              form == NEWER ? "newer" : "older");
}

void
upgrade_begin(void)
{
    upgrade.chance = roof_fork("versions");
    if (roof_below_of(&upgrade.chance, 4) == 0)
        install(NEWER);
}

bool
upgrade_is_older(const struct host *h)
{
    return upgrade.chance != 0 && h->form < NEWER;
}

void
upgrade_enter(const struct host *h)
{
    upgrade.form = h != NULL && h->form > 0 ? h->form : upgrade.installed;
}

/* --- Starts ----------------------------------------------------------------------- */

void
upgrade_starts(struct host *h)
{
    h->form = upgrade.installed;
    upgrade_enter(h);
    upgrade.seen = h->machine->newest > h->form ? sim_disk_digest() : 0;
}

/* A spool that a newer version has been started on is not for an older one, which says so
 * and touches nothing. */
void
upgrade_started(const struct host *h, int code)
{
    struct host *machine = h->machine;
    bool is_refused = machine->newest > h->form, is_dead = sim_disk_is_dead();
    if (!is_refused && code == 0)
        machine->newest = h->form;
    if (roof_breaks("upgrade"))
        is_refused = true;
    if (!is_refused || is_dead)
        return;
    if (code != EX_CONFIG)
        roof_break("start", NULL, "the older version starts on a newer spool: %d",
                   code);
    if (sim_disk_digest() != upgrade.seen)
        roof_break("clean", NULL, "the older version touches a newer spool");
}

/* --- Operators -------------------------------------------------------------------- */

/* Those whose spool is that of the first host. */
static void
end_older(bool all)
{
    for (struct host *h = NULL; (h = host_next(h)) != NULL;)
        if (h->machine == &host && h->form != upgrade.installed &&
            (all || roof_below_of(&upgrade.chance, 2) == 0))
            host_terminate(h);
}

static void
install_again(void *context)
{
    (void)context;
    install(NEWER);
}

/* Back to the older version, until its user reads why it does not start. */
static void
go_back(void)
{
    install(OLDER);
    roof_timer_start(&upgrade.again,
                     roof_between_of(&upgrade.chance, SECOND_MS, MINUTE_MS),
                     install_again, NULL);
}

void
upgrade_act(void)
{
    unsigned kind = roof_below_of(&upgrade.chance, 4);
    if (upgrade.installed == OLDER)
        install(NEWER);
    else if (kind == 0)
        go_back();
    if (kind < 3)
        end_older(kind == 1);
}

/* Each daemon of the spool knows whether it is its own. */
static void
tell_all(const char *command)
{
    for (const struct host *h = NULL; (h = host_next(h)) != NULL;)
        if (h->running && h->machine == &host)
            operator_tell(h, command);
}

/* Many in a command: a daemon takes few connections at a time. */
static void
release_some(void *context)
{
    char command[COMMAND_SIZE];
    (void)context;
    size_t i = upgrade.released;
    for (unsigned sent = 0; sent < COMMANDS_AT_A_TIME && i < upgrade.unread_count;
         sent++) {
        int used =
            snprintf(command, sizeof(command), "{\"command\":\"release\",\"ids\":[");
        for (unsigned count = 0; count < IDS_MAX && i < upgrade.unread_count; count++)
            used += snprintf(command + used, sizeof(command) - (size_t)used, "%s\"%s\"",
                             count > 0 ? "," : "", upgrade.unread[i++]);
        snprintf(command + used, sizeof(command) - (size_t)used, "]}");
        tell_all(command);
    }
    upgrade.released = i;
    if (i < upgrade.unread_count)
        roof_timer_start(&upgrade.more, SECOND_MS, release_some, NULL);
}

void
upgrade_line(struct text line)
{
    /* "cannot be quarantined": some of its files are there all the same */
    static const char words[] = "quarantined", newer[] = ": a newer version ",
                      killed[] = ": processed when the daemon was killed ";
    const char *at = memmem(line.at, line.length, ": error: ", 9);
    if (at == NULL || at - line.at < ID_LENGTH ||
        memmem(line.at, line.length, words, sizeof(words) - 1) == NULL ||
        (memmem(line.at, line.length, newer, sizeof(newer) - 1) == NULL &&
         memmem(line.at, line.length, killed, sizeof(killed) - 1) == NULL))
        return;
    size_t size = (upgrade.unread_count + 1) * sizeof(*upgrade.unread);
    upgrade.unread = memory_resize(upgrade.unread, size);
    char *id = upgrade.unread[upgrade.unread_count++];
    memcpy(id, at - ID_LENGTH, ID_LENGTH);
    id[ID_LENGTH] = '\0';
    if (upgrade.is_over)
        roof_timer_start(&upgrade.more, SECOND_MS, release_some, NULL);
}

void
upgrade_release(void)
{
    upgrade.is_over = true;
    release_some(NULL);
}

void
upgrade_become_good(void)
{
    if (upgrade.chance == 0)
        return;
    roof_timer_stop(&upgrade.again);
    install(NEWER);
    end_older(true);
}
