/* Many buckets in a bounded place: BUCKETS_MAX of them, in sets of WAYS that a key's hash chooses. Exact as
 * long as no more than WAYS keys of a set are anything but full, which is far from BUCKETS_MAX keys at once.
 *
 * A new key in a set that is taken pushes out the fullest bucket, and takes over what was spent of it. So
 * whoever is pushed out and comes back finds a set in which nobody is fuller than he was: being forgotten
 * never gives anybody a fresh burst, however many addresses he has. The price is paid by a stranger, in a
 * flood of more than BUCKETS_MAX addresses that have all spent something: he may begin with less than a full
 * bucket.
 * Who was pushed out is full to whoever only looks, until something is taken: beyond BUCKETS_MAX addresses at
 * once, a look holds back fewer than it should.
 *
 * Any thread. A lock a shard of the sets, held for a few dozen nanoseconds; no allocation but at the start.
 */
#ifndef LIMITS_BUCKETS_H
#define LIMITS_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "limits/bucket.h"

enum { BUCKETS_MAX = 65536, BUCKETS_WAYS = 8 };

struct buckets;

struct buckets *buckets_open(void); /* 1 MiB, of which pages are used as keys come */
void buckets_close(struct buckets *buckets);

/* `key` is a hash of whatever has the bucket. As the functions of bucket.h; only taking makes one. */
int64_t buckets_take(struct buckets *buckets, uint64_t key, struct pace pace, int64_t now_ns);
int64_t buckets_wait_ns(struct buckets *buckets, uint64_t key, struct pace pace, int64_t now_ns);
int64_t buckets_level(struct buckets *buckets, uint64_t key, struct pace pace, int64_t now_ns);
/* One that was taken comes back. Nothing happens when its key was pushed out meanwhile. */
void buckets_give_back(struct buckets *buckets, uint64_t key, int64_t every_ns);

/* The same place for keys that are known until a moment; the one known for the shortest goes first. Says when
 * that is; 0: it is not known. */
int64_t buckets_known_until(struct buckets *buckets, uint64_t key);
void buckets_know(struct buckets *buckets, uint64_t key, int64_t until_ns);

#endif
