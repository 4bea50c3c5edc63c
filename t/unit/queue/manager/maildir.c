/* Delivery into Maildirs, on the real disk. */
#include "queue/manager/maildir.h"


#include "t/support/maildir_now.h"
#include "t/support/queue_kit.h"

#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char home[64];
static struct kit kit;

static int
remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

static struct target
target_of(const char *pattern, bool create)
{
    struct target target = {.kind = TARGET_MAILDIR, .create = create};
    snprintf(target.path, sizeof(target.path), "%s", pattern);
    return target;
}

static const char *
path_for(const char *pattern, const char *mailbox)
{
    static char path[5000];
    struct target target = target_of(pattern, false);
    struct address address;
    struct buffer out;
    if (!address_parse(text_from(mailbox), &address))
        return "(unparsable)";
    buffer_init(&out, 4000);
    bool good = maildir_path(&target, &address, true, &out);
    snprintf(path, sizeof(path), "%.*s", TEXT_ARGS(buffer_text(&out)));
    buffer_free(&out);
    return good ? path : "(none)";
}

TEST(path)
{
    char mailbox[400], label[100];
    is_string(path_for("/mail/%u", "joe@example.org"), "/mail/joe", "the user");
    is_string(path_for("/mail/%d/%u/x", "Joe@Example.ORG"), "/mail/example.org/joe/x",
              "domains and users fold");
    is_string(path_for("/mail/%u", "joe+tag@x"), "/mail/joe+tag", "plus stays");
    is_string(path_for("/100%%/all", "joe@x"), "/100%/all", "a percent");
    is_string(path_for("/mail/%u", "\"joe doe\"@x"), "/mail/joe doe", "quotes go");
    is_string(path_for("/mail/%u", "\"a/../../etc\"@x"), "(none)", "no slash");
    is_string(path_for("/mail/%u", "\".ssh\"@x"), "(none)", "no leading dot");
    is_string(path_for("/mail/%u", "\"..\"@x"), "(none)", "no dots");
    is_string(path_for("/mail/all", "\"..\"@x"), "/mail/all",
              "unless it does not matter");
    is_string(path_for("/mail/%d", "joe@[192.0.2.1]"), "/mail/[192.0.2.1]",
              "a literal");
    struct target target = target_of("/%u", false);
    struct address address = {.local = TEXT("a\nb")};
    struct buffer out;
    buffer_init(&out, 4000);
    ok_named(!maildir_path(&target, &address, true, &out), "no control bytes");
    buffer_clear(&out);
    address.local = TEXT("postmaster");
    ok_named(maildir_path(&target, &address, true, &out),
             "postmaster alone has a mailbox");
    target = target_of("/%d/%u", false);
    ok_named(!maildir_path(&target, &address, true, &out), "but no domain");
    buffer_free(&out);
    buffer_init(&out, 8);
    snprintf(mailbox, sizeof(mailbox), "%s", "longer-than-eight@x");
    ok(address_parse(text_from(mailbox), &address));
    target = target_of("/%u", false);
    ok_named(!maildir_path(&target, &address, true, &out), "no path above the limit");
    buffer_free(&out);
    snprintf(label, sizeof(label), "%.64s", path_for("/%u/%u/%u", "a@x"));
    is_string(label, "/a/a/a", "as often as written");
}

/* --- Delivery -------------------------------------------------------------------- */

static struct envelope *
message(const char *sender, const char *recipient, struct text content)
{
    const char *const list[] = {recipient, NULL};
    return queue_kit_accept(&kit, kit_envelope(sender, list), content);
}

static struct outcome
deliver(const char *pattern, bool create, struct envelope *e, const char *host)
{
    char whole[1024];
    snprintf(whole, sizeof(whole), "%s/%s", home, pattern);
    struct target target = target_of(whole, create);
    return maildir_deliver(kit.queue, kit.loop, &target, host, e, 0);
}

