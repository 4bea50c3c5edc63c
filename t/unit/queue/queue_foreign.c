/* Files that other users put into the spool: taken over, or quarantined, and never a
 * burden. */
/* link: t/sim/clock.c */
#include "queue/queue.h"
#include "queue/queue_operator.h"

#include "queue/spool/spool.h"

#include "t/support/queue_home.h"

#include <fcntl.h>

static const char *const one[] = {"a@example.org", NULL};

static unsigned
count_logged(const struct kit *k, const char *words)
{
    unsigned count = 0;
    struct text rest = buffer_text(&k->lines), line;
    while (text_cut(&rest, '\n', &line))
        count += line.length > 0 &&
                 memmem(line.at, line.length, words, strlen(words)) != NULL;
    return count;
}

/* A todo that cannot be moved to corrupt/, as a directory that is not ours: each start
 * of the trigger must not have it quarantined again. */
static void
test_quarantine_in_vain(bool with_content)
{
    struct kit k, injector;
    char home[64], path[200], other[220];
    queue_home_make_home(home);
    queue_kit_open(&k, home);
    kit_turns(&k, 2);
    kit_open_injector(&injector, home);
    struct envelope *e = queue_kit_accept(&injector, kit_envelope("s@x", one), TEXT("x\r\n"));
    queue_home_path_of(home, "todo", e->id, path);
    if (truncate(path, 3) != 0)
        abort();
    queue_home_path_of(home, "mess", e->id, path);
    if (!with_content && unlink(path) != 0)
        abort();
    queue_home_path_of(home, "corrupt", e->id, path);
    snprintf(other, sizeof(other), "%s.todo", path);
    if (mkdir(other, 0700) != 0)
        abort();
    for (int i = 0; i < 4; i++) {
        wait_ms(&k, 150);
        if (k.found_count > 0 && i == 0)
            ok_named(queue_load(k.queue, e->id) == NULL, "damaged");
        is_number(queue_has_daemon(injector.queue), true, "the trigger is pulled");
    }
    wait_ms(&k, 150);
    is_number(count_logged(&k, "cannot be quarantined"), 1, "what cannot be moved is told once");
    is_number(count_logged(&k, "quarantined in corrupt/"), 0, "and not said to be moved");
    is_number(k.found_count, with_content, "and not found again");
    if (rmdir(other) != 0)
        abort();
    envelope_free(&e);
    kit_close(&injector);
    kit_close(&k);
    remove_home(home);
}

/* The file is a terabyte; the envelope has another size. */
static void
test_foreign_size(struct kit *k, struct kit *injector, const char *home, int64_t told)
{
    char path[200];
    struct buffer form;
    struct envelope *e =
        queue_kit_accept(injector, kit_envelope("s@x", one), TEXT("sparse\r\n"));
    e->content_size = told;
    buffer_init(&form, SPOOL_FILE_MAX);
    envelope_write_todo(e, &form);
    queue_home_path_of(home, "mess", e->id, path);
    if (truncate(path, INT64_C(1) << 40) != 0 || chown(path, 65534, 65534) != 0)
        abort();
    queue_home_path_of(home, "todo", e->id, path);
    int file = open(path, O_WRONLY | O_TRUNC);
    if (write(file, form.at, form.length) != (ssize_t)form.length ||
        fchown(file, 65534, 65534) != 0)
        abort();
    close(file);
    buffer_free(&form);
    ok_named(queue_load(k->queue, e->id) == NULL, "a terabyte is refused");
    envelope_free(&e);
}

static void
test_foreign_injector(void)
{
    struct kit k, injector;
    char home[64], path[200];
    struct stat status;
    if (geteuid() != 0) {
        ok_named(true, "another user's injector: # SKIP needs root");
        return;
    }
    queue_home_make_home(home);
    chmod(home, 0711);
    queue_kit_open(&k, home);
    kit_turns(&k, 2);
    if (seteuid(65534) != 0)
        abort();
    is_number(kit_open_injector(&injector, home), 0, "another user may inject");
    ok(queue_has_daemon(injector.queue));
    struct envelope *e = queue_kit_accept(&injector, kit_envelope("s@x", one), TEXT("x\r\n"));
    ok_named(e != NULL && !injector.refused, "stored");
    if (seteuid(0) != 0)
        abort();
    queue_home_path_of(home, "mess", e->id, path);
    stat(path, &status);
    if ((status.st_mode & 07777) != 0644) /* a file system without lists */
        is_number(status.st_mode & 07777, 0640, "nobody reads it but he and the daemon");
    is_number(status.st_uid, 65534, "and his");
    wait_ms(&k, 250);
    is_number(k.found_count, 1, "the daemon finds it");
    struct id id = e->id;
    envelope_free(&e);
    queue_home_path_of(home, "pid", id, path);
    mknod(path, S_IFREG | 0644, 0);
    e = queue_load(k.queue, id);
    ok(e != NULL);
    envelope_free(&e);
    ok_named(stat(path, &status) < 0, "nothing is left in pid/, whatever was there");
    queue_home_path_of(home, "mess", id, path);
    stat(path, &status);
    is_number(status.st_uid, 0, "the content is the daemon's from now on");
    is_number(status.st_mode & 07777, 0600, "and nobody else's");
    kit_close(&k);
    queue_kit_open(&k, home);
    kit_turns(&k, 2);
    e = queue_load(k.queue, id);
    ok_named(e != NULL, "though the envelope is not");
    ok_named(kit_content_is(&k, e, TEXT("x\r\n")), "it is the same content");
    queue_settle(k.queue, e, 0, NULL);
    queue_defer(k.queue, &e, 5, 1);
    kit_turns(&k, 1);
    is_string(queue_home_where(home, id), "mIl", "and S5 is made of it");
    e = queue_load(k.queue, id);
    queue_retire(k.queue, &e);
    is_number(count_all(home), 0, "and removes it");

    e = queue_kit_accept(&injector, kit_envelope("s@x", one), TEXT("mine\r\n"));
    queue_home_path_of(home, "mess", e->id, path);
    if (chown(path, 1, 1) != 0)
        abort();
    ok_named(queue_load(k.queue, e->id) == NULL, "content of another owner is refused");
    is_number(queue_health(k.queue).quarantined, 1, "and quarantined");
    envelope_free(&e);
    test_foreign_size(&k, &injector, home, 3);
    test_foreign_size(&k, &injector, home, INT64_C(1) << 40);
    is_number(queue_health(k.queue).quarantined, 3,
              "sparse content is not read, but quarantined");
    kit_close(&injector);
    kit_close(&k);
    remove_home(home);
}

int
main(void)
{
    clock_stop();
    test_foreign_injector();
    test_quarantine_in_vain(true);
    test_quarantine_in_vain(false);
    return done();
}
