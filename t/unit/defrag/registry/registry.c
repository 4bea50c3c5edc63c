/* defrag/registry/registry.c and registry_place.c: where a registry is, and what all have in
 * common, with the one that is no more than this host. */
#include "defrag/registry/registry.h"

#include "t/support/registry_kit.h"

struct example {
    const char *setting, *read; /* "place user password", or an error's beginning */
};

static const struct example settings[] = {
    {"local",                             "local"                             },
    {"dir:/var/lib/x",                    "dir:/var/lib/x"                    },
    {"dir:/",                             "dir:/"                             },
    {"dir:relative",                      "behind dir:"                       },
    {"dir:",                              "behind dir:"                       },
    {"dir:/a\nb",                         "behind dir:"                       },
    {"Local",                             "it must be"                        },
    {"",                                  "it must be"                        },
    {"memcache://h",                      "it must be"                        },
    {"redis:h",                           "it must be"                        },
    {"redis://h",                         "redis://h:6379/0"                  },
    {"redis://h/",                        "redis://h:6379/0"                  },
    {"redis://r.example:7000/15",         "redis://r.example:7000/15"         },
    {"rediss://r.example",                "rediss://r.example:6379/0"         },
    {"redis://10.0.0.1:1",                "redis://10.0.0.1:1/0"              },
    {"redis://[::1]",                     "redis://[::1]:6379/0"              },
    {"redis://[2001:db8::1]:65535/2",     "redis://[2001:db8::1]:65535/2"     },
    {"redis://:secret@h",                 "redis://h:6379/0  secret"          },
    {"redis://user:secret@h:1/2",         "redis://h:1/2 user secret"         },
    {"redis://us%3aer:se%25c%2Fr%40et@h", "redis://h:6379/0 us:er se%c/r@et"  },
    {"redis://u:with/and@and:in@h/3",     "redis://h:6379/3 u with/and@and:in"},
    {"redis://user:@h",                   "before the @"                      },
    {"redis://@h",                        "before the @"                      },
    {"redis://u:%zz@h",                   "user and password"                 },
    {"redis://u:%4@h",                    "user and password"                 },
    {"redis://u:a%00b@h",                 "user and password"                 },
    {"redis://",                          "the host"                          },
    {"redis:///1",                        "the host"                          },
    {"redis://a b",                       "the host"                          },
    {"redis://[::1",                      "a ["                               },
    {"redis://[nonsense]",                "the host"                          },
    {"redis://::1",                       "the host"                          },
    {"redis://h:",                        "the port"                          },
    {"redis://h:0",                       "the port"                          },
    {"redis://h:65536",                   "the port"                          },
    {"redis://h:1x",                      "the port"                          },
    {"redis://[::1]6379",                 "the port"                          },
    {"redis://h/x",                       "behind the /"                      },
    {"redis://h/65536",                   "behind the /"                      },
    {"redis://h/1/2",                     "behind the /"                      },
};

TEST(settings)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        const struct example *e = &settings[i];
        struct registry_place place;
        char error[256] = "", text[REGISTRY_SETTING_MAX], all[2048] = "";
        bool is_redis = text_starts(text_from(e->setting), TEXT("redis"));
        if (is_redis && *redis_version() == '\0')
            continue;
        if (!registry_parse(text_from(e->setting), &place, error, sizeof(error))) {
            error[strlen(e->read) < sizeof(error) ? strlen(e->read) : 0] = '\0';
            is_string(error, e->read, e->setting);
            continue;
        }
        registry_place_text(&place, text);
        snprintf(all, sizeof(all), "%s%s%s%s%s", text, *place.redis.password ? " " : "",
                 place.redis.user, *place.redis.password ? " " : "", place.redis.password);
        is_string(all, e->read, e->setting);
    }
}

TEST(long_settings)
{
    struct registry_place place;
    char setting[2000], error[256] = "";
    memset(setting, 'a', sizeof(setting));
    memcpy(setting, "dir:/", 5);
    ok_named(!registry_parse(text_of(setting, REGISTRY_SETTING_MAX), &place, error,
                             sizeof(error)),
             "a setting that is too long");
    ok_named(registry_parse(text_of(setting, REGISTRY_SETTING_MAX - 1), &place, error,
                            sizeof(error)),
             "one that is not");
    char text[REGISTRY_SETTING_MAX];
    registry_place_text(&place, text);
    is_text(text_from(text), text_of(setting, REGISTRY_SETTING_MAX - 1), "... whole");
    if (*redis_version() == '\0')
        return;
    memcpy(setting, "redis://", 8);
    ok_named(!registry_parse(text_of(setting, 8 + 256), &place, error, sizeof(error)),
             "a host of 256 bytes");
    ok_named(registry_parse(text_of(setting, 8 + 255), &place, error, sizeof(error)),
             "of 255");
    memcpy(setting, "redis://u:", 10);
    memcpy(setting + 10 + 257, "@h", 2);
    ok_named(
        !registry_parse(text_of(setting, 10 + 257 + 2), &place, error, sizeof(error)),
        "a password of 257 bytes");
    ok_named(strstr(error, "aaaa") == NULL, "... is not in the error");
    memcpy(setting + 10 + 256, "@h", 2);
    ok_named(
        registry_parse(text_of(setting, 10 + 256 + 2), &place, error, sizeof(error)),
        "of 256");
    is_number(strlen(place.redis.password), 256, "... whole");
}

