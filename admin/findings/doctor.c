/* Runs judges until each has its answers, and prints. */
#include "admin/findings/doctor.h"

#include "admin/findings/doctor_internal.h"
#include "base/dns/idna.h"
#include "base/memory.h"
#include "mime/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Tasks -------------------------------------------------------------------------- */

void
doctor_add_task(struct doctor *d, fault_judge *judge, const char *subject)
{
    if (d->task_count == d->task_capacity) {
        d->task_capacity = d->task_capacity * 2 + 32;
        d->tasks = memory_resize(d->tasks, d->task_capacity * sizeof(d->tasks[0]));
    }
    d->tasks[d->task_count++] =
        (struct doctor_task){faults_row_of(judge), memory_string(subject), NULL};
}

/* Each that is left; those that are over go. */
static void
doctor_run_tasks(struct doctor *d)
{
    size_t left = 0;
    for (size_t i = 0; i < d->task_count; i++) {
        size_t before = d->list.count;
        struct doctor_task task = d->tasks[i];
        struct fault_world world = {.doctor = d, .subject = task.subject};
        bool ready = task.missing == NULL || inquiry_is_answered(task.missing);
        d->list.row = task.row;
        if (ready && task.row->judge(&world, &d->list)) {
            free(task.subject);
            (void)inquiry_missing(d->inquiry);
            continue;
        }
        faults_cut(&d->list, before);
        if (ready)
            task.missing = inquiry_missing(d->inquiry);
        d->tasks[left++] = task;
    }
    d->task_count = left;
}

/* --- Shared functions --------------------------------------------------------------- */

const char *
doctor_settings(const struct doctor *d)
{
    return d->setup->file != NULL ? d->setup->file : "the settings";
}

void
doctor_say_unknown(struct faults *out, const char *subject, const char *what,
                   const char *reason)
{
    faults_add(out, FAULT_WARNING, subject, "%s cannot be looked up: %s", what, reason);
    faults_remedy(out, "See dns.resolver; if that is all right, correct the name "
                       "servers of the domain.");
}

const struct target *
doctor_target(const struct doctor *d, const char *domain)
{
    char sender[DOCTOR_NAME_MAX + 16];
    struct address anybody = {.local = TEXT("postmaster"),
                              .domain = TEXT("receiver.invalid")};
    snprintf(sender, sizeof(sender), "postmaster@%s", domain);
    return route_find_from(d->setup->routes, text_from(sender), &anybody, true);
}

static bool
doctor_leaves_directly(const struct doctor *d, const char *domain)
{
    return doctor_target(d, domain)->kind == TARGET_MX;
}

/* --- Domains ------------------------------------------------------------------------ */

static void
doctor_add_domain(void *context, struct text name)
{
    struct doctor *d = context;
    char domain[IDNA_NAME_MAX];
    if (name.length > 0 && name.at[name.length - 1] == '.')
        name.length--;
    if (text_find(name, '.') == TEXT_NONE || text_find(name, '[') != TEXT_NONE ||
        !idna_to_ascii(name, domain) || !address_is_domain(text_from(domain)) ||
        text_ends_nocase(text_from(domain), TEXT(".localdomain")) ||
        text_ends_nocase(text_from(domain), TEXT(".invalid")))
        return;
    for (size_t i = 0; i < d->domain_count; i++)
        if (strcmp(d->domains[i], domain) == 0)
            return;
    if (d->domain_count == DOCTOR_DOMAINS_MAX) {
        d->domains_omitted++;
        return;
    }
    memcpy(d->domains[d->domain_count++], domain, sizeof(domain));
}

static void
doctor_take_own_domains(struct doctor *d)
{
    const struct doctor_setup *s = d->setup;
    for (size_t i = 0; i < s->key_count; i++)
        doctor_add_domain(d, text_from(s->keys[i].domain));
    route_each_local_domain(s->routes, doctor_add_domain, d);
    if (s->rewrites != NULL)
        rewrites_each_domain(s->rewrites, doctor_add_domain, d);
}

/* --- Command line ------------------------------------------------------------------- */

static bool
doctor_is_subject(struct text word)
{
    char domain[IDNA_NAME_MAX];
    struct address address;
    if (word.length == 0 || word.at[0] == '-')
        return false;
    if (text_find(word, '@') != TEXT_NONE)
        return word.length <= ADDRESS_MAX && address_parse(word, &address);
    return text_find(word, '.') != TEXT_NONE && idna_to_ascii(word, domain) &&
           address_is_domain(text_from(domain));
}

