/* A journal with a user that remembers each answer. */
#include "base/log/log_internal.h"
#include "t/support/journal_kit.h"

struct id
kit_id(unsigned number)
{
    return (struct id){.time_ms = 1000 + number, .hash = number * UINT64_C(2654435761)};
}

/* The payload tells its number; some hold what looks like a batch. */
static void
kit_payload(unsigned number, size_t size, char *out)
{
    uint64_t mix = number * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < size; i++) {
        mix ^= mix << 13, mix ^= mix >> 7, mix ^= mix << 17;
        out[i] = (char)(number % 3 == 0 ? 'a' + (int)(mix % 26) : (int)(mix & 0xff));
    }
}

/* --- Events ---------------------------------------------------------------------- */

static void
kit_settle_copy(struct kit *k, struct kit_message *m, uint64_t batch, int error)
{
    if (m->copy_batch == 0 || m->copy_batch > batch)
        return;
    if (error == 0) {
        journal_leave(k->journal, &m->place, batch);
        m->place = m->copy;
    }
    m->copy_batch = 0;
}

static void
kit_settle_message(struct kit_message *m, uint64_t batch, int error)
{
    if (m->batch == batch && batch > 0) {
        m->acked = error == 0;
        m->refused = error < 0;
        m->batch = 0;
        if (error < 0)
            m->end_batch = batch + 1; /* the journal's own */
    } else if (m->end_batch == batch && batch > 0) {
        m->ended = error == 0;
        m->removed = error == 0;
        m->end_batch = error < 0 ? batch + 1 : 0;
    }
}

void
kit_settled(void *context, uint64_t batch, int error)
{
    struct kit *k = context;
    k->settles++;
    k->in_order = k->in_order && batch > k->settled;
    k->settled = batch;
    if (error == 0)
        k->settled_good = batch;
    else
        k->failures++;
    k->last_error = error;
    for (unsigned i = 1; i <= k->count; i++) {
        kit_settle_copy(k, &k->messages[i], batch, error);
        kit_settle_message(&k->messages[i], batch, error);
    }
}

static bool
kit_crowded(void *context, uint64_t sequence)
{
    struct kit *k = context;
    k->crowds++;
    k->crowded = sequence;
    for (unsigned i = 1; k->ends_crowded && i <= k->count; i++) {
        const struct kit_message *m = &k->messages[i];
        if (m->acked && m->place.sequence > 0 && m->place.sequence <= sequence &&
            !(k->copies && m->marks == 0 && kit_copy(k, i)))
            kit_end(k, i, RECORD_MOVED);
    }
    return true;
}

void
kit_on_space(void *context)
{
    struct kit *k = context;
    k->space_events++;
}

void
kit_answer_checkpoint(struct kit *k)
{
    k->checkpoint_waits = false;
    for (unsigned i = 1; i <= k->count; i++)
        if (k->messages[i].removed && k->checkpoint_result == 0)
            k->messages[i].checkpointed = true;
    journal_checkpointed(k->journal, k->checkpoint_result);
}

void
kit_checkpoint(void *context)
{
    struct kit *k = context;
    k->checkpoints_asked++;
    k->checkpoint_waits = true;
    if (k->checkpoint_at_once)
        kit_answer_checkpoint(k);
}

/* --- Reading --------------------------------------------------------------------- */

bool
kit_is_payload(unsigned number, size_t size, struct text payload)
{
    if (payload.length != size)
        return false;
    char *want = malloc(size + 1);
    kit_payload(number, size, want);
    bool same = memcmp(want, payload.at, size) == 0;
    free(want);
    return same;
}

