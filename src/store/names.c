/* Tenants, sources and sinks by small numbers. All of them are in memory; a new one rides in the next
 * transaction, and in every one after it until one was durable. */
#include <stdlib.h>

#include "store/store_priv.h"
#include "util/check.h"
#include "util/hash.h"

void names_init(struct names *names)
{
    *names = (struct names){.bucket_count = 64};
    CHECK(pthread_rwlock_init(&names->lock, NULL) == 0);
    names->buckets = mem_zalloc(names->bucket_count * sizeof *names->buckets);
}

void names_free(struct names *names)
{
    VEC_EACH (name, &names->all) {
        free((*name)->text);
        free((*name)->sink);
        free(*name);
    }
    for (size_t i = 0; i < names->class_count; i++)
        free((char *)names->classes[i]);
    VEC_FREE(&names->all);
    free(names->buckets);
    pthread_rwlock_destroy(&names->lock);
}

static size_t bucket_of(const struct names *names, enum name_kind kind, struct bytes text, struct bytes sink)
{
    uint64_t hash = hash_u64(hash_bytes(text) + (uint64_t)kind, sink.at ? hash_bytes(sink) : 0);
    return hash & (names->bucket_count - 1);
}

static struct name *find(const struct names *names, enum name_kind kind, struct bytes text, struct bytes sink)
{
    struct name *name = names->buckets[bucket_of(names, kind, text, sink)];
    for (; name; name = name->chain) {
        if (name->kind == kind && bytes_eq(bytes_str(name->text), text) &&
            bytes_eq(bytes_str(name->sink), sink))
            return name;
    }
    return NULL;
}

static void hang(struct names *names, struct name *name)
{
    struct name **bucket =
        &names->buckets[bucket_of(names, name->kind, bytes_str(name->text), bytes_str(name->sink))];
    name->chain = *bucket;
    *bucket = name;
}

static void grow(struct names *names)
{
    free(names->buckets);
    names->bucket_count *= 2;
    names->buckets = mem_zalloc(names->bucket_count * sizeof *names->buckets);
    VEC_EACH (name, &names->all)
        hang(names, *name);
}

static char *copy(struct bytes text)
{
    return text.at ? mem_format("%.*s", BYTES_ARG(text)) : NULL;
}

static struct name *make(struct names *names, enum name_kind kind, struct bytes text, struct bytes sink)
{
    if (names->all.len >= NAMES_MAX)
        return NULL;
    struct name *name = mem_alloc(sizeof *name);
    *name = (struct name){
        .id = (uint32_t)names->all.len + 1, .kind = kind, .text = copy(text), .sink = copy(sink)};
    VEC_PUSH(&names->all, name);
    if (names->all.len > names->bucket_count)
        grow(names);
    else
        hang(names, name);
    return name;
}

enum status names_load(struct names *names, struct db *db, struct error *err)
{
    sqlite3_stmt *stmt;
    int rc =
        sqlite3_prepare_v2(db->handle, "SELECT id, kind, text, sink FROM names ORDER BY id", -1, &stmt, NULL);
    bool odd = false;
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        int64_t id = sqlite3_column_int64(stmt, 0);
        int kind = sqlite3_column_int(stmt, 1);
        odd |= kind < NAME_TENANT || kind > NAME_SINK || sqlite3_column_type(stmt, 2) == SQLITE_NULL ||
               (kind == NAME_SINK) != (sqlite3_column_type(stmt, 3) != SQLITE_NULL);
        struct name *name =
            odd ? NULL : make(names, (enum name_kind)kind, db_column(stmt, 2), db_column(stmt, 3));
        odd |= !name || name->id != id;
        if (odd)
            break;
    }
    sqlite3_finalize(stmt);
    if (odd)
        return error_set(err, STATUS_CORRUPT, "the store's table of names is damaged");
    if (rc != SQLITE_DONE)
        return error_set(err, db_status(rc), "the store's names can't be read: %s", db_problem(db));
    names->durable = names->writing = names->all.len;
    return STATUS_OK;
}

const struct name *names_find(struct names *names, enum name_kind kind, struct bytes text, struct bytes sink)
{
    pthread_rwlock_rdlock(&names->lock);
    const struct name *name = find(names, kind, text, sink);
    pthread_rwlock_unlock(&names->lock);
    return name;
}

const struct name *names_add(struct names *names, enum name_kind kind, struct bytes text, struct bytes sink)
{
    const struct name *name = names_find(names, kind, text, sink);
    if (name)
        return name;
    pthread_rwlock_wrlock(&names->lock);
    name = find(names, kind, text, sink);
    if (!name)
        name = make(names, kind, text, sink);
    pthread_rwlock_unlock(&names->lock);
    return name;
}

const struct name *names_by_id(struct names *names, uint32_t id)
{
    pthread_rwlock_rdlock(&names->lock);
    const struct name *name = id >= 1 && id <= names->all.len ? names->all.at[id - 1] : NULL;
    pthread_rwlock_unlock(&names->lock);
    return name;
}

static bool is(const char *name, struct bytes wanted)
{
    return !wanted.at || (name && bytes_eq(bytes_str(name), wanted));
}

bool names_any_sink(struct names *names, struct bytes source, struct bytes sink)
{
    bool found = false;
    pthread_rwlock_rdlock(&names->lock);
    for (size_t i = 0; i < names->all.len && !found; i++) {
        const struct name *name = names->all.at[i];
        found = name->kind != NAME_TENANT && is(name->text, source) && is(name->sink, sink);
    }
    pthread_rwlock_unlock(&names->lock);
    return found;
}

const char *names_class(struct names *names, const char *text)
{
    const char *found = NULL;
    pthread_rwlock_rdlock(&names->lock);
    for (size_t i = 0; i < names->class_count && !found; i++)
        found = strcmp(names->classes[i], text) == 0 ? names->classes[i] : NULL;
    pthread_rwlock_unlock(&names->lock);
    if (found)
        return found;

    pthread_rwlock_wrlock(&names->lock);
    for (size_t i = 0; i < names->class_count && !found; i++)
        found = strcmp(names->classes[i], text) == 0 ? names->classes[i] : NULL;
    if (!found && names->class_count < CLASSES_MAX)
        found = names->classes[names->class_count++] = mem_strdup(text);
    pthread_rwlock_unlock(&names->lock);
    return found ? found : "other";
}

bool names_write(struct names *names, sqlite3_stmt *insert)
{
    bool written = true;
    pthread_rwlock_wrlock(&names->lock);
    names->writing = names->all.len;
    for (size_t i = names->durable; i < names->writing && written; i++) {
        const struct name *name = names->all.at[i];
        sqlite3_bind_int64(insert, 1, name->id);
        sqlite3_bind_int(insert, 2, name->kind);
        sqlite3_bind_text(insert, 3, name->text, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 4, name->sink, -1, SQLITE_STATIC);
        written = db_run(insert);
    }
    pthread_rwlock_unlock(&names->lock);
    return written;
}

void names_written(struct names *names)
{
    pthread_rwlock_wrlock(&names->lock);
    names->durable = names->writing;
    pthread_rwlock_unlock(&names->lock);
}

bool names_all_durable(struct names *names, uint32_t upto)
{
    pthread_rwlock_rdlock(&names->lock);
    bool durable = names->durable >= upto && (upto > 0 || names->durable == names->all.len);
    pthread_rwlock_unlock(&names->lock);
    return durable;
}
