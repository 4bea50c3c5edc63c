/* Settings that a daemon leaves for sendmail(1), and the trust in them. */
#include "admin/settings/about.h"
#include "base/disk/disk.h"
#include "t/support/folder.h"
#include "t/support/tap.h"

#include <sys/stat.h>
#include <unistd.h>

enum { LINE = 1024 };

struct place {
    char root[64], conf[128], spool[128];
};

static void
put(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(content, file) < 0 || fclose(file) != 0)
        abort();
}

/* content of the file, with the spool's line in front if named. */
static void
begin(struct place *p, const char *content, bool named)
{
    char all[LINE];
    folder_make(p->root, sizeof(p->root), "about");
    snprintf(p->conf, sizeof(p->conf), "%s/conf", p->root);
    snprintf(p->spool, sizeof(p->spool), "%s/spool", p->root);
    snprintf(all, sizeof(all), "%s%s%s%s", named ? "spool = " : "",
             named ? p->spool : "", named ? "\n" : "", content);
    put(p->conf, all);
}

static void
put_about(const struct place *p, const char *content)
{
    char path[LINE];
    snprintf(path, sizeof(path), "%s/lock", p->spool);
    if (mkdir(p->spool, 0700) != 0 || mkdir(path, 0700) != 0)
        abort();
    snprintf(path, sizeof(path), "%s/lock/about", p->spool);
    put(path, content);
}

static void
finish(const struct place *p)
{
    char command[LINE];
    snprintf(command, sizeof(command), "rm -rf %s", p->root);
    if (system(command) != 0)
        abort();
}

static struct settings *
read_it(const struct place *p, struct options *o)
{
    struct options_sources sources = {.file = p->conf, .without_secrets = true};
    return about_read(&sources, o);
}

TEST(good)
{
    struct place p;
    struct options o;
    begin(&p, "hostname = file.test\n", true);
    put_about(&p, "hostname = about.test\n");
    struct settings *s = read_it(&p, &o);
    ok_named(s != NULL, "settings without mistakes");
    is_string(o.hostname, "file.test", "need nothing of the daemon's");
    settings_free(&s);
    finish(&p);
    begin(&p, "", true);
    put_about(&p, "hostname = about.test\n");
    s = read_it(&p, &o);
    is_string(o.hostname, "about.test", "but for a name that they do not have");
    settings_free(&s);
    finish(&p);
}

TEST(mistakes)
{
    struct place p;
    struct options o;
    begin(&p, "listne = x\nmessage_size_limit = 12K\nrecipient_limit = lots\n", true);
    put_about(&p, "hostname = about.test\nmessage_size_limit = 1M\n"
                  "recipient_limit = 17\nrelay = evil.test\nuser = root\n"
                  "control = /run/c\nbroken\nslices = 4\n");
    struct settings *s = read_it(&p, &o);
    ok_named(s != NULL, "mistakes elsewhere");
    is_string(o.hostname, "about.test", "what was not set");
    is_number(o.message_size_limit, 12 * 1024, "what was set right is kept");
    is_number(o.server.recipient_limit, 17, "what is a mistake");
    is_number(o.slices, 4, "and the default");
    is_string(o.control, "/run/c", "the socket");
    ok_named(o.relay == NULL && o.user == NULL, "of other keys nothing is believed");
    settings_free(&s);
    finish(&p);
    begin(&p, "listne = x\nhostname = no name\n", true);
    ok_named(read_it(&p, &o) == NULL, "a host name that is a mistake, and no daemon");
    put_about(&p, "hostname = no name either\nmessage_size_limit = 1\n");
    ok_named(read_it(&p, &o) == NULL, "a daemon cannot say what no file could");
    finish(&p);
}

TEST(spool)
{
    struct place p;
    struct options o;
    begin(&p, "spol = /x\n", false);
    ok_named(read_it(&p, &o) == NULL, "a spool that was mistyped is not guessed");
    finish(&p);
    begin(&p, "listne = x\n", true);
    struct settings *s = read_it(&p, &o);
    ok_named(s != NULL, "one that was named needs no daemon");
    is_string(o.spool, p.spool, "and is the one");
    settings_free(&s);
    finish(&p);
}

TEST(write)
{
    struct place p;
    struct options o;
    struct disk *disk;
    struct disk_info info;
    begin(&p, "hostname = file.test\nrecipient_limit = 5\n", true);
    put_about(&p, "old\n");
    struct settings *s = read_it(&p, &o);
    if (s == NULL || disk_open(&disk, p.spool, false) != 0)
        abort();
    about_write(disk, &o);
    ok_named(disk_inspect(disk, "lock/about", &info) == 0 && info.mode == 0644,
             "everybody may read it");
    ok_named(disk_inspect(disk, "lock/about.new", &info) < 0, "nothing is left beside");
    settings_free(&s);
    finish(&p);
    about_write(disk, &(struct options){0}); /* no directory: not reported */
    ok_named(disk_inspect(disk, "lock/about", &info) < 0, "without a spool none is made");
    disk_close(&disk);
}