static unsigned
count_in(const char *maildir, const char *space)
{
    char path[300];
    struct dirent *entry;
    unsigned count = 0;
    snprintf(path, sizeof(path), "%s/%s/%s", home, maildir, space);
    DIR *directory = opendir(path);
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        count += entry->d_name[0] != '.';
    if (directory != NULL)
        closedir(directory);
    return count;
}

static void
only_file_in(const char *maildir, char name[300])
{
    char path[600];
    struct dirent *entry;
    name[0] = '\0';
    snprintf(path, sizeof(path), "%s/%s/new", home, maildir);
    DIR *directory = opendir(path);
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.')
            snprintf(name, 300, "%.299s", entry->d_name);
    if (directory != NULL)
        closedir(directory);
}

/* Name and content of the only file in new/, which is removed. */
static struct text
take_new(const char *maildir, char name[300])
{
    static char content[400000];
    char path[600];
    size_t size = 0;
    only_file_in(maildir, name);
    snprintf(path, sizeof(path), "%s/%s/new/%s", home, maildir, name);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        size = fread(content, 1, sizeof(content), file);
        fclose(file);
        unlink(path);
    }
    return text_of(content, size);
}

static void
make_mailbox(const char *name)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", home, name);
    if (mkdir(path, 0700) != 0)
        abort();
}

TEST(deliver)
{
    char name[300];
    struct stat status;
    make_mailbox("joe");
    struct envelope *e = message("s@example.org", "joe@example.org",
                                 TEXT("Subject: x\r\n\r\n.dot\r\nlast line\r\n"));
    struct outcome o = deliver("%u", false, e, "mail.example.org");
    is_number(o.verdict, VERDICT_DELIVERED, "delivered");
    is_number(o.code, 250, "250");
    is_string(o.enhanced, "2.0.0", "2.0.0");
    is_string(o.text, "delivered to maildir", "says so");
    ok(strstr(o.remote, "/joe") != NULL);
    is_number(count_in("joe", "tmp"), 0, "tmp/ is empty");
    is_number(count_in("joe", "new"), 1, "new/ has it");
    char path[300];
    snprintf(path, sizeof(path), "%s/joe/cur", home);
    ok_named(stat(path, &status) == 0 && (status.st_mode & 07777) == 0700,
             "cur/ is made, and private");
    is_text(take_new("joe", name),
            TEXT("Return-Path: <s@example.org>\nDelivered-To: joe@example.org\n"
                 "Received: by test\nSubject: x\n\n.dot\nlast line\n"),
            "the text has LF line ends and the lines in front");
    int64_t seconds = 0, micro = 0;
    long pid = 0;
    int used = 0;
    unsigned long long number = 0;
    ok_named(sscanf(name, "%" SCNd64 ".M%06" SCNd64 "P%ldQ%llu.%n", &seconds, &micro,
                    &pid, &number, &used) == 4 &&
                 strcmp(name + used, "mail.example.org") == 0 && pid == getpid() &&
                 seconds > 1700000000,
             "the name has the Maildir form");
    envelope_free(&e);

    e = message("", "joe@example.org", TEXT("x"));
    o = deliver("joe", false, e, "a/b:c");
    is_number(o.verdict, VERDICT_DELIVERED, "a mailbox without pattern");
    is_text(
        take_new("joe", name),
        TEXT("Return-Path: <>\nDelivered-To: joe@example.org\nReceived: by test\nx\n"),
        "null sender, and the last line gets its end");
    ok_named(strstr(name, ".a\\057b\\072c") != NULL, "odd host names are escaped");
    for (unsigned i = 0; i < 50; i++)
        (void)deliver("%u", false, e, "h");
    is_number(count_in("joe", "new"), 50, "50 in one turn have 50 names");
    envelope_free(&e);
}

