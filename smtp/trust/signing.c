/* Passes, jobs and the line.
 *
 * A pass reads the message as it leaves, for one host. Its end is a job: {message,
 * form}, which all passes over the same bytes share, whether they come while it waits
 * in the line or later. A job is freed when no pass uses it and it is not kept. */
#include "smtp/trust/signing.h"

#include "base/crc.h"
#include "base/dns/idna.h"
#include "base/memory.h"
#include "mime/address.h"
#include "mime/auth/dkim.h"
#include "mime/header.h"
#include "smtp/trust/dkim_keys.h"
#include "smtp/dot.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum {
    NAMES_MAX = DKIM_KEYS_PER_DOMAIN * 2 * DKIM_NAME_MAX,
    PIECE_MAX = 128 * 1024,
    /* 20 us each, where RSA takes 2 ms: a turn costs more than that. */
    ED25519_PER_TURN = 32
};

/* Both members together are the key of the table: no padding between them. */
struct job_key {
    struct id id;
    uint64_t form; /* and the header's checksum */
};

struct signing_job {
    struct job_key key;
    UT_hash_handle hh;               /* of those kept, the least recently used first */
    struct signing_job *prev, *next; /* in the line */
    unsigned users;
    bool kept, waits, done;
    struct dkim_key *keys; /* of the set of keys below */
    size_t key_count, at;
    struct signing_keys *set;
    struct dkim_header header;
    unsigned char body[DIGEST_SIZE];
    struct buffer fields, names;
    bool failed;
};

/* Keys that jobs use after a reload has replaced them. */
struct signing_keys {
    struct dkim_keys *keys;
    unsigned users;
};

struct signing {
    struct loop *loop;
    struct log *log;
    struct dkim_keys_check
        *check;               /* of keys of this set; NULL: records are not looked up */
    struct signing_keys *set; /* NULL: none */
    struct signing_job *kept; /* uthash */
    struct signing_job *line; /* utlist */
    size_t length;            /* of the line */
    struct signing_counts counts;
    struct loop_task task;
    struct signing_pass *passes;
};

struct signing_pass {
    struct signing_pass *prev, *next;
    struct signing *signing;
    const struct envelope *envelope;
    char sender_domain[IDNA_NAME_MAX];
    enum signing_form form;
    struct signing_job *job; /* its own one until the end */
    struct signature result;
    struct buffer head, scratch;
    struct header_scan scan;
    bool joined; /* job is kept, or in the line */
    bool has_head;
    struct dot_encoder encoder;
    struct dot_decoder decoder;
    struct dkim_body body;
    void (*done)(void *context);
    void *context;
    struct loop_task task;
};

/* --- Keys and jobs ---------------------------------------------------------------- */

static struct signing_keys *
keys_take(struct dkim_keys *keys)
{
    struct signing_keys *set = keys != NULL ? memory_new(sizeof(*set)) : NULL;
    if (set != NULL)
        *set = (struct signing_keys){keys, 1};
    return set;
}

static void
keys_release(struct signing_keys **set)
{
    if (*set != NULL && --(*set)->users == 0) {
        dkim_keys_free(&(*set)->keys);
        free(*set);
    }
    *set = NULL;
}

static struct signing_job *
job_new(const struct signing_pass *p, struct text header)
{
    struct signing_job *job = memory_new(sizeof(*job));
    job->key.id = p->envelope->id;
    job->key.form =
        (uint64_t)crc_add(0, header.at, header.length) << 8 | (uint64_t)p->form;
    job->users = 1;
    buffer_init(&job->fields, DKIM_KEYS_PER_DOMAIN * DKIM_FIELD_MAX);
    buffer_init(&job->names, NAMES_MAX);
    return job;
}

static void
job_leave_line(struct signing *s, struct signing_job *job)
{
    if (!job->waits)
        return;
    DL_DELETE(s->line, job);
    s->length--;
    job->waits = false;
}

static void
job_release(struct signing *s, struct signing_job *job)
{
    if (job->users > 0 || job->kept)
        return;
    job_leave_line(s, job);
    dkim_header_free(&job->header);
    keys_release(&job->set);
    buffer_free(&job->fields);
    buffer_free(&job->names);
    free(job);
}

static void
job_forget(struct signing *s, struct signing_job *job)
{
    HASH_DEL(s->kept, job);
    job->kept = false;
    job_release(s, job);
}

