/* Digests as OpenSSL knows them, for the files of this room that call it. */
#ifndef VERIFY_DIGEST_EVP_H
#define VERIFY_DIGEST_EVP_H

#include <openssl/evp.h>

#include "verify/mac.h"

const EVP_MD *digest_evp(enum digest digest); /* static */

#endif
