/* When a failed row is tried again, and when enough is enough. */
#include "lanes/sched_priv.h"

/* In [0.5, 1.0], from the seed alone (xorshift64*, Vigna 2016). */
static double jitter(struct sched *sched)
{
    sched->random ^= sched->random >> 12;
    sched->random ^= sched->random << 25;
    sched->random ^= sched->random >> 27;
    uint64_t bits = sched->random * 0x2545f4914f6cdd1dULL;
    return 0.5 + (double)(bits >> 11) / (double)(1ULL << 53) * 0.5;
}

/* After `attempts` failed ones. An explicit list is taken at its word: no jitter. */
int64_t retry_delay_ms(struct sched *sched, const struct retry_policy *policy, uint32_t attempts)
{
    uint32_t n = attempts > 0 ? attempts - 1 : 0;
    if (policy->schedule_count > 0)
        return policy->schedule_ms[n < policy->schedule_count ? n : policy->schedule_count - 1];
    int64_t delay_ms = policy->base_ms;
    while (n-- > 0 && delay_ms < policy->max_ms)
        delay_ms *= 2;
    if (delay_ms > policy->max_ms)
        delay_ms = policy->max_ms;
    return policy->jitter ? (int64_t)((double)delay_ms * jitter(sched) + 0.5) : delay_ms;
}

int64_t note_waived_ms(const struct sched *sched, const struct sched_sink *sink, const struct note *note)
{
    return note->waived_ms + (sink_stopped(sched, sink) - note->stopped_base_ms);
}

bool retry_exhausted(const struct sched *sched, const struct sched_sink *sink, const struct note *note)
{
    const struct retry_policy *policy = &sink->policy.retry;
    if (policy->max_attempts > 0 && note->attempts >= policy->max_attempts)
        return true;
    int64_t tried_ms = sched->now.mono_ms - note->first_ms - note_waived_ms(sched, sink, note);
    return policy->give_up_after_ms > 0 && tried_ms >= policy->give_up_after_ms;
}
