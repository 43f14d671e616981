/* How a request carries its signature, and what is signed: facts of a provider (a row in schemes.c), or what
 * the options of a generic scheme say. Texts are static in rows. */
#ifndef VERIFY_RECIPE_H
#define VERIFY_RECIPE_H

#include "verify/coding.h"
#include "verify/mac.h"
#include "verify/template.h"
#include "verify/verify_priv.h"
#include "json/json.h"

enum { TOLERANCE_MS = 300000, RECIPE_SIGNATURES_MAX = 32 };

struct recipe {
    const char *header;     /* holds the signatures */
    const char *prefix;     /* in front of each: "sha256="; NULL: none */
    const char *separators; /* each of these characters ends one in a list; NULL: there is only one */
    const char *signs;      /* template.h: "{ts}.{body}" */
    enum coding coding;     /* of a signature */
    enum digest digest;
    /* Where the time stamp is, one of these or none: a header of its own, an entry of the signature header
     * ("t="), a number in the JSON body. */
    const char *ts_header, *ts_entry, *ts_json;
    bool ts_in_ms;
    int64_t tolerance_ms; /* 0: TOLERANCE_MS */
};

/* A recipe that is ready: immutable. */
struct form {
    struct bytes header, prefix, separators, ts_header, ts_entry;
    char *copies; /* what they point into */
    struct template signs;
    struct json_paths *ts_json; /* NULL: not there */
    enum coding coding;
    enum digest digest;
    int64_t ts_unit_ms, tolerance_ms;
    struct bytes url; /* borrowed from the options */
};

/* From facts and `tolerance_ms`, `url` of the options. INVALID with the option's name in front. */
enum status form_open(struct form *out, const struct recipe *recipe, const struct value *options,
                      struct error *err);
/* Facts out of the options of a generic scheme: header, prefix, encoding, template, algorithm, ts_header,
 * ts_field, ts_unit. `defaults` gives what they leave out. Texts are borrowed from the options, but for
 * `scratch`. */
struct recipe_scratch {
    char separators[8], ts_entry[256];
};
enum status recipe_read(const struct value *options, const struct recipe *defaults, struct recipe *out,
                        struct recipe_scratch *scratch, struct error *err);
void form_close(struct form *form);

/* How a scheme judges signatures: `start` is told once what is signed, `fits` is asked for each entry without
 * its prefix, and gives the number of the secret (or key) that fits, from 1; 0: none. */
struct judge {
    void *ctx;
    void (*start)(void *ctx, const struct bytes *parts, size_t n);
    size_t (*fits)(void *ctx, struct bytes signature);
};
struct verify_result form_check(const struct form *form, const struct attempt *attempt,
                                const struct judge *judge);

/* The public address of the source and what it is worth: https://host/path without query. */
enum status read_url(const struct value *options, struct bytes *url, struct error *err);

#endif