bool
kit_record(void *context, const struct journal_record *record)
{
    struct kit *k = context;
    uint64_t number = record->id.time_ms - 1000;
    if (number == 0 || number > k->count ||
        id_compare(record->id, kit_id((unsigned)number)) != 0) {
        k->strangers++;
        return true;
    }
    struct kit_found *f = &k->found[number];
    const struct kit_message *m = &k->messages[number];
    switch (record->type) {
    case RECORD_COPY:
        k->alone += f->accepts == 0;
        f->accepts = 0;
        /* fall through */
    case RECORD_ACCEPT:
        f->accepts++;
        f->place = record->place;
        f->wrong |= m->spool || f->ends > 0 ||
                    !kit_is_payload((unsigned)number, m->size, record->payload);
        break;
    case RECORD_MARK:
        if (record->payload.length > 0 &&
            (unsigned char)record->payload.at[0] < KIT_MARKS)
            f->marks[(unsigned char)record->payload.at[0]]++;
        else
            f->wrong = true;
        break;
    case RECORD_MOVED:
    case RECORD_END:
        f->wrong |= record->payload.length > 0;
        f->ends++;
        break;
    }
    return true;
}

static void
kit_damaged(void *context, struct text bytes, const char *where)
{
    struct kit *k = context;
    k->damages++;
    k->damaged_bytes += bytes.length;
    snprintf(k->where, sizeof(k->where), "%s", where);
}

struct journal_reading
journal_kit_reading(struct kit *k)
{
    memset(k->found, 0, KIT_MESSAGES * sizeof(*k->found));
    k->damages = k->strangers = 0;
    k->damaged_bytes = 0;
    return (struct journal_reading){
        .context = k, .record = kit_record, .damaged = kit_damaged};
}

/* --- Begin and end --------------------------------------------------------------- */

int
journal_kit_open(struct kit *k)
{
    struct journal_reading reading = journal_kit_reading(k);
    struct journal_events events = {.context = k,
                                    .settled = kit_settled,
                                    .crowded = kit_crowded,
                                    .space = kit_on_space};
    int result = journal_open(&k->journal, &k->spool, k->loop, &k->settings, &reading,
                              &events, &k->summary, k->error, sizeof(k->error));
    if (result == 0 && k->checkpoints)
        journal_on_checkpoint(k->journal, kit_checkpoint, k);
    return result;
}

void
kit_begin_process(struct kit *k, bool blocking, uint64_t seed)
{
    k->loop = sim_loop_new(seed);
    if (disk_open(&k->disk, "/s", true) != 0)
        abort();
    if (!blocking)
        disk_sync_on(k->disk, k->loop);
    k->spool = (struct spool){.disk = k->disk, .log = k->log};
    k->settled = 0;
    k->in_order = true;
    k->refusals = k->crowds = k->space_events = k->settles = k->failures = 0;
}

void
kit_end_process(struct kit *k)
{
    journal_close(&k->journal);
    disk_close(&k->disk);
    loop_free(&k->loop);
}

struct kit *
kit_new(size_t blocks, unsigned segments)
{
    struct kit *k = calloc(1, sizeof(*k));
    k->messages = calloc(KIT_MESSAGES, sizeof(*k->messages));
    k->found = calloc(KIT_MESSAGES, sizeof(*k->found));
    if (k->messages == NULL || k->found == NULL)
        abort();
    buffer_init(&k->lines, 1024 * 1024);
    k->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    log_capture(k->log, &k->lines);
    k->settings = (struct journal_settings){.directory = "journal/000-255",
                                            .segment_size = blocks * KIT_BLOCK,
                                            .segments = segments};
    k->checkpoint_at_once = true;
    return k;
}

void
kit_free(struct kit **kit)
{
    struct kit *k = *kit;
    log_free(&k->log);
    buffer_free(&k->lines);
    free(k->messages);
    free(k->found);
    free(k);
    *kit = NULL;
}

struct kit *
kit_start(size_t blocks, unsigned segments, bool blocking)
{
    struct kit *k = kit_new(blocks, segments);
    sim_disk_reset();
    kit_begin_process(k, blocking, 1);
    if (journal_kit_open(k) != 0)
        abort();
    return k;
}

