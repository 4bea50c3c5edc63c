/* A walk through the queue: which messages, where it goes on, and that it changes nothing. */
#include "admin/answer/list_answer.h"

#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/until.h"

enum { SOME = 20, MESSAGES = 7 };

static char folder[40];
static struct world w;
static struct filter filter;

static struct list_walk
begin_walk(void)
{
    struct list_walk walk = {.loop = w.loop, .manager = w.manager, .questions = control_server_questions(w.control), .filter = &filter};
    return walk;
}

/* How many are wanted; the last one's id is in name. */
static size_t
walk_through(struct list_walk *walk, char name[ID_LENGTH + 1])
{
    size_t found = 0;
    while (list_walk_read(walk))
        ;
    while (!list_walk_is_over(walk)) {
        json_t *listing = list_walk_next(walk);
        if (listing == NULL)
            continue;
        found++;
        text_copy(name, ID_LENGTH + 1, text_from(json_string_value(json_object_get(listing, "queue_id"))));
        is_string(json_string_value(json_object_get(listing, "queue_name")), "hold", "its place");
        json_decref(listing);
    }
    return found;
}

TEST(all)
{
    char first[ID_LENGTH + 1] = "", name[ID_LENGTH + 1] = "";
    filter_clear(&filter);
    struct list_walk walk = begin_walk();
    is_number((long)walk_through(&walk, first), MESSAGES, "all");
    is_number((long)list_walk_seen(&walk), MESSAGES, "looked at");
    ok_named(list_walk_rest(&walk, name) == NULL, "nothing more");
    list_walk_end(&walk);
    walk = begin_walk();
    while (list_walk_read(&walk))
        ;
    json_decref(list_walk_next(&walk));
    json_decref(list_walk_next(&walk));
    const char *rest = list_walk_rest(&walk, name);
    ok_named(rest != NULL, "two of them, and where it goes on");
    list_walk_end(&walk);
    walk = begin_walk();
    walk.has_after = id_parse(text_from(name), &walk.after);
    is_number((long)walk_through(&walk, name), MESSAGES - 2, "the others");
    list_walk_end(&walk);
    walk = begin_walk();
    walk.has_after = id_parse(text_from(first), &walk.after);
    is_number((long)walk_through(&walk, name), 0, "behind the last there is none");
    ok(list_walk_rest(&walk, name) == NULL);
    list_walk_end(&walk);
}

TEST(some)
{
    char name[ID_LENGTH + 1] = "";
    filter_clear(&filter);
    ok(filter_add_id(&filter, w.id));
    struct list_walk walk = begin_walk();
    is_number((long)walk_through(&walk, name), 1, "one id");
    list_walk_end(&walk);
    filter_clear(&filter);
    filter.to = "elsewhere.test";
    walk = begin_walk();
    is_number((long)walk_through(&walk, name), 0, "no such recipient");
    is_number((long)list_walk_seen(&walk), MESSAGES, "all were looked at");
    list_walk_end(&walk);
    filter.to = "keep.test";
    walk = begin_walk();
    is_number((long)walk_through(&walk, name), MESSAGES, "all are to that domain");
    list_walk_end(&walk);
    filter.place = "deferred";
    walk = begin_walk();
    is_number((long)walk_through(&walk, name), 0, "none is deferred");
    list_walk_end(&walk);
}

/* A message that goes meanwhile, and one that cannot be read. */
TEST(gone)
{
    char why[MANAGER_WHY_MAX], name[ID_LENGTH + 1] = "";
    filter_clear(&filter);
    struct list_walk walk = begin_walk();
    while (list_walk_read(&walk))
        ;
    ok(manager_operate(w.manager, MANAGER_REMOVE, w.id, why) == MANAGER_DONE);
    control_turns(&w, SOME);
    size_t found = 0;
    while (!list_walk_is_over(&walk)) {
        json_t *listing = list_walk_next(&walk);
        found += listing != NULL;
        json_decref(listing);
    }
    is_number((long)found, MESSAGES - 1, "it is not listed");
    list_walk_end(&walk);
    filter.place = "corrupt";
    walk = begin_walk();
    is_number((long)walk_through(&walk, name), 0, "none is quarantined");
    list_walk_end(&walk);
}

/* --- Subjects -------------------------------------------------------------------------- */

static void
post_header(const char *header)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    int before = (int)w.accepted;
    ok(envelope_add(e, TEXT("user@keep.test"), NOTIFY_NEVER, TEXT("")));
    struct queue_draft *draft = queue_begin(manager_queue(w.manager), 0, &refusal);
    ok(queue_write(draft, text_from(header)) && queue_write(draft, TEXT("\r\nSubject: body\r\n")));
    queue_name(draft, e);
    w.id = e->id;
    queue_commit(&draft, &e, on_stored, &w);
    until(&w, (int)w.accepted == before + 1);
    control_turns(&w, SOME);
}

static char long_field[20 * 1024], cut[300], cut_wanted[300];

TEST(subjects)
{
    memset(long_field, 'x', sizeof(long_field) - 1);
    memcpy(long_field, "X: ", 3);
    memcpy(long_field + sizeof(long_field) - 16, "\r\nSubject: far\r\n", 15);
    snprintf(cut, sizeof(cut), "Subject: %0248d\xe2\x82\xac\xe2\x82\xac\r\n", 0);
    snprintf(cut_wanted, sizeof(cut_wanted), "%0248d", 0);
    const struct {
        const char *header, *want;
    } rows[] = {
        {"A: b\r\nsubject:  one \r\n",                       "one"                },
        {"Subject: a\r\n =?utf-8?q?b?=\r\nSubject: c\r\n",  "a =?utf-8?q?b?="    },
        {"Subject: Gr\xc3\xbc\xc3\x9f" "e\r\n",              "Gr\xc3\xbc\xc3\x9f" "e"},
        {"Subject: a\x1b[31m\xff\r\n",                       "a\\x1b[31m\\xff"    },
        {"Subject:\r\n",                                     ""                   },
        {"A: b\r\n",                                         NULL                 },
        {"no header\r\nSubject: x\r\n",                     NULL                 },
        {cut,                                                cut_wanted           },
        {long_field,                                         NULL                 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        post_header(rows[i].header);
        filter_clear(&filter);
        ok(filter_add_id(&filter, w.id));
        for (int with = 0; with < 2; with++) {
            struct list_walk walk = begin_walk();
            walk.with_subjects = with == 1;
            while (list_walk_read(&walk))
                ;
            json_t *listing = NULL;
            while (listing == NULL && !list_walk_is_over(&walk))
                listing = list_walk_next(&walk);
            ok_named(listing != NULL, "it is listed");
            const char *subject = json_string_value(json_object_get(listing, "subject")), *want = with ? rows[i].want : NULL;
            is_string(subject ? subject : "none", want ? want : "none", with ? "its subject" : "not without being asked");
            json_decref(listing);
            list_walk_end(&walk);
        }
    }
}

int
main(void)
{
    folder_make(folder, sizeof(folder), "list");
    control_world_begin(&w, folder, TEXT("keep.test hold\n* discard"));
    control_turns(&w, SOME);
    for (unsigned i = 0; i < MESSAGES; i++)
        post_mail(&w, 1, "keep.test");
    until(&w, w.accepted == MESSAGES && queue_count_apart(manager_queue(w.manager)).held == MESSAGES);
    control_turns(&w, SOME);
    tap_tests("");
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
