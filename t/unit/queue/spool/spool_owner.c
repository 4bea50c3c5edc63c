/* Files that root has made in a spool go to its user, and nothing else does. For
 * root. */
#include "base/sandbox/identity.h"
#include "queue/spool/spool.h"
#include "queue/spool/spool_owner.h"
#include "t/support/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/socket.h>
#include <unistd.h>

enum { USER = 65534, GROUP = 65533, OTHER = 12345, PATH_SIZE = 300 };

struct place {
    char root[64], spool[PATH_SIZE];
};

static void
path_in(const struct place *p, const char *name, char out[PATH_SIZE])
{
    snprintf(out, PATH_SIZE, "%s/%.200s", p->root, name);
}

static void
begin(struct place *p)
{
    snprintf(p->root, sizeof(p->root), "/tmp/petrel-owner-XXXXXX");
    if (mkdtemp(p->root) == NULL)
        abort();
    path_in(p, "spool", p->spool);
}

static int
on_found(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    return remove(path);
}

static void
finish(const struct place *p)
{
    if (nftw(p->root, on_found, 16, FTW_DEPTH | FTW_PHYS) != 0)
        abort();
}

static void
make_file(const struct place *p, const char *name, unsigned mode)
{
    char path[PATH_SIZE];
    path_in(p, name, path);
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file < 0 || fchmod(file, mode) != 0)
        abort();
    close(file);
}

static void
make_directory(const struct place *p, const char *name)
{
    char path[PATH_SIZE];
    path_in(p, name, path);
    if (mkdir(path, 0755) != 0)
        abort();
}

/* -1: it is not there. */
static int
owner_of(const struct place *p, const char *name)
{
    char path[PATH_SIZE];
    struct stat status;
    path_in(p, name, path);
    return lstat(path, &status) == 0 ? (int)status.st_uid : -1;
}

static void
set_owner(const struct place *p, const char *name, unsigned user)
{
    char path[PATH_SIZE];
    path_in(p, name, path);
    if (lchown(path, user, user) != 0)
        abort();
}

static void
make_socket(const struct place *p, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    char path[PATH_SIZE];
    path_in(p, name, path);
    if (strlen(path) >= sizeof(address.sun_path))
        abort();
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        abort();
    close(fd);
}

static void
link_as(const struct place *p, const char *from, const char *to, bool hard)
{
    char one[PATH_SIZE], two[PATH_SIZE];
    path_in(p, from, one);
    path_in(p, to, two);
    if ((hard ? link(one, two) : symlink(one, two)) != 0)
        abort();
}

TEST(new)
{
    char name[PATH_SIZE];
    bool all = true;
    FIXTURE(place, p, begin, finish);
    ok_named(spool_owner_give(p.spool, USER, GROUP) > 0, "a spool that is missing");
    for (unsigned i = 0; i < SPOOL_DIRS; i++) {
        snprintf(name, sizeof(name), "spool/%s", spool_dir_name((enum spool_dir)i));
        all = all && owner_of(&p, name) == USER;
    }
    ok_named(all && owner_of(&p, "spool") == USER, "is made, and is the user's");
    is_number(spool_owner_of(p.spool), USER, "who owns it can be asked");
    is_number(spool_owner_of("/nowhere/at/all"), 0, "nobody owns what is not there");
    is_number(spool_owner_give(p.spool, USER, GROUP), 0, "then there is nothing to do");
}

/* As a daemon without `user` leaves it. */
TEST(of_root)
{
    FIXTURE(place, p, begin, finish);
    ok_named(spool_owner_give(p.spool, 0, 0) > 0, "root's own");
    make_file(&p, "spool/lock/daemon", 0600);
    make_file(&p, "spool/info/one", 0600);
    make_file(&p, "spool/mess/one", 0600);
    make_file(&p, "spool/corrupt/one.note", 0600);
    make_directory(&p, "spool/journal");
    make_directory(&p, "spool/journal/0-1023");
    make_file(&p, "spool/journal/0-1023/00000001", 0600);
    make_directory(&p, "spool/oauth");
    make_file(&p, "spool/oauth/0123456789abcdef", 0600);
    make_file(&p, "spool/oauth/0123456789abcdef.lock", 0600);
    make_socket(&p, "spool/control");
    ok_named(spool_owner_give(p.spool, USER, GROUP) > 10, "goes to the user");
    is_number(owner_of(&p, "spool/lock/daemon"), USER, "the lock");
    is_number(owner_of(&p, "spool/info/one"), USER, "an envelope");
    is_number(owner_of(&p, "spool/mess/one"), USER, "content that only root can read");
    is_number(owner_of(&p, "spool/corrupt/one.note"), USER, "what is damaged");
    is_number(owner_of(&p, "spool/journal/0-1023/00000001"), USER, "the journal");
    is_number(owner_of(&p, "spool/oauth/0123456789abcdef"), USER, "a login");
    is_number(owner_of(&p, "spool/oauth/0123456789abcdef.lock"), USER, "and its lock");
    is_number(owner_of(&p, "spool/control"), USER, "the socket of a daemon that died");
}

