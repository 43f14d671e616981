#include "cli/drill.h"

#include <pthread.h>
#include <stdlib.h>

#include "util/jsonw.h"
#include "util/mem.h"
#include "util/vec.h"

struct rule {
    char *key;
    size_t key_len;
    int status;                /* 0: not said */
    int64_t least_ms, most_ms; /* -1: not said */
    bool hang;
};

struct drill {
    pthread_mutex_t lock;
    VEC(struct rule) rules; /* few: looked through one by one */
    unsigned fail_percent;
    uint64_t random;
};

struct drill *drill_new(unsigned fail_percent, uint64_t seed)
{
    struct drill *drill = mem_zalloc(sizeof *drill);
    pthread_mutex_init(&drill->lock, NULL);
    drill->fail_percent = fail_percent;
    drill->random = seed * 2 + 1; /* xorshift stands still at 0 */
    return drill;
}

void drill_free(struct drill *drill)
{
    drill_heal(drill, BYTES_NONE);
    VEC_FREE(&drill->rules);
    pthread_mutex_destroy(&drill->lock);
    free(drill);
}

static struct rule *find(struct drill *drill, struct bytes key)
{
    VEC_EACH (rule, &drill->rules) {
        if (bytes_eq(bytes_of(rule->key, rule->key_len), key))
            return rule;
    }
    return NULL;
}

/* The rule of a key, made when there is none; NULL over the bounds. */
static struct rule *rule_of(struct drill *drill, struct bytes key)
{
    struct rule *rule = find(drill, key);
    if (rule || drill->rules.len >= DRILL_RULES_MAX || key.len > DRILL_KEY_MAX)
        return rule;
    rule = VEC_ADD(&drill->rules);
    *rule = (struct rule){.key = mem_alloc(key.len), .key_len = key.len, .least_ms = -1, .most_ms = -1};
    memcpy(rule->key, key.at, key.len);
    return rule;
}

bool drill_fail(struct drill *drill, struct bytes key, int status)
{
    pthread_mutex_lock(&drill->lock);
    struct rule *rule = rule_of(drill, key);
    if (rule)
        rule->status = status;
    pthread_mutex_unlock(&drill->lock);
    return rule != NULL;
}

bool drill_delay(struct drill *drill, struct bytes key, int64_t least_ms, int64_t most_ms)
{
    pthread_mutex_lock(&drill->lock);
    struct rule *rule = rule_of(drill, key);
    if (rule) {
        rule->least_ms = least_ms;
        rule->most_ms = most_ms;
    }
    pthread_mutex_unlock(&drill->lock);
    return rule != NULL;
}

bool drill_hang(struct drill *drill, struct bytes key)
{
    pthread_mutex_lock(&drill->lock);
    struct rule *rule = rule_of(drill, key);
    if (rule)
        rule->hang = true;
    pthread_mutex_unlock(&drill->lock);
    return rule != NULL;
}

void drill_heal(struct drill *drill, struct bytes key)
{
    pthread_mutex_lock(&drill->lock);
    for (size_t i = drill->rules.len; i-- > 0;) {
        struct rule *rule = &drill->rules.at[i];
        if (key.at && !bytes_eq(bytes_of(rule->key, rule->key_len), key))
            continue;
        free(rule->key);
        *rule = drill->rules.at[--drill->rules.len];
    }
    if (!key.at)
        drill->fail_percent = 0;
    pthread_mutex_unlock(&drill->lock);
}

/* 0 .. below-1, from the seed. */
static uint64_t draw(struct drill *drill, uint64_t below)
{
    drill->random ^= drill->random << 13;
    drill->random ^= drill->random >> 7;
    drill->random ^= drill->random << 17;
    return (drill->random >> 20) % below;
}

struct drill_order drill_ask(struct drill *drill, struct bytes key)
{
    struct drill_order order = {0};
    const struct rule *waits = NULL;
    pthread_mutex_lock(&drill->lock);
    const struct rule *rules[] = {key.at ? find(drill, key) : NULL, find(drill, BYTES("*"))};
    for (int i = 0; i < 2; i++) {
        if (!rules[i])
            continue;
        if (!order.status)
            order.status = rules[i]->status;
        if (!waits && rules[i]->least_ms >= 0)
            waits = rules[i];
        order.hang |= rules[i]->hang;
    }
    if (!order.status)
        order.status = draw(drill, 100) < drill->fail_percent ? 503 : 200;
    if (waits)
        order.delay_us = waits->least_ms * 1000 +
                         (int64_t)draw(drill, (uint64_t)(waits->most_ms - waits->least_ms) * 1000 + 1);
    pthread_mutex_unlock(&drill->lock);
    return order;
}

void drill_show(struct drill *drill, struct buf *out)
{
    struct jsonw w = jsonw_on(out);
    pthread_mutex_lock(&drill->lock);
    jsonw_object(&w, NULL);
    jsonw_uint(&w, "fail_percent", drill->fail_percent);
    jsonw_array(&w, "keys");
    VEC_EACH (rule, &drill->rules) {
        jsonw_object(&w, NULL);
        jsonw_bytes_percent(&w, "key", bytes_of(rule->key, rule->key_len));
        if (rule->status)
            jsonw_int(&w, "status", rule->status);
        else
            jsonw_null(&w, "status");
        jsonw_int(&w, "delay_ms", rule->least_ms < 0 ? 0 : rule->least_ms);
        jsonw_int(&w, "delay_most_ms", rule->most_ms < 0 ? 0 : rule->most_ms);
        jsonw_bool(&w, "hang", rule->hang);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    pthread_mutex_unlock(&drill->lock);
}