void
kit_stop(struct kit **k)
{
    kit_end_process(*k);
    kit_free(k);
}

/* --- Acts of a user -------------------------------------------------------------- */

unsigned
kit_accept_as(struct kit *k, size_t size, bool own)
{
    unsigned number = k->count + 1;
    assert(number < KIT_MESSAGES);
    struct kit_message *m = &k->messages[number];
    char *bytes = malloc(size + 1);
    kit_payload(number, size, bytes);
    struct text whole = text_of(bytes, size);
    struct text pieces[] = {text_before(whole, size / 3), text_after(whole, size / 3)};
    *m = (struct kit_message){.size = size};
    k->count = number;
    if (journal_accept(k->journal, kit_id(number), pieces, 2, own, &m->place,
                       &m->batch) != JOURNAL_APPENDED) {
        k->refusals++;
        k->count--;
        number = 0;
    }
    free(bytes);
    return number;
}

unsigned
journal_kit_accept(struct kit *k, size_t size)
{
    return kit_accept_as(k, size, false);
}

bool
kit_is_live(const struct kit_message *m)
{
    return !m->spool && m->acked && m->place.sequence > 0;
}

void
kit_mark(struct kit *k, unsigned number, size_t size)
{
    struct kit_message *m = &k->messages[number];
    if (m->marks == KIT_MARKS)
        return;
    char *bytes = calloc(1, size + 1);
    bytes[0] = (char)m->marks;
    m->marks++;
    journal_mark(k->journal, kit_id(number), text_of(bytes, size + 1));
    free(bytes);
}

bool
kit_copy(struct kit *k, unsigned number)
{
    struct kit_message *m = &k->messages[number];
    if (m->copy_batch > 0)
        return true;
    char *bytes = malloc(m->size + 1);
    kit_payload(number, m->size, bytes);
    bool copied = journal_copy(k->journal, kit_id(number), text_of(bytes, m->size),
                               &m->copy, &m->copy_batch);
    free(bytes);
    k->copied += copied;
    return copied;
}

uint64_t
kit_end(struct kit *k, unsigned number, enum record_type type)
{
    struct kit_message *m = &k->messages[number];
    assert(m->place.sequence > 0);
    m->end_batch = journal_end(k->journal, kit_id(number), &m->place, type);
    if (m->copy_batch > 0)
        journal_leave(k->journal, &m->copy, m->end_batch);
    m->copy_batch = 0;
    m->place.sequence = 0;
    return m->end_batch;
}

unsigned
kit_end_spool(struct kit *k)
{
    unsigned number = ++k->count;
    assert(number < KIT_MESSAGES);
    struct kit_message *m = &k->messages[number];
    *m = (struct kit_message){.spool = true};
    m->end_batch = journal_end(k->journal, kit_id(number), NULL, RECORD_END);
    return number;
}

void
kit_note_quiet(struct kit *k)
{
    for (unsigned i = 1; journal_is_quiet(k->journal) && i <= k->count; i++)
        for (unsigned mark = 0; mark < k->messages[i].marks; mark++)
            k->messages[i].marked[mark] = !k->messages[i].lost[mark];
}

void
kit_turn(struct kit *k)
{
    loop_turn(k->loop, 0);
    kit_note_quiet(k);
}

void
kit_drain(struct kit *k)
{
    for (unsigned i = 0; i < 1000 && !journal_is_quiet(k->journal); i++) {
        journal_hurry(k->journal);
        kit_turn(k);
    }
    kit_note_quiet(k);
}

/* --- Required messages ----------------------------------------------------------- */

/* Its END is in the same batch as a message that is not there: so it has not ended. */
static bool
kit_has_ended_early(const struct kit *k, unsigned number)
{
    const struct kit_message *m = &k->messages[number];
    const struct kit_found *f = &k->found[number];
    if (!m->acked || m->end_batch == 0 || f->accepts > 0 || f->ends > 0)
        return false;
    for (unsigned i = 1; i <= k->count; i++)
        if (k->messages[i].batch == m->end_batch && k->found[i].accepts == 0)
            return true;
    return false;
}