bool
doctor_read_request(int count, char **arguments, struct doctor_request *out)
{
    *out = (struct doctor_request){.subjects = arguments};
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i], "--json") == 0) {
            out->json = true;
        } else if (strcmp(arguments[i], "--blocklists") == 0) {
            out->blocklists = true;
        } else if (out->count < DOCTOR_ARGUMENTS_MAX &&
                   doctor_is_subject(text_from(arguments[i]))) {
            out->subjects[out->count++] = arguments[i];
        } else {
            fputs(
                "usage: petrel doctor [--json] [--blocklists] [DOMAIN | ADDRESS]...\n",
                stderr);
            return false;
        }
    }
    return true;
}

/* --- The whole ---------------------------------------------------------------------- */

static void
doctor_add_destination(struct doctor *d, const char *subject)
{
    if (d->setup->way.start != NULL)
        doctor_add_task(d, doctor_judge_destination, subject);
}

/* An address in the form that has ASCII alone in its domain. */
static void
doctor_plan_address(struct doctor *d, const char *word)
{
    struct address address;
    char domain[IDNA_NAME_MAX], subject[ADDRESS_MAX + IDNA_NAME_MAX];
    if (!address_parse(text_from(word), &address))
        return;
    if (!idna_to_ascii(address.domain, domain))
        (void)text_copy(domain, sizeof(domain), address.domain);
    snprintf(subject, sizeof(subject), "%.*s@%s", TEXT_ARGS(address.local), domain);
    d->is_direct |= doctor_route(d->setup, subject)->kind == TARGET_MX;
    doctor_add_destination(d, subject);
}

/* Mail is sent from a domain; of those that are not in the settings it may as well be
 * asked whether mail goes to them. */
static void
doctor_plan_subjects(struct doctor *d, const struct doctor_request *request)
{
    char(*own)[DOCTOR_NAME_MAX] = d->domains;
    doctor_take_own_domains(d);
    size_t own_count = d->domain_count;
    d->domains = memory_array(DOCTOR_DOMAINS_MAX, sizeof(d->domains[0]));
    d->domain_count = d->domains_omitted = 0;
    for (int i = 0; i < request->count; i++)
        if (strchr(request->subjects[i], '@') != NULL)
            doctor_plan_address(d, request->subjects[i]);
        else
            doctor_add_domain(d, text_from(request->subjects[i]));
    for (size_t i = 0; i < d->domain_count; i++) {
        bool is_own = false;
        for (size_t n = 0; n < own_count; n++)
            is_own |= strcmp(own[n], d->domains[i]) == 0;
        if (!is_own && doctor_route(d->setup, d->domains[i])->kind == TARGET_MX)
            doctor_add_destination(d, d->domains[i]);
    }
    free(own);
}

static void
doctor_plan_host(struct doctor *d)
{
    const char *name = d->options->hostname;
    doctor_add_task(d, doctor_judge_resolver, "name servers");
    if (!d->is_direct) {
        doctor_add_task(d, doctor_judge_indirect, name);
        return;
    }
    doctor_add_task(d, doctor_judge_port, "port 25");
    doctor_add_task(d, doctor_judge_address, name);
    doctor_add_task(d, doctor_judge_name, name);
    doctor_add_task(d, doctor_judge_ptr, name);
}

static void
doctor_plan_domain(struct doctor *d, const char *domain)
{
    doctor_add_task(d, doctor_judge_spf, domain);
    doctor_add_task(d, doctor_judge_dkim, domain);
    doctor_add_task(d, doctor_judge_dmarc, domain);
    doctor_add_task(d, doctor_judge_mx, domain);
    if (d->options->server.tls_certificate.length == 0 ||
        d->setup->policy.start == NULL)
        return;
    doctor_add_task(d, doctor_judge_proof, domain);
    doctor_add_task(d, doctor_judge_policy, domain);
}

/* Rows whose domain is not among those that are examined. */
static void
doctor_plan_keys(struct doctor *d)
{
    for (size_t k = 0; d->domains_omitted == 0 && k < d->setup->key_count; k++) {
        const char *domain = d->setup->keys[k].domain;
        bool is_known = false;
        for (size_t i = 0; i < d->domain_count; i++)
            is_known |= strcmp(d->domains[i], domain) == 0;
        if (!is_known)
            doctor_add_task(d, doctor_judge_dkim, domain);
    }
}

/* The domain of tagged senders, to which reports come back. */
static void
doctor_plan_bounces(struct doctor *d)
{
    struct text address = text_from(d->options->bounces);
    char domain[IDNA_NAME_MAX];
    if (address.length == 0 ||
        !idna_to_ascii(text_after(address, text_find_last(address, '@') + 1), domain))
        return;
    for (size_t i = 0; i < d->domain_count; i++)
        if (strcmp(d->domains[i], domain) == 0)
            return;
    doctor_add_task(d, doctor_judge_spf, domain);
    doctor_add_task(d, doctor_judge_mx, domain);
}