TEST(line_ends)
{
    static char content[200000], want[200000];
    char name[300];
    size_t size = 0, wanted = 0;
    make_mailbox("ann");
    /* CRs fall on every place around the borders of the pieces. */
    static const char *const from[] = {"\r\n", "\r\r\n", "\rq", "\n", "xyz"};
    static const char *const to[] = {"\n", "\r\n", "\rq", "\n", "xyz"};
    while (size < 150000) {
        unsigned kind = (unsigned)(size * 7 + size / 1000) % 5;
        memcpy(content + size, from[kind], strlen(from[kind]));
        memcpy(want + wanted, to[kind], strlen(to[kind]));
        size += strlen(from[kind]);
        wanted += strlen(to[kind]);
    }
    content[size++] = 'z';
    memcpy(want + wanted, "z\n", 2);
    wanted += 2;
    struct envelope *e = message("s@x", "ann@x", text_of(content, size));
    struct outcome o = deliver("%u", false, e, "h");
    is_number(o.verdict, VERDICT_DELIVERED, "a long message");
    struct text got = take_new("ann", name);
    size_t head =
        strlen("Return-Path: <s@x>\nDelivered-To: ann@x\nReceived: by test\n");
    ok_named(got.length == head + wanted && memcmp(got.at + head, want, wanted) == 0,
             "every CRLF is an LF, every other CR stays");
    envelope_free(&e);
}

/* A Maildir gets these lines of a message, behind those in front. */
static void
kept_as(bool ours, struct text content, struct text want, const char *name)
{
    char file[300];
    struct envelope *e = message("s@x", "kim@x", content);
    e->ours = ours;
    (void)deliver("%u", false, e, "h");
    struct text got = take_new("kim", file);
    is_text(text_after(got, strlen("Return-Path: <s@x>\nDelivered-To: kim@x\n"
                                   "Received: by test\n")),
            want, name);
    envelope_free(&e);
}

TEST(header)
{
    make_mailbox("kim");
    kept_as(false,
            TEXT("A: b\r\nreturn-path: <old@x>,\r\n <y>\r\nBcc: z\r\n\r\nReturn-Path: "
                 "q\r\n"),
            TEXT("A: b\nBcc: z\n\nReturn-Path: q\n"), "an earlier Return-Path goes");
    kept_as(true, TEXT("Subject: alarm\r\ndisk is full\r\n"),
            TEXT("Subject: alarm\n\ndisk is full\n"),
            "our own mail gets its empty line");
    kept_as(false, TEXT("Subject: alarm\r\ndisk is full\r\n"),
            TEXT("Subject: alarm\ndisk is full\n"), "that of others has its signature");
    kept_as(true, TEXT("abc"), TEXT("\nabc\n"), "a body alone, without a line end");
    kept_as(true, TEXT("A: b"), TEXT("A: b\n"), "a header alone");
    kept_as(true, TEXT("A: b\r"), TEXT("A: b\n"), "with half a line end");
    kept_as(false, TEXT("A: b\r\n\r\nx\r"), TEXT("A: b\n\nx\n"),
            "a body with half of one");
    kept_as(true, TEXT(""), TEXT(""), "nothing");
    kept_as(true, TEXT("\r\nx\r\n"), TEXT("\nx\n"), "no header");

    /* Borders of pieces, and a header that is too long to be read. */
    static char large[400000], want[400000];
    for (size_t fields = 3000; fields <= 50000; fields += 47000) {
        size_t length = 0, wanted = 0;
        for (size_t i = 0; i < fields; i++) {
            length += (size_t)sprintf(large + length, "A: %zu\r\n", i % 10);
            wanted += (size_t)sprintf(want + wanted, "A: %zu\n", i % 10);
        }
        length += (size_t)sprintf(large + length, "Return-Path: <z>\r\n\r\nx\r\n");
        wanted += (size_t)sprintf(want + wanted, "%s\nx\n",
                                  fields == 3000 ? "" : "Return-Path: <z>\n");
        kept_as(true, text_of(large, length), text_of(want, wanted),
                fields == 3000 ? "a long header" : "one that stays as it is");
    }
}

