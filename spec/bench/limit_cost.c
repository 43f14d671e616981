/* What limits take of a hook's way: nothing set; the signatures' limit alone, as it is by default; a limit of
 * everything. Threads share the buckets, as ingest loops do; addresses go round.
 *
 *     bench_limit_cost [threads=2] [addresses=1000] [hooks=2000000]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limits/limits.h"
#include "util/check.h"

static const struct limit wide = {.rate = 1000000, .burst = 1000000}, none = {0};
static uint64_t hooks, addresses;
static struct limits *limits;

struct load {
    pthread_t thread;
    bool signatures, rates;
    uint64_t refused;
};

static void *send(void *arg)
{
    struct load *load = arg;
    uint64_t source = limits_key(BYTES("shop"));
    for (uint64_t i = 0; i < hooks; i++) {
        struct ip ip = {.at = {[10] = 0xff, [11] = 0xff}};
        uint32_t address = (uint32_t)(i % addresses);
        memcpy(ip.at + 12, &address, sizeof address);
        struct limits_sender sender = {.source = source, .limit = load->signatures ? wide : none};
        struct limits_hook hook = {.tenant = BYTES("acme"),
                                   .source = source,
                                   .of_source = load->rates ? wide : none,
                                   .of_address = load->rates ? wide : none};
        sender.address = hook.address = limits_address_key(&ip);
        struct limits_charge charge;
        enum limit_kind which;
        int64_t now_ns = limits_now_ns();
        if (load->signatures) {
            load->refused += limits_may_verify(limits, &sender, now_ns) > 0;
            limits_proved(limits, &sender, limits_now_ns());
        }
        load->refused += limits_charge(limits, &hook, limits_now_ns(), &charge, &which) > 0;
    }
    return NULL;
}

static void measure(const char *what, size_t threads, bool signatures, bool rates)
{
    struct load loads[64] = {{.refused = 0}};
    limits = limits_open();
    limits_configure(limits, rates ? wide : none, NULL, 0);
    int64_t started_ns = limits_now_ns();
    uint64_t refused = 0;
    for (size_t i = 0; i < threads; i++) {
        loads[i].signatures = signatures;
        loads[i].rates = rates;
        CHECK(pthread_create(&loads[i].thread, NULL, send, &loads[i]) == 0);
    }
    for (size_t i = 0; i < threads; i++) {
        pthread_join(loads[i].thread, NULL);
        refused += loads[i].refused;
    }
    printf("%-28s %6.0f ns a hook and thread, %llu refused\n", what,
           (double)(limits_now_ns() - started_ns) / (double)hooks, (unsigned long long)refused);
    limits_close(limits);
}

int main(int argc, char **argv)
{
    size_t threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 2;
    addresses = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    hooks = argc > 3 ? strtoull(argv[3], NULL, 10) : 2000000;
    CHECK(threads >= 1 && threads <= 64 && addresses > 0 && hooks > 0);
    measure("no limit", threads, false, false);
    measure("signatures, the default", threads, true, false);
    measure("signatures and every rate", threads, true, true);
    return 0;
}
