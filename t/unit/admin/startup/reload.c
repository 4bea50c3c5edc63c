/* Settings read again in several turns: keys and aliases in parts, a second reload in
 * between, one that is given up, and errors. */
#include "admin/startup/parts.h"

#include "base/disk/disk.h"
#include "t/support/dkim_kit.h"
#include "t/support/folder.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEYS = 2 * DKIM_KEYS_PER_TURN + 1 };

struct world {
    struct loop *loop;
    struct log *log;
    struct sandbox *sandbox;
    struct reload reload;
    int ended;
    size_t keys, names;
    struct configuration *running; /* NULL: none */
};

static void
on_done(void *context)
{
    struct world *w = context;
    struct configuration *fresh = reload_end(&w->reload, w->running ? w->running->settings : NULL,
                                            w->sandbox);
    w->ended++;
    w->keys = fresh != NULL && fresh->dkim_keys != NULL ? fresh->dkim_keys->count : 0;
    w->names = fresh != NULL ? aliases_names(fresh->aliases) : 0;
    configuration_free(&fresh);
}

static void
world_begin(struct world *w)
{
    *w = (struct world){.loop = loop_new(), .sandbox = sandbox_new()};
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    w->reload = (struct reload){.loop = w->loop, .log = w->log, .done = on_done, .context = w};
}

static void
world_end(struct world *w)
{
    reload_stop(&w->reload);
    sandbox_free(&w->sandbox);
    log_free(&w->log);
    loop_free(&w->loop);
}

static void
begin(struct world *w, char *keys)
{
    char name[] = "hostname=a.test";
    char *overrides[] = {name, keys, NULL};
    struct options_sources sources = {.overrides = overrides};
    reload_begin(&w->reload, &sources);
}

static int
turns(struct world *w, int until)
{
    int count = 0;
    for (; count < 100 && w->ended < until; count++)
        loop_turn(w->loop, 0);
    return count;
}

static void
write_file(const char *path, struct text content)
{
    FILE *f = fopen(path, "w");
    must(f != NULL && fwrite(content.at, 1, content.length, f) == content.length);
    must(fclose(f) == 0 && chmod(path, 0600) == 0);
}

static void
make_keys(const char *dir)
{
    const char *why;
    char path[500];
    struct buffer pem;
    struct sign_random *random = sign_random_new();
    buffer_init(&pem, SIGN_FILE_MAX);
    must(sign_key_make(random, SIGN_RSA, 1024, &pem, &why));
    for (int i = 0; i < KEYS; i++) {
        snprintf(path, sizeof(path), "%s/s._domainkey.d%d.test.pem", dir, i);
        write_file(path, buffer_text(&pem));
    }
    buffer_free(&pem);
    sign_random_free(&random);
}

static void
test_parts(char *setting, char *none)
{
    FIXTURE(world, w, world_begin, world_end);
    begin(&w, none);
    is_number(w.ended, 1, "without keys one turn is enough");
    begin(&w, setting);
    is_number(w.ended, 1, "with many it is not");
    ok(w.reload.fresh != NULL);
    is_number(turns(&w, 2), 2, "nor are two");
    is_number(w.keys, KEYS, "all are read");
    begin(&w, setting);
    loop_turn(w.loop, 0);
    begin(&w, setting);
    is_number(turns(&w, 3), 2, "a second reload begins anew");
    is_number(w.keys, KEYS, "and reads all");
    begin(&w, setting);
    reload_stop(&w.reload);
    reload_stop(&w.reload);
    is_number(turns(&w, 4), 100, "one that is given up does not end");
    begin(&w, setting);
}

static void
test_errors(const char *dir, char *setting)
{
    char path[500];
    snprintf(path, sizeof(path), "%s/s._domainkey.d7.test.pem", dir);
    write_file(path, TEXT("nonsense"));
    FIXTURE(world, w, world_begin, world_end);
    begin(&w, setting);
    turns(&w, 1);
    is_number(w.keys, 0, "one bad key, and there are no new settings");
    is_number(json_array_size(reload_errors(&w.reload)), 2, "what is wrong, and that the old settings stay");
    ok(strstr(json_string_value(json_array_get(reload_errors(&w.reload), 0)), "d7.test.pem") != NULL);
}