/* Found ones go to the end, so that the first is the least recently used. */
static struct signing_job *
job_find(struct signing *s, const struct signing_job *like)
{
    struct signing_job *job;
    HASH_FIND(hh, s->kept, &like->key, sizeof(like->key), job);
    if (job != NULL) {
        HASH_DEL(s->kept, job);
        HASH_ADD(hh, s->kept, key, sizeof(job->key), job);
    }
    return job;
}

static void
job_keep(struct signing *s, struct signing_job *job)
{
    HASH_ADD(hh, s->kept, key, sizeof(job->key), job);
    job->kept = true;
    if (HASH_COUNT(s->kept) > SIGNING_KEPT_MAX)
        job_forget(s, s->kept);
}

/* --- Signatures ------------------------------------------------------------------- */

static void
sign_with(struct signing *s, struct signing_job *job, struct dkim_key *key)
{
    unsigned char digest[DIGEST_SIZE], signature[SIGN_SIZE_MAX];
    size_t length;
    struct buffer field;
    struct dkim_tags tags = {.algorithm = sign_key_kind(key->key) == SIGN_RSA
                                              ? "rsa-sha256"
                                              : "ed25519-sha256",
                             .domain = key->domain,
                             .selector = key->selector,
                             .time_s = loop_now_ms(s->loop) / 1000,
                             .body = job->body};
    buffer_init(&field, DKIM_FIELD_MAX);
    dkim_field_begin(&job->header, &tags, &field, digest);
    job->failed = !sign_digest(key->key, digest, signature, &length);
    key->broken = job->failed;
    if (!job->failed) {
        dkim_field_end(&field, text_of(signature, length));
        bool fits =
            buffer_add(&job->fields, buffer_text(&field)) &&
            buffer_format(&job->names, "%s%s/%s", job->names.length > 0 ? "," : "",
                          key->domain, key->selector);
        assert(fits);
        s->counts.signed_count++;
        if (job->set == s->set && s->check != NULL)
            dkim_keys_check_used(s->check, key);
    } else {
        s->counts.failed++;
        char id[ID_LENGTH + 1];
        id_format(job->key.id, id);
        log_say(s->log, LOG_LEVEL_ERROR, "smtp", id,
                "the key %s of %s cannot sign (dkim_keys): the mail waits",
                key->selector, key->domain);
    }
    buffer_free(&field);
}

static void
pass_tell(void *context)
{
    struct signing_pass *p = context;
    p->done(p->context);
}

static void
pass_finish(struct signing_pass *p)
{
    p->result = (struct signature){buffer_text(&p->job->fields),
                                   buffer_text(&p->job->names), p->job->failed};
    if (p->job->failed)
        p->result.fields = p->result.names = TEXT("");
    loop_post(p->signing->loop, &p->task, pass_tell, p);
}

static void
job_finish(struct signing *s, struct signing_job *job)
{
    struct signing_pass *p;
    job_leave_line(s, job);
    job->done = true;
    buffer_fit(&job->fields);
    dkim_header_free(&job->header);
    DL_FOREACH (s->passes, p)
        if (p->job == job && p->done != NULL)
            pass_finish(p);
    /* The next attempt tries again. */
    if (job->failed && job->kept)
        job_forget(s, job);
}

/* A share of the operations in the line, in its order: jobs that this turn has prepared
 * are signed in this turn, as far as the share goes. */
static void
signing_at_stage_answer(void *context)
{
    struct signing *s = context;
    int left[] = {[SIGN_RSA] = 1, [SIGN_ED25519] = ED25519_PER_TURN};
    while (s->line != NULL) {
        struct signing_job *job = s->line;
        struct dkim_key *key = &job->keys[job->at];
        if (left[sign_key_kind(key->key)]-- == 0)
            break;
        job->at++;
        sign_with(s, job, key);
        if (job->failed || job->at == job->key_count)
            job_finish(s, job);
    }
    if (s->line != NULL)
        loop_wake(s->loop, &s->task);
    else
        loop_unpost(s->loop, &s->task);
}

static void
job_enter_line(struct signing *s, struct signing_job *job)
{
    DL_APPEND(s->line, job);
    job->waits = true;
    if (++s->length > s->counts.longest)
        s->counts.longest = s->length;
    loop_wake(s->loop, &s->task);
}

/* --- Passes ----------------------------------------------------------------------- */

static void
pass_go_unsigned(struct signing_pass *p, const char *why)
{
    if (why != NULL) {
        char id[ID_LENGTH + 1];
        id_format(p->envelope->id, id);
        log_say(p->signing->log, LOG_LEVEL_WARNING, "smtp", id, "not signed: %s", why);
    }
    p->job->done = true;
    dkim_header_free(&p->job->header);
}