/* That somebody gets the mail for root and postmaster. */
static void
doctor_plan_root(struct doctor *d)
{
    char domain[DOCTOR_NAME_MAX];
    struct text first = route_first_local_domain(d->setup->routes);
    bool is_known = d->setup->has_secrets || d->options->aliases == NULL;
    if (is_known && first.length > 0 && text_copy(domain, sizeof(domain), first))
        doctor_add_task(d, doctor_judge_root, domain);
}

static void
doctor_plan_smarthosts(struct doctor *d)
{
    struct doctor_host h;
    for (size_t n = 0; doctor_host_at(d->setup->routes, false, n, &h); n++) {
        const struct target_host host = target_host(h.target, h.at);
        char key[TARGET_HOST_MAX + 8];
        snprintf(key, sizeof(key), "%.*s:%u", TEXT_ARGS(host.host),
                 (unsigned)host.port);
        doctor_add_task(d, doctor_judge_no_login, key);
    }
    if (!d->setup->has_secrets)
        return;
    for (size_t n = 0; doctor_host_at(d->setup->routes, true, n, &h); n++) {
        char number[24];
        snprintf(number, sizeof(number), "%zu", n);
        doctor_add_task(d, doctor_judge_login, number);
    }
    doctor_add_task(d, doctor_judge_tokens, "");
}

static void
doctor_plan(struct doctor *d, const struct doctor_request *request)
{
    if (request->count > 0)
        doctor_plan_subjects(d, request);
    else
        doctor_take_own_domains(d);
    for (size_t i = 0; i < d->domain_count; i++)
        d->is_direct |= doctor_leaves_directly(d, d->domains[i]);
    d->is_direct |= request->count == 0 && d->domain_count == 0 &&
                    doctor_leaves_directly(d, "sender.invalid");
    doctor_plan_host(d);
    for (size_t i = 0; i < d->domain_count; i++)
        doctor_plan_domain(d, d->domains[i]);
    if (request->count == 0) {
        doctor_plan_keys(d);
        doctor_plan_bounces(d);
        doctor_plan_root(d);
        doctor_plan_smarthosts(d);
        doctor_add_task(d, doctor_judge_certificates, "");
        if (d->setup->copies != NULL)
            doctor_add_task(d, doctor_judge_copies, "redis");
        doctor_add_task(d, doctor_judge_queue, "daemon");
    }
    if (request->blocklists && d->is_direct)
        doctor_add_task(d, doctor_judge_blocklists, "");
}

static void
doctor_end(struct doctor *d)
{
    d->list.row = faults_row("dns.resolver");
    if (d->domains_omitted > 0)
        faults_add(&d->list, FAULT_HINT, "domains",
                   "%zu more domains are not examined: name them as arguments",
                   d->domains_omitted);
    if (inquiry_is_cut(d->inquiry))
        faults_add(&d->list, FAULT_WARNING, "time",
                   "not all questions were answered within %d s: checks that need "
                   "them say so; try again, or name single domains",
                   INQUIRY_MS / 1000);
    d->list.row = faults_row("dkim.key");
    if (!d->setup->has_secrets)
        faults_add(&d->list, FAULT_HINT, "secrets",
                   "keys and passwords cannot be read by this user, and are not "
                   "checked: run it as root, or as the user of the daemon");
    faults_escape(&d->list);
    faults_sort(&d->list);
}

static void
doctor_print(struct doctor *d, bool json)
{
    if (!json) {
        faults_print(&d->list, stdout);
        return;
    }
    json_t *all = faults_json(&d->list);
    json_dumpf(all, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(all);
}

int
doctor_run(const struct doctor_setup *setup, const struct doctor_request *request)
{
    struct inquiry_settings settings = {
        .loop = setup->loop,
        .net = setup->net,
        .dns = setup->dns,
        .validating = setup->validating,
        .hostname = setup->options->hostname,
        .sources = {[INQUIRY_LOGIN] = setup->login,
                    [INQUIRY_WAY] = setup->way,
                    [INQUIRY_POLICY] = setup->policy}
    };
    struct doctor d = {
        .setup = setup, .options = setup->options, .list = {.when = FAULT_DOCTOR}};
    d.domains = memory_array(DOCTOR_DOMAINS_MAX, sizeof(d.domains[0]));
    (void)!bind_address_read(&settings.bind, setup->options->delivery.smtp_bind, NULL);
    d.inquiry = inquiry_new(&settings);
    doctor_plan(&d, request);
    do
        doctor_run_tasks(&d);
    while (d.task_count > 0 && inquiry_wait(d.inquiry));
    doctor_end(&d);
    doctor_print(&d, request->json);
    int code = faults_count(&d.list, FAULT_ERROR) > 0 ? 1 : 0;
    inquiry_free(&d.inquiry);
    faults_free(&d.list);
    free(d.domains);
    free(d.tasks);
    return fflush(stdout) == 0 && !ferror(stdout) ? code : 1;
}