static void
test_aliases(const char *dir)
{
    struct world w;
    char path[400], setting[500];
    struct buffer file;
    enum { NAMES = 10 * ALIASES_STEPS_PER_TURN };
    buffer_init(&file, 1 << 20);
    for (int i = 0; i < NAMES; i++)
        must(buffer_format(&file, "n%d: m%d@x.test\n", i, i));
    snprintf(path, sizeof(path), "%s/aliases", dir);
    snprintf(setting, sizeof(setting), "aliases=%s", path);
    write_file(path, buffer_text(&file));
    world_begin(&w);
    begin(&w, setting);
    is_number(w.ended, 0, "many aliases are not read in one turn");
    ok(turns(&w, 1) > 3 * NAMES / ALIASES_STEPS_PER_TURN);
    is_number(w.names, NAMES, "all are read");
    begin(&w, setting);
    loop_turn(w.loop, 0);
    begin(&w, setting);
    (void)turns(&w, 2);
    is_number(w.ended, 2, "a second reload begins anew");
    is_number(w.names, NAMES, "and reads all");
    must(buffer_format(&file, "bad\n"));
    write_file(path, buffer_text(&file));
    begin(&w, setting);
    (void)turns(&w, 3);
    is_number(json_array_size(reload_errors(&w.reload)), 2,
              "an error in the last line, and the old settings stay");
    begin(&w, setting);
    world_end(&w);
    buffer_free(&file);
    (void)unlink(path);
}

/* A writer has truncated the file, and has not yet written the first line; or it has
 * removed it. */
static void
is_refused(struct world *w, const struct options_sources *sources, const char *said, const char *name)
{
    int ended = w->ended;
    reload_begin(&w->reload, sources);
    (void)turns(w, ended + 1);
    const json_t *errors = reload_errors(&w->reload);
    const char *first = json_string_value(json_array_get(errors, 0));
    ok_named(first != NULL && (said == NULL || strstr(first, said) != NULL), name);
}

static void
is_taken(struct world *w, const struct options_sources *sources, const char *name)
{
    int ended = w->ended;
    reload_begin(&w->reload, sources);
    (void)turns(w, ended + 1);
    ok_named(reload_errors(&w->reload) == NULL && w->ended == ended + 1, name);
}

static void
test_emptied(const char *dir)
{
    struct buffer errors;
    char path[400], routes[400], value[500], host[] = "hostname=a.test";
    char *overrides[] = {host, NULL};
    struct options_sources sources = {.file = path, .overrides = overrides};
    snprintf(path, sizeof(path), "%s/petrel.conf", dir);
    snprintf(routes, sizeof(routes), "%s/routes", dir);
    snprintf(value, sizeof(value), "recipient_limit = 9\nroutes_file = %s\n", routes);
    write_file(path, text_from(value));
    write_file(routes, TEXT("* smtp://127.0.0.1\n"));
    FIXTURE(world, w, world_begin, world_end);
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    w.running = configuration_read(&sources, &errors);
    must(w.running != NULL);
    is_taken(&w, &sources, "the same settings");
    write_file(path, TEXT(""));
    is_refused(&w, &sources, "petrel.conf: has no setting now, and 2 are in use", "an empty file");
    write_file(path, TEXT("# the relay\n\n  \r\n"));
    is_refused(&w, &sources, "rename it", "comments alone");
    (void)unlink(path);
    is_refused(&w, &sources, NULL, "no file");
    write_file(path, text_from(value));
    write_file(routes, TEXT("\n"));
    is_refused(&w, &sources, "/routes: is empty now, and its value is in use", "an empty file of a value");
    write_file(path, TEXT("recipient_limit = 9\nroutes =\n"));
    is_taken(&w, &sources, "a value that was emptied in the file");
    write_file(path, TEXT("recipient_limit = 8\n"));
    is_taken(&w, &sources, "one setting is enough");
    configuration_free(&w.running);
    write_file(path, TEXT("# all is in the environment\n"));
    w.running = configuration_read(&sources, &errors);
    must(w.running != NULL);
    is_taken(&w, &sources, "a file that never had a setting");
    configuration_free(&w.running);
    buffer_free(&errors);
}

int
main(void)
{
    char dir[] = "/tmp/reload-XXXXXX", setting[100], none[] = "recipient_limit=9";
    must(mkdtemp(dir) != NULL);
    snprintf(setting, sizeof(setting), "dkim_keys=%s", dir);
    make_keys(dir);
    test_aliases(dir);
    test_parts(setting, none);
    test_errors(dir, setting);
    test_emptied(dir);
    folder_remove(dir);
    return done();
}
