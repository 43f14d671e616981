#include "util/digest.h"

#include <openssl/evp.h>
#include <pthread.h>

#include "util/check.h"

/* Fetching an algorithm and making a context cost more than hashing a key: the first is done once, the second
 * once a thread, which frees it when it ends. */
static EVP_MD *algorithm;
static __thread EVP_MD_CTX *thread_ctx;
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void free_ctx(void *ctx)
{
    EVP_MD_CTX_free(ctx);
}

static void prepare(void)
{
    algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    CHECK(algorithm && pthread_key_create(&thread_end, free_ctx) == 0);
}

static void begin(EVP_MD_CTX *ctx)
{
    CHECK(EVP_DigestInit_ex(ctx, algorithm, NULL) == 1);
}

static void add(EVP_MD_CTX *ctx, const struct bytes *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        CHECK(EVP_DigestUpdate(ctx, parts[i].at, parts[i].len) == 1);
}

static void end(EVP_MD_CTX *ctx, uint8_t out[SHA256_SIZE])
{
    CHECK(EVP_DigestFinal_ex(ctx, out, NULL) == 1);
}

static EVP_MD_CTX *new_ctx(void)
{
    pthread_once(&once, prepare);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    CHECK(ctx);
    return ctx;
}

/* This thread's own, begun. */
static EVP_MD_CTX *own_ctx(void)
{
    if (!thread_ctx) {
        thread_ctx = new_ctx();
        CHECK(pthread_setspecific(thread_end, thread_ctx) == 0);
    }
    begin(thread_ctx);
    return thread_ctx;
}

void sha256(const struct bytes *parts, size_t n, uint8_t out[SHA256_SIZE])
{
    EVP_MD_CTX *ctx = own_ctx();
    add(ctx, parts, n);
    end(ctx, out);
}

struct sha256_run *sha256_begin(void)
{
    EVP_MD_CTX *ctx = new_ctx();
    begin(ctx);
    return (struct sha256_run *)ctx;
}

void sha256_add(struct sha256_run *run, struct bytes piece)
{
    add((EVP_MD_CTX *)run, &piece, 1);
}

void sha256_end(struct sha256_run *run, uint8_t out[SHA256_SIZE])
{
    end((EVP_MD_CTX *)run, out);
    EVP_MD_CTX_free((EVP_MD_CTX *)run);
}

/* RFC 2104, over the parts, so that a body is never copied to be signed. */
void hmac_sha256(struct bytes secret, const struct bytes *parts, size_t n, uint8_t out[SHA256_SIZE])
{
    enum { BLOCK = 64 };
    uint8_t key[BLOCK] = {0}, pad[BLOCK], inner[SHA256_SIZE];
    if (secret.len > BLOCK)
        sha256(&secret, 1, key);
    else if (secret.len)
        memcpy(key, secret.at, secret.len);

    EVP_MD_CTX *ctx = own_ctx();
    for (int i = 0; i < BLOCK; i++)
        pad[i] = key[i] ^ 0x36;
    add(ctx, &(struct bytes){(const char *)pad, BLOCK}, 1);
    add(ctx, parts, n);
    end(ctx, inner);

    for (int i = 0; i < BLOCK; i++)
        pad[i] = key[i] ^ 0x5c;
    const struct bytes outer[] = {bytes_of(pad, BLOCK), bytes_of(inner, sizeof inner)};
    sha256(outer, 2, out);
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_write(struct bytes in, char *out)
{
    char *to = out;
    for (size_t i = 0; i < in.len; i += 3) {
        size_t left = in.len - i < 3 ? in.len - i : 3;
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < left ? (uint8_t)in.at[i + k] : 0);
        *to++ = alphabet[v >> 18];
        *to++ = alphabet[v >> 12 & 63];
        *to++ = left > 1 ? alphabet[v >> 6 & 63] : '=';
        *to++ = left > 2 ? alphabet[v & 63] : '=';
    }
    return (size_t)(to - out);
}

void base64_encode(struct buf *out, struct bytes in)
{
    char *to = buf_extend(out, BASE64_SIZE(in.len));
    if (to)
        base64_write(in, to);
}

static int digit(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

bool base64_decode(struct buf *out, struct bytes text)
{
    if (text.len % 4)
        return false;
    for (size_t i = 0; i < text.len; i += 4) {
        const char *p = text.at + i;
        bool last = i + 4 == text.len;
        int pads = last && p[3] == '=' ? (p[2] == '=' ? 2 : 1) : 0;
        uint32_t v = 0;
        for (int k = 0; k < 4; k++) {
            int d = k >= 4 - pads ? 0 : digit(p[k]);
            if (d < 0)
                return false;
            v = v << 6 | (uint32_t)d;
        }
        if ((pads == 1 && (v & 0xff)) || (pads == 2 && (v & 0xffff)))
            return false; /* bits that no encoder sets */
        char three[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
        buf_put(out, three, 3 - (size_t)pads);
    }
    return true;
}