TEST(forged_sender)
{
    char name[300];
    struct envelope *e = message("s@x>\nX-Forged: yes", "joe@x", TEXT("x"));
    (void)take_new("joe", name);
    make_mailbox("eve");
    (void)deliver("eve", false, e, "h");
    ok_named(text_starts(take_new("eve", name),
                         TEXT("Return-Path: <s@x>?X-Forged: yes>\nDelivered-To")),
             "a sender never makes a line of its own");
    envelope_free(&e);
}

static bool
exists(const char *pattern, bool create, const char *mailbox)
{
    char whole[1024];
    struct address address;
    snprintf(whole, sizeof(whole), "%s/%s", home, pattern);
    struct target target = target_of(whole, create);
    return address_parse(text_from(mailbox), &address) &&
           maildir_exists(&target, &address);
}

TEST(missing)
{
    struct envelope *e = message("s@x", "nobody@x", TEXT("x"));
    struct outcome o = deliver("%u", false, e, "h");
    is_number(o.verdict, VERDICT_FAILED, "no such mailbox");
    is_number(o.code, 550, "550");
    is_string(o.enhanced, "5.1.1", "5.1.1");
    ok(!exists("%u", false, "nobody@x") && exists("%u", false, "joe@x"));
    ok_named(exists("%u", true, "nobody@x"), "it may be made");
    ok_named(exists("new/for/all", false, "nobody@x"), "one for all may always");
    ok_named(!exists("%u", true, "\"../x\"@x"), "but not outside");
    o = deliver("deep/%u/Maildir", true, e, "h");
    is_number(o.verdict, VERDICT_DELIVERED, "?create=yes makes it");
    is_number(count_in("deep/nobody/Maildir", "new"), 1, "with all parents");
    o = deliver("shared", false, e, "h");
    is_number(o.verdict, VERDICT_DELIVERED, "one for all is made");
    envelope_free(&e);
    e = message("s@x", "\"..\"@x", TEXT("x"));
    o = deliver("%u", true, e, "h");
    is_string(o.enhanced, "5.1.1", "a mailbox that cannot be");
    envelope_free(&e);
    e = message("s@x", "not an address", TEXT("x"));
    o = deliver("%u", true, e, "h");
    is_string(o.enhanced, "5.1.1", "nor one that is none");
    envelope_free(&e);
    e = message("s@x", "postmaster", TEXT("x"));
    o = deliver("%u", true, e, "h");
    is_number(o.verdict, VERDICT_DELIVERED, "postmaster without a domain");
    envelope_free(&e);
}

/* Alice and alice are one person; a mailbox from before that is still found. */
TEST(letters)
{
    struct envelope *e = message("s@x", "Alice@x", TEXT("x"));
    struct envelope *old = message("s@x", "Carol@x", TEXT("x"));
    make_mailbox("alice");
    make_mailbox("Carol");
    ok(exists("%u", false, "ALICE@x") && exists("%u", false, "Carol@x"));
    ok_named(!exists("%u", false, "carol@x"), "as it was");
    struct outcome o = deliver("%u", true, e, "h");
    is_number(o.verdict, VERDICT_DELIVERED, "Alice");
    is_number(count_in("alice", "new"), 1, "is alice");
    o = deliver("%u", true, old, "h");
    is_number(o.verdict, VERDICT_DELIVERED, "Carol");
    is_number(count_in("Carol", "new"), 1, "has her old mailbox");
    is_number(count_in("carol", "new"), 0, "and no other");
    envelope_free(&e);
    envelope_free(&old);
}

/* user+tag is user, unless there is a mailbox for it. */
TEST(tags)
{
    static const struct {
        const char *recipient, *mailbox;
        bool create;
    } rows[] = {
        {"lea+news@x",       "lea",     false},
        {"LEA+a+b@x",        "lea",     false},
        {"lea+a/b@x",        "lea",     false},
        {"lea+own@x",        "lea+own", false},
        {"max+news@x",       "max",     true },
        {"\"lea+quoted\"@x", "",        false},
        {"+lea@x",           "",        false},
        {"nobody+lea@x",     "",        false},
    };
    make_mailbox("tags");
    make_mailbox("tags/lea");
    make_mailbox("tags/lea+own");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char path[100], file[300];
        bool known = rows[i].mailbox[0] != '\0';
        struct envelope *e = message("s@x", rows[i].recipient, TEXT("x"));
        struct outcome o = deliver("tags/%u", rows[i].create, e, "h");
        snprintf(path, sizeof(path), "tags/%s", rows[i].mailbox);
        is_number(o.verdict, known ? VERDICT_DELIVERED : VERDICT_FAILED,
                  rows[i].recipient);
        ok_named(exists("tags/%u", rows[i].create, rows[i].recipient) == known,
                 "RCPT knows the same");
        ok_named(!known || take_new(path, file).length > 0, rows[i].mailbox);
        envelope_free(&e);
    }
}