/* NULL, or what is wrong with what was found. */
static const char *
kit_wrong(const struct kit *k, unsigned number)
{
    const struct kit_message *m = &k->messages[number];
    const struct kit_found *f = &k->found[number];
    if (f->wrong)
        return "its record is not what was written";
    if (f->accepts > 1)
        return "it is there twice";
    if (m->spool)
        return k->checkpoints && m->ended && !m->checkpointed && f->ends == 0
                   ? "its END is gone before its files are"
                   : NULL;
    bool there = f->accepts > 0 && f->ends == 0;
    bool end_is_known = m->place.sequence == 0 || m->refused;
    if (m->acked && !end_is_known && !there)
        return "it was acknowledged and is lost";
    if (m->ended && there)
        return "it has come back";
    if (kit_has_ended_early(k, number))
        return "it is gone before its END is written";
    for (unsigned i = 0; i < m->marks; i++) {
        if (f->marks[i] > 1)
            return "a mark is there twice";
        if (m->lost[i] && f->marks[i] > 0)
            return "a mark has come back";
        if (there && m->marked[i] && f->marks[i] == 0)
            return "a durable mark is lost";
    }
    return NULL;
}

bool
journal_kit_check(const struct kit *k, unsigned damages, const char *what)
{
    const char *wrong = NULL;
    unsigned number = 0;
    while (wrong == NULL && ++number <= k->count)
        wrong = kit_wrong(k, number);
    if (wrong == NULL && k->damages != damages)
        wrong = "damage where there is none", number = k->damages;
    if (wrong == NULL && k->strangers > 0)
        wrong = "records that nobody wrote", number = k->strangers;
    if (wrong != NULL)
        printf("# %s: %u: %s\n", what, number, wrong);
    return wrong == NULL;
}

void
kit_adopt(struct kit *k)
{
    for (unsigned i = 1; i <= k->count; i++) {
        struct kit_message *m = &k->messages[i];
        const struct kit_found *f = &k->found[i];
        bool there = f->accepts > 0 && f->ends == 0;
        if (m->spool) {
            m->ended = m->removed = f->ends > 0 || m->removed;
            m->end_batch = 0;
            continue;
        }
        m->batch = m->end_batch = m->copy_batch = 0;
        m->refused = false;
        m->acked = there || m->acked;
        m->ended = !there;
        m->place = there ? f->place : (struct journal_place){0};
        for (unsigned mark = 0; mark < m->marks; mark++) {
            m->marked[mark] = f->marks[mark] > 0;
            m->lost[mark] = f->marks[mark] == 0;
        }
        if (there)
            journal_keep(k->journal, &m->place);
    }
}

unsigned
kit_said(const struct kit *k, const char *what)
{
    struct text rest = buffer_text(&k->lines);
    unsigned count = 0;
    for (; rest.length >= strlen(what); rest = text_after(rest, 1))
        count += memcmp(rest.at, what, strlen(what)) == 0;
    return count;
}

void
kit_bury(struct kit *k)
{
    struct disk_space space;
    sim_disk_die_at(1);
    (void)disk_space(k->disk, &space);
    kit_end_process(k);
    sim_disk_restart();
}

void
kit_calm(struct kit *k)
{
    kit_drain(k);
    for (unsigned i = 0; i < 40; i++)
        kit_turn(k);
}

void
kit_restart(struct kit *k)
{
    kit_end_process(k);
    kit_begin_process(k, false, 7);
    is_number(journal_kit_open(k), 0, "opens again");
    ok(journal_kit_check(k, 0, "after a restart"));
    kit_adopt(k);
}

struct journal_figures
kit_figures(const struct kit *k)
{
    return journal_figures(k->journal);
}