TEST(hosts)
{
    char name[REGISTRY_HOST_MAX + 1];
    memset(name, 'a', sizeof(name));
    ok(registry_is_host(TEXT("mx1.example_A-9")));
    ok(!registry_is_host(TEXT("")));
    ok(!registry_is_host(TEXT("a b")));
    ok(!registry_is_host(TEXT("a\n")));
    ok(!registry_is_host(TEXT("a\0")));
    ok(!registry_is_host(TEXT("\303\244")));
    ok(registry_is_host(text_of(name, REGISTRY_HOST_MAX)));
    ok(!registry_is_host(text_of(name, REGISTRY_HOST_MAX + 1)));
}

/* Claims again from within its answer. */
struct again {
    struct world *w;
    struct registry_claim claim;
    int times;
};

static void
on_again(void *context, enum registry_answer answer, const char *host)
{
    struct again *a = context;
    unsigned char key[REGISTRY_KEY_SIZE];
    (void)answer, (void)host;
    key_from(1, key);
    if (++a->times < 100)
        registry_claim(a->w->registry, &a->claim, key, 1000, on_again, a);
}

/* Cancels another from within its answer. */
struct pair {
    struct world *w;
    struct registry_claim first, second;
    int times;
};

static void
on_first(void *context, enum registry_answer answer, const char *host)
{
    struct pair *p = context;
    (void)answer, (void)host;
    p->times++;
    registry_cancel(p->w->registry, &p->second);
}

TEST(local)
{
    struct world w;
    struct told t[3];
    struct again again = {.w = &w};
    struct pair pair = {.w = &w};
    unsigned char key[REGISTRY_KEY_SIZE];
    registry_world_start(&w, "one.example", "local");
    ok_named(registry_is_up(w.registry), "it is up");
    is_string(claim(&w, 1), "own", "everything is ours");
    is_string(claim(&w, 1), "own", "again");
    for (unsigned i = 0; i < 3; i++)
        claim_start(&w, &t[i], i, 1000);
    registry_cancel(w.registry, &t[1].claim);
    registry_cancel(w.registry, &t[1].claim);
    until(&w, t[2].times > 0);
    is_number(t[0].times * 100 + t[1].times * 10 + t[2].times, 101,
              "who cancels hears nothing, the others do");
    registry_cancel(w.registry, &t[0].claim);
    key_from(1, key);
    registry_claim(w.registry, &again.claim, key, 1000, on_again, &again);
    loop_turn(w.loop, 0);
    is_number(again.times, 1, "a claim from within an answer waits for the next turn");
    until(&w, again.times == 100);
    is_number(again.times, 100, "... and is answered");
    registry_claim(w.registry, &pair.first, key, 1000, on_first, &pair);
    registry_claim(w.registry, &pair.second, key, 1000, on_first, &pair);
    pass_ms(&w, 20);
    is_number(pair.times, 1, "cancelled from within the answer before");
    close_key(&w, 1, 0);
    is_number(registry_counts(w.registry).own, 107, "all are counted");
    claim_start(&w, &t[0], 1, 1000);
    registry_free(&w.registry);
    pass_ms(&w, 10);
    is_number(t[0].times, 0, "no answer comes once it is freed");
    registry_free(&w.registry);
    registry_world_end(&w);
}

static const char *
configured(const char *setting, const char *password)
{
    static char error[256];
    struct registry_place place;
    if (!registry_configure(text_from(setting), text_from(password), &place, error,
                            sizeof(error)))
        return error;
    return place.kind == REGISTRY_REDIS && strcmp(place.redis.password, password) == 0
               ? "redis"
           : place.kind == REGISTRY_REDIS ? "another password"
                                          : "no redis";
}

TEST(password_apart)
{
    char much[258];
    memset(much, 'p', sizeof(much) - 1);
    much[sizeof(much) - 1] = '\0';
    is_string(configured("local", ""), "no redis", "local");
    is_string(configured("dir:/x", ""), "no redis", "a directory");
    is_string(configured("dir:/x", "p"),
              "only Redis has a password (defrag_registry_password)", "needs none");
    is_string(configured("tape:", ""),
              "it must be local, dir:/path, redis://host or rediss://host", "no kind");
    if (*redis_version() == '\0')
        return;
    is_string(configured("redis://h", ""), "redis", "Redis");
    is_string(configured("redis://h", "p@%/"), "redis", "with a password");
    is_string(configured("redis://u@h", "p"), "redis", "of a user");
    is_string(configured("redis://u@h", ""),
              "a user needs defrag_registry_password", "which is missing");
    ok_named(strstr(configured("redis://u:secret@h", ""), "secret") == NULL &&
                 strstr(configured("redis://:secret@h", "p"),
                        "write the password in") != NULL,
             "no password stands in the open");
    is_string(configured("redis://h", much),
              "defrag_registry_password is longer than 256 bytes", "too long");
}