/* Only the names in a file have mailboxes made. */
TEST(names)
{
    char path[300];
    struct envelope *e = message("s@x", "Dave@x", TEXT("x"));
    struct envelope *typo = message("s@x", "dvae@x", TEXT("x"));
    struct address dave, tagged, mistyped, postmaster = {.local = TEXT("postmaster")};
    struct target target;
    snprintf(path, sizeof(path), "%s/by-name/%%u", home);
    target = target_of(path, true);
    snprintf(target.users, sizeof(target.users), "%s/names", home);
    FILE *names = fopen(target.users, "w");
    if (names == NULL || fputs("dave:x:1001:1001::/home/dave:\n", names) < 0 ||
        fclose(names) != 0)
        abort();
    ok(address_parse(TEXT("Dave@x"), &dave) &&
       address_parse(TEXT("dvae@x"), &mistyped));
    ok(maildir_exists(&target, &dave));
    ok_named(!maildir_exists(&target, &mistyped), "a typing error");
    ok_named(maildir_exists(&target, &postmaster), "postmaster is known to all");
    struct outcome o = maildir_deliver(kit.queue, kit.loop, &target, "h", e, 0);
    is_number(o.verdict, VERDICT_DELIVERED, "a user's mailbox is made");
    is_number(count_in("by-name/dave", "new"), 1, "in lower case");
    o = maildir_deliver(kit.queue, kit.loop, &target, "h", typo, 0);
    is_string(o.enhanced, "5.1.1", "nobody else's is, whatever way the mail came");
    ok(address_parse(TEXT("Dave+news@x"), &tagged));
    ok_named(maildir_exists(&target, &tagged), "a user's tag is the user's");
    make_mailbox("by-name/dvae");
    ok_named(maildir_exists(&target, &mistyped), "one that is there is there");
    ok(unlink(target.users) == 0 && mkdir(target.users, 0700) == 0);
    ok_named(maildir_exists(&target, &dave), "who has one needs no names");
    ok(rmdir(target.users) == 0);
    snprintf(path, sizeof(path), "%s/by-name/%%d/all", home);
    snprintf(target.path, sizeof(target.path), "%s", path);
    ok_named(maildir_exists(&target, &dave), "without %u it is nobody's own");
    /* The names cannot be read: mail waits. */
    snprintf(target.path, sizeof(target.path), "%s/later/%%u", home);
    snprintf(target.users, sizeof(target.users), "%s", home);
    ok_named(maildir_exists(&target, &dave), "not refused when nobody can tell");
    o = maildir_deliver(kit.queue, kit.loop, &target, "h", e, 0);
    is_number(o.verdict, VERDICT_DEFERRED, "but deferred");
    ok_named(strstr(o.text, home) != NULL && strstr(o.text, "Is a directory") != NULL,
             o.text);
    envelope_free(&e);
    envelope_free(&typo);
}