/* "": an address without a domain, or with one that has no A-label. */
static void
domain_of(struct text mailbox, char out[IDNA_NAME_MAX])
{
    struct address a;
    out[0] = '\0';
    if (address_parse(mailbox, &a) && !idna_to_ascii(a.domain, out))
        out[0] = '\0';
}

/* Finds the keys of the author, else of the envelope's sender (mailing lists). */
static bool
pass_find_keys(struct signing_pass *p)
{
    struct signing_job *job = p->job;
    char author[IDNA_NAME_MAX];
    struct signing_keys *set = p->signing->set;
    if (set == NULL) /* since a reload */
        return false;
    domain_of(buffer_text(&job->header.author), author);
    job->keys = dkim_keys_find(set->keys, text_from(author), &job->key_count);
    if (job->key_count == 0)
        job->keys =
            dkim_keys_find(set->keys, text_from(p->sender_domain), &job->key_count);
    if (job->key_count == 0)
        return false;
    job->set = set;
    set->users++;
    return true;
}

static void
pass_read_head(struct signing_pass *p)
{
    const char *why;
    p->has_head = true;
    if (p->job->done)
        why = NULL;
    else if (!dkim_header_read(&p->job->header,
                               text_before(buffer_text(&p->head), p->scan.length),
                               &why))
        pass_go_unsigned(p, why);
    else if (!pass_find_keys(p))
        pass_go_unsigned(p, NULL);
    buffer_free(&p->head);
}

/* Bytes as they leave. The empty line between header and body belongs to neither. */
static void
pass_take(struct signing_pass *p, struct text bytes)
{
    if (p->has_head) {
        if (!p->job->done)
            dkim_body_add(&p->body, bytes);
        return;
    }
    if (!buffer_add(&p->head, bytes)) {
        p->has_head = true;
        pass_go_unsigned(p, "its header is longer than 256 KiB");
        return;
    }
    header_scan_add(&p->scan, bytes);
    if (!p->scan.ended)
        return;
    struct text rest = text_after(buffer_text(&p->head), p->scan.length);
    bool is_odd = !text_starts(rest, TEXT("\r\n"));
    dkim_body_add(&p->body, text_after(rest, 2));
    if (is_odd)
        pass_go_unsigned(p, "its header has a line that is not a field");
    pass_read_head(p);
}

/* Changes that SMTP makes in the content are made before it is signed: the bytes go
 * through the same encoder, and from the wire back. */
static void
pass_take_wire(struct signing_pass *p, struct text wire)
{
    struct text content;
    while (wire.length > 0) {
        enum progress progress = dot_decode(&p->decoder, &wire, &content);
        assert(progress != PROGRESS_BAD);
        if (content.length > 0)
            pass_take(p, content);
        if (progress == PROGRESS_DONE)
            return;
    }
}

struct signing_pass *
signing_pass_new(struct signing *s, const struct envelope *e, struct text sender,
                 enum signing_form form, struct text header)
{
    struct signing_pass *p = memory_new(sizeof(*p));
    assert(signing_is_on(s));
    p->signing = s;
    p->envelope = e;
    p->form = form;
    domain_of(sender, p->sender_domain);
    p->job = job_new(p, header);
    DL_APPEND(s->passes, p);
    struct signing_job *known = job_find(s, p->job);
    if (known != NULL) {
        p->job->users = 0;
        job_release(s, p->job);
        p->job = known;
        known->users++;
        p->joined = true;
        return p;
    }
    buffer_init(&p->head, DKIM_HEADER_MAX + PIECE_MAX);
    buffer_init(&p->scratch, 2 * PIECE_MAX + 8);
    header_scan_start(&p->scan);
    dot_encode_start(&p->encoder);
    dot_decode_start(&p->decoder);
    dkim_body_start(&p->body);
    return p;
}

bool
signing_pass_has_enough(const struct signing_pass *p)
{
    return p->job->done || p->joined;
}

void
signing_pass_add(struct signing_pass *p, struct text bytes)
{
    for (; bytes.length > 0 && !signing_pass_has_enough(p);
         bytes = text_after(bytes, PIECE_MAX)) {
        struct text piece = text_before(bytes, PIECE_MAX);
        if (p->form == SIGNING_RAW) {
            pass_take(p, piece);
            continue;
        }
        buffer_clear(&p->scratch);
        bool fits = dot_encode(&p->encoder, piece, &p->scratch);
        assert(fits);
        pass_take_wire(p, buffer_text(&p->scratch));
    }
}

