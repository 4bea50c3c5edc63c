/* Three hosts and an engine of copies. */
#include "t/support/adoption_kit.h"

#include "queue/copies/copies_keys.h"
#include "queue/copies/copies_scripts.h"
#include "queue/queue_operator.h"
#include "t/support/must.h"

void
ids_add(struct ids *ids, struct id id)
{
    must(ids->count < IDS_MAX);
    ids->all[ids->count++] = id;
}

static bool
is_heard(void *context, const char *host)
{
    const struct site *s = context;
    return s->heard != NULL && strcmp(s->heard, host) == 0;
}

static const char *
site_closed(void *context)
{
    return ((struct site *)context)->host.closed;
}

void
site_start(struct site *s)
{
    kit_host_start(&s->host, s->w.loop, s->w.events, s->w.manager);
    adoption_write_who(s->settings.host, ++s->run, s->who);
    s->engine = sim_engine_new(s->g->database);
    s->adoption = adoption_new(&(struct adoption_setup){
        .loop = s->w.loop,
        .log = s->w.log,
        .events = s->w.events,
        .manager = s->w.manager,
        .take = s->host.take,
        .engine = s->engine,
        .keeper = (struct copies_keeper *)s,
        .settings = &s->settings,
        .identity = s->identity,
        .who = s->who,
        .is_heard = is_heard,
        .closed = site_closed,
        .context = s
    });
}

void
site_stop(struct site *s, bool is_good)
{
    if (!is_good && copies_engine_is_ready(s->engine))
        sim_engine_down(s->engine, false);
    adoption_free(&s->adoption);
    while (sim_engine_carry(s->engine))
        ;
    sim_engine_free(&s->engine);
    kit_host_stop(&s->host);
}

void
site_restart(struct site *s, bool is_good)
{
    site_stop(s, is_good);
    s->opened = s->closed = 0;
    s->durable = 0;
    world_restart(&s->w);
    site_start(s);
}

void
group_begin(struct group *g)
{
    static const char *const names[SITES] = {"relay1", "relay2", "relay3"};
    memset(g, 0, sizeof(*g));
    g->database = copies_database_new();
    for (unsigned i = 0; i < SITES; i++) {
        struct site *s = &g->sites[i];
        s->g = g;
        manager_world_begin(&s->w, ADOPTION_ROUTE);
        s->w.settings.queue.journal_size = 8 * 1024 * 1024;
        s->w.settings.queue.journal_message_max = 256 * 1024;
        world_restart(&s->w);
        for (unsigned n = 0; n < 5 * i; n++)
            (void)loop_random(s->w.loop); /* other names */
        s->host.name = names[i];
        s->run = 100 * (i + 1);
        snprintf(s->settings.host, sizeof(s->settings.host), "%s", names[i]);
        snprintf(s->settings.group, sizeof(s->settings.group), "mail");
        snprintf(s->identity, sizeof(s->identity), "%032u", i + 1);
        s->w.stalled = true;
        site_start(s);
    }
}

void
group_end(struct group *g)
{
    for (unsigned i = 0; i < SITES; i++) {
        site_stop(&g->sites[i], false);
        manager_world_end(&g->sites[i].w);
    }
    copies_database_free(&g->database);
}

void
group_pass(struct group *g, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += 50) {
        bool any = true;
        while (any) {
            any = false;
            for (unsigned i = 0; i < SITES; i++)
                any |= sim_engine_carry(g->sites[i].engine);
        }
        for (unsigned i = 0; i < SITES; i++)
            sim_loop_advance(g->sites[i].w.loop, 50);
    }
}

void
group_up(struct group *g, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sim_engine_up(g->sites[i].engine);
    group_pass(g, 3000);
}

void
key_of(const struct site *s, const char *suffix, char out[COPIES_KEY_MAX + 1])
{
    char name[COPIES_KEY_MAX];
    snprintf(name, sizeof(name), "%s:%s%s", s->settings.host, s->identity, suffix);
    copies_key(&s->settings, name, out);
}

void
site_copy(struct site *s, struct id id, unsigned batch)
{
    static char content[4 << 20];
    char key[COPIES_KEY_MAX + 1], name[COPIES_KEY_MAX + 1], number[12];
    struct envelope *e = queue_load(manager_queue(s->w.manager), id);
    struct buffer form, field, reply;
    buffer_init(&form, 1 << 20);
    buffer_init(&field, 1 << 20);
    buffer_init(&reply, 1 << 20);
    must(e != NULL && envelope_write_given(e, &form) &&
         buffer_format(&field, "%u\n", batch) && buffer_add(&field, buffer_text(&form)));
    int file = queue_content_open(manager_queue(s->w.manager), e);
    int64_t size =
        queue_content_read(manager_queue(s->w.manager), file, 0, content, sizeof(content));
    queue_content_close(manager_queue(s->w.manager), file);
    copies_key_owner(&s->settings, key);
    key_of(s, "", name);
    snprintf(number, sizeof(number), "%u", batch);
    const struct text words[] = {TEXT("2"), text_from(key), text_from(name),
                                 text_from(s->who), text_from(strstr(name, "}:") + 2),
                                 text_from(number), TEXT("C"), text_from(ID_TEXT(id)),
                                 text_of(content, (size_t)size), TEXT("S"),
                                 text_from(ID_TEXT(id)), buffer_text(&field)};
    must(copies_database_run(s->g->database, copies_script_store, words,
                             sizeof(words) / sizeof(words[0]), &reply));
    buffer_free(&form);
    buffer_free(&field);
    buffer_free(&reply);
    envelope_free(&e);
}

void
site_copy_bytes(struct site *s, const char *who, const char *batch, struct id id, const char *form)
{
    char key[COPIES_KEY_MAX + 1];
    struct buffer reply;
    key_of(s, "", key);
    const struct text words[] = {TEXT("2"), TEXT("pc:{mail}:owner"), text_from(key),
                                 text_from(who), text_from(strstr(key, "}:") + 2),
                                 text_from(batch), form != NULL ? TEXT("S") : TEXT("E"),
                                 text_from(ID_TEXT(id)), text_from(form != NULL ? form : "")};
    buffer_init(&reply, 1000);
    must(copies_database_run(s->g->database, copies_script_store, words, form != NULL ? 9 : 8, &reply));
    buffer_free(&reply);
}

struct id
site_send(struct site *s, unsigned batch)
{
    world_send(&s->w, "me@a.test", "good@b.test");
    world_turns(&s->w);
    if (batch > 0)
        site_copy(s, s->w.id, batch);
    return s->w.id;
}

void
site_go(struct site *s)
{
    s->w.stalled = false;
    world_unstall(&s->w);
    group_pass(s->g, 3000);
}

void
group_order(struct group *g)
{
    char why[ADOPTION_WHY_MAX];
    sim_engine_down(g->sites[0].engine, false);
    group_pass(g, 5000);
    must(adoption_order(g->sites[1].adoption, TEXT("relay1"), why));
}

void
group_adopt_some(struct group *g, size_t left)
{
    struct site *b = &g->sites[1];
    for (unsigned i = 1; i <= 30; i++)
        site_send(&g->sites[0], i);
    group_order(g);
    for (unsigned i = 0; i < 4000 && copies_database_count(g->database) > left; i++) {
        sim_engine_carry(b->engine);
        sim_loop_advance(b->w.loop, 1);
    }
}