/* By root, before the first start. */
TEST(login_first)
{
    FIXTURE(place, p, begin, finish);
    make_directory(&p, "spool");
    make_directory(&p, "spool/oauth");
    make_file(&p, "spool/oauth/0123456789abcdef", 0600);
    ok_named(spool_owner_give(p.spool, USER, GROUP) > 0, "a spool that has a login alone");
    is_number(owner_of(&p, "spool/oauth/0123456789abcdef"), USER, "gives it to the user");
    is_number(owner_of(&p, "spool/oauth"), USER, "with its directory");
    is_number(owner_of(&p, "spool/mess"), USER, "and is made");
}

/* One file of each start tells that root was there. */
TEST(later)
{
    FIXTURE(place, p, begin, finish);
    ok_named(spool_owner_give(p.spool, USER, GROUP) > 0, "the user's");
    make_file(&p, "spool/info/one", 0600);
    is_number(spool_owner_give(p.spool, USER, GROUP), 0,
              "without a trace of root's daemon no directory is walked through");
    make_file(&p, "spool/lock/about", 0644);
    is_number(spool_owner_give(p.spool, USER, GROUP), 2, "with one they are");
    is_number(owner_of(&p, "spool/info/one"), USER, "and all is given");
}

TEST(planted)
{
    char path[PATH_SIZE];
    FIXTURE(place, p, begin, finish);
    ok_named(spool_owner_give(p.spool, 0, 0) > 0, "root's own");
    make_file(&p, "secret", 0600);
    make_file(&p, "linked", 0600);
    link_as(&p, "linked", "spool/mess/hard", true);
    link_as(&p, "secret", "spool/mess/soft", false);
    make_directory(&p, "elsewhere");
    make_file(&p, "elsewhere/file", 0600);
    make_file(&p, "spool/mess/injected", 0644);
    make_file(&p, "spool/todo/stranger", 0600);
    set_owner(&p, "spool/todo/stranger", OTHER);
    make_directory(&p, "spool/todo/deep");
    make_file(&p, "spool/todo/deep/file", 0600);
    set_owner(&p, "spool/todo/deep", OTHER);
    path_in(&p, "spool/info", path);
    if (rmdir(path) != 0)
        abort();
    link_as(&p, "elsewhere", "spool/journal", false);
    ok_named(spool_owner_give(p.spool, USER, GROUP) > 0, "planted things");
    is_number(owner_of(&p, "linked"), 0, "a file with a second name stays root's");
    is_number(owner_of(&p, "secret"), 0, "so does what a link leads to");
    is_number(owner_of(&p, "spool/mess/soft"), 0, "and the link");
    is_number(owner_of(&p, "elsewhere/file"), 0, "no link to a directory is followed");
    is_number(owner_of(&p, "spool/mess/injected"), 0,
              "what can be read as it is stays: whose it was can be told");
    is_number(owner_of(&p, "spool/todo/stranger"), OTHER, "a stranger's stays so");
    is_number(owner_of(&p, "spool/todo/deep/file"), 0,
              "a stranger's directory is "
              "not entered");
    is_number(owner_of(&p, "spool/info"), USER, "a directory that was missing is made");
}

TEST(not_ours)
{
    struct place p;
    begin(&p);
    make_directory(&p, "spool");
    make_directory(&p, "spool/lib");
    is_number(spool_owner_give(p.spool, USER, GROUP), 0, "spool = /var");
    is_number(owner_of(&p, "spool"), 0, "gives nothing away");
    is_number(owner_of(&p, "spool/mess"), -1, "and makes nothing");
    finish(&p);
    begin(&p);
    make_directory(&p, "spool");
    set_owner(&p, "spool", OTHER);
    is_number(spool_owner_give(p.spool, USER, GROUP), 0, "somebody else's");
    is_number(owner_of(&p, "spool"), OTHER, "stays so");
    finish(&p);
    begin(&p);
    make_directory(&p, "spool");
    make_directory(&p, "spool/lost+found");
    ok_named(spool_owner_give(p.spool, USER, GROUP) > 0, "a volume of its own");
    is_number(owner_of(&p, "spool"), USER, "is given");
    is_number(owner_of(&p, "spool/lost+found"), 0, "but for what the system needs");
    finish(&p);
    begin(&p);
    make_file(&p, "spool", 0600);
    ok_named(spool_owner_give(p.spool, USER, GROUP) < 0, "a file is no spool");
    finish(&p);
}

TEST(names)
{
    struct identity who;
    char name[IDENTITY_NAME_MAX];
    ok_named(identity_find_number(&who, 0) && who.uid == 0, "root has a name");
    ok_named(!identity_find_number(&who, OTHER * 100), "not every number has one");
    identity_name(name);
    is_string(name, "root", "who we are");
    if (seteuid(OTHER * 100) != 0)
        abort();
    identity_name(name);
    is_string(name, "1234500", "a number without a name");
    if (seteuid(0) != 0)
        abort();
}

int
main(void)
{
    if (geteuid() != 0) {
        puts("1..0 # SKIP only root can give");
        return 0;
    }
    umask(022);
    tap_tests("");
    return done();
}
