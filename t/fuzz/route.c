/* Fuzz target: tables of routes, and addresses looked up in them. A NUL byte parts
 * routes, relay, local, local_domains and addresses. */
#include "sched/route/route.h"

#include "t/support/must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_target(const struct target *target, struct text domain)
{
    char key[ROUTE_KEY_MAX];
    must(target != NULL && target->kind <= TARGET_UNKNOWN);
    must(memchr(target->host, '\0', sizeof(target->host)) != NULL);
    must(memchr(target->path, '\0', sizeof(target->path)) != NULL);
    must(memchr(target->enhanced, '\0', sizeof(target->enhanced)) != NULL);
    must(target->timeout_scale > 0 && target->transport.lifetime_ms >= 0);
    must(target->tls <= TARGET_TLS_VERIFY);
    must(!target->tls_implicit || target->tls >= TARGET_TLS_ENCRYPT);
    size_t length = route_key(target, domain, key);
    must(length < ROUTE_KEY_MAX && strlen(key) == length);
}

static void
look_up(const struct route_table *table, struct text t)
{
    struct address a;
    struct text rest = t;
    if (address_parse(t, &a))
        check_target(route_find(table, &a), a.domain);
    if (address_judge_path(&rest, &a) == NULL && a.local.length > 0)
        check_target(route_find(table, &a), a.domain);
    if (address_is_domain(t))
        (void)route_is_local_domain(table, t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text rest = text_of(data, size), parts[4], line;
    struct buffer mistakes;
    for (int i = 0; i < 4; i++)
        if (!text_cut(&rest, '\0', &parts[i]))
            parts[i] = TEXT("");
    struct route_settings settings = {.routes = parts[0],
                                      .relay = parts[1],
                                      .local = parts[2],
                                      .local_domains = parts[3],
                                      .smtp_port = 25};
    transport_params_default(&settings.base);
    buffer_init(&mistakes, 64 * 1024);
    struct route_table *table = route_new(&settings, &mistakes);
    must((table == NULL) == (mistakes.length > 0));
    if (table != NULL)
        while (text_cut(&rest, '\n', &line))
            look_up(table, line);
    route_free(&table);
    buffer_free(&mistakes);
    return 0;
}