TEST(trouble)
{
    char path[300];
    struct envelope *e = message("s@x", "zoe@x", TEXT("x"));
    make_mailbox("zoe");
    snprintf(path, sizeof(path), "%s/zoe/tmp", home);
    fclose(fopen(path, "w"));
    struct outcome o = deliver("%u", false, e, "h");
    is_number(o.verdict, VERDICT_DEFERRED, "a file instead of tmp/ defers");
    is_string(o.enhanced, "4.3.0", "4.3.0");
    ok_named(strstr(o.text, "/zoe") != NULL &&
                 strstr(o.text, "Not a directory") != NULL,
             "with path and reason");
    unlink(path);
    snprintf(path, sizeof(path), "%s/file", home);
    fclose(fopen(path, "w"));
    o = deliver("file/%u", false, e, "h");
    is_string(o.enhanced, "5.1.1", "below a file there is no mailbox");

    char mess[400], id[ID_LENGTH + 1];
    id_format(e->id, id);
    snprintf(mess, sizeof(mess), "%s/spool/mess/%s", home, id);
    if (truncate(mess, 0) != 0)
        abort();
    o = deliver("%u", false, e, "h");
    is_number(o.verdict, VERDICT_DEFERRED, "content that was cut is not delivered");
    unlink(mess);
    o = deliver("%u", false, e, "h");
    is_number(o.verdict, VERDICT_DEFERRED, "content that is gone is not delivered");
    is_number(count_in("zoe", "tmp") + count_in("zoe", "new"), 0, "and leaves nothing");
    envelope_free(&e);
}

TEST(rights)
{
    char path[300];
    if (geteuid() != 0) {
        ok_named(true, "rights: # SKIP needs root to become somebody else");
        return;
    }
    struct envelope *e = message("s@x", "max@x", TEXT("x"));
    make_mailbox("max");
    snprintf(path, sizeof(path), "%s/max", home);
    chmod(home, 0755);
    chmod(path, 0700);
    if (seteuid(65534) != 0)
        abort();
    struct outcome o = deliver("%u", false, e, "h");
    bool asked = exists("%u", false, "max@x");
    if (seteuid(0) != 0)
        abort();
    is_number(o.verdict, VERDICT_DEFERRED, "without rights it is deferred");
    is_number(o.blame, BLAME_MESSAGE, "which is no other user's trouble");
    is_string(o.enhanced, "4.3.0", "4.3.0");
    ok_named(strstr(o.text, path) != NULL &&
                 strstr(o.text, "Permission denied") != NULL,
             "with path and reason");
    ok_named(asked, "and not refused at RCPT");
    envelope_free(&e);
}

/* The owner reads by the group what the daemon's user writes. */
TEST(group)
{
    static const char *const rooms[] = {"", "/tmp", "/new", "/cur"};
    static const struct {
        unsigned directory, file;
        const char *name;
    } rows[] = {
        {02770, 0660, "a group that may write"},
        {02750, 0640, "one that may read"     },
        {02700, 0600, "one that may nothing"  },
        {0770,  0600, "without the bit"       },
    };
    char path[700], name[300];
    struct stat status;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char mailbox[32], to[64];
        snprintf(mailbox, sizeof(mailbox), "group%zu", i);
        snprintf(to, sizeof(to), "%s@x", mailbox);
        struct envelope *e = message("s@x", to, TEXT("x"));
        for (size_t j = 0; j < 4; j++) {
            snprintf(path, sizeof(path), "%s/%s%s", home, mailbox, rooms[j]);
            if (mkdir(path, 0700) != 0 || chmod(path, rows[i].directory) != 0)
                abort();
        }
        struct outcome o = deliver("%u", false, e, "h");
        is_number(o.verdict, VERDICT_DELIVERED, rows[i].name);
        only_file_in(mailbox, name);
        snprintf(path, sizeof(path), "%s/%s/new/%s", home, mailbox, name);
        ok_named(stat(path, &status) == 0 && (status.st_mode & 07777) == rows[i].file,
                 rows[i].name);
        envelope_free(&e);
    }
}

int
main(void)
{
    char spool[100];
    snprintf(home, sizeof(home), "/tmp/petrel-maildir-XXXXXX");
    if (mkdtemp(home) == NULL)
        abort();
    snprintf(spool, sizeof(spool), "%s/spool", home);
    if (queue_kit_open(&kit, spool) != 0)
        abort();
    tap_tests("");
    kit_close(&kit);
    nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return done();
}