static void
pass_end_content(struct signing_pass *p)
{
    if (p->form != SIGNING_RAW) {
        buffer_clear(&p->scratch);
        bool fits = dot_encode_end(&p->encoder, &p->scratch);
        assert(fits);
        pass_take_wire(p, buffer_text(&p->scratch));
    }
    if (!p->has_head)
        pass_read_head(p);
    dkim_body_end(&p->body, p->job->body);
}

/* Another pass may have begun the same job meanwhile. */
static void
pass_join(struct signing_pass *p)
{
    struct signing *s = p->signing;
    struct signing_job *known = job_find(s, p->job);
    p->joined = true;
    if (known == NULL) {
        job_keep(s, p->job);
        if (!p->job->done)
            job_enter_line(s, p->job);
        return;
    }
    p->job->users = 0;
    job_release(s, p->job);
    p->job = known;
    known->users++;
}

void
signing_pass_end(struct signing_pass *p, void (*done)(void *context), void *context)
{
    assert(p->done == NULL);
    p->done = done;
    p->context = context;
    if (!p->joined) {
        if (!p->job->done)
            pass_end_content(p);
        pass_join(p);
    }
    buffer_free(&p->head);
    buffer_free(&p->scratch);
    if (p->job->done)
        pass_finish(p);
}

const struct signature *
signing_pass_result(const struct signing_pass *p)
{
    return &p->result;
}

void
signing_pass_free(struct signing_pass **pass)
{
    struct signing_pass *p = *pass;
    if (p == NULL)
        return;
    struct signing *s = p->signing;
    loop_unpost(s->loop, &p->task);
    DL_DELETE(s->passes, p);
    assert(p->job->users > 0);
    p->job->users--;
    job_release(s, p->job);
    buffer_free(&p->head);
    buffer_free(&p->scratch);
    loop_release(s->loop, free, p);
    *pass = NULL;
}

/* --- The whole -------------------------------------------------------------------- */

struct signing *
signing_new(struct loop *loop, struct log *log, struct dns *dns, struct dkim_keys *keys)
{
    struct signing *s = memory_new(sizeof(*s));
    s->loop = loop;
    s->log = log;
    s->check = dns != NULL ? dkim_keys_check_new(loop, log, dns) : NULL;
    s->set = keys_take(keys);
    loop_at_end(loop, LOOP_ANSWER_SIGNING, signing_at_stage_answer, s);
    return s;
}

static void
signing_forget_all(struct signing *s)
{
    struct signing_job *job, *next;
    HASH_ITER (hh, s->kept, job, next)
        job_forget(s, job);
}

void
signing_reload(struct signing *s, struct dkim_keys *keys)
{
    if (s->check != NULL)
        dkim_keys_check_stop(s->check);
    keys_release(&s->set);
    s->set = keys_take(keys);
    signing_forget_all(s);
}

void
signing_free(struct signing **signing)
{
    struct signing *s = *signing;
    if (s == NULL)
        return;
    assert(s->passes == NULL);
    signing_forget_all(s);
    loop_unpost(s->loop, &s->task);
    loop_at_end_remove(s->loop, LOOP_ANSWER_SIGNING, signing_at_stage_answer, s);
    dkim_keys_check_free(&s->check);
    keys_release(&s->set);
    free(s);
    *signing = NULL;
}

bool
signing_is_on(const struct signing *s)
{
    return s->set != NULL;
}

void
signing_each_trouble(const struct signing *s,
                     void (*each)(void *context, const char *name, const char *domain,
                                  const char *why),
                     void *context)
{
    char name[2 * DKIM_NAME_MAX + 16], why[200];
    const struct dkim_keys *keys = s->set != NULL ? s->set->keys : NULL;
    for (size_t i = 0; keys != NULL && i < keys->count; i++) {
        const struct dkim_key *key = &keys->list[i];
        if (key->broken)
            snprintf(why, sizeof(why), "the key cannot sign, and mail waits");
        else if (key->record != DKIM_RECORD_FITS)
            snprintf(why, sizeof(why), "it %s: receivers cannot verify its signatures",
                     dkim_record_words(key->record));
        else
            continue;
        snprintf(name, sizeof(name), "%s._domainkey.%s", key->selector, key->domain);
        each(context, name, key->domain, why);
    }
}

struct signing_counts
signing_counts(const struct signing *s)
{
    return s->counts;
}
