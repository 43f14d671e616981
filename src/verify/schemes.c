/* Every way a source can be verified. Where a provider's scheme is a signature over a text, the facts stand
 * here, with the page they come from; how such a scheme works, and every other one, is a file in schemes/. */
#include "verify/schemes.h"

#include "verify/recipe.h"

/* docs.stripe.com/webhooks/signature: "t=...,v1=...,v1=..."; the secret is taken whole, whsec_ included. */
static const struct recipe stripe = {.header = "stripe-signature",
                                     .separators = ",",
                                     .prefix = "v1=",
                                     .ts_entry = "t=",
                                     .signs = "{ts}.{body}"};

/* docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries. X-Hub-Signature with SHA-1 is for
 * old receivers: schemes/hmac.c has it for those who ask. */
static const struct recipe github = {.header = "x-hub-signature-256", .prefix = "sha256=", .signs = "{body}"};

/* shopify.dev/docs/apps/build/webhooks/subscribe/https: the secret is the app's client secret. */
static const struct recipe shopify = {
    .header = "x-shopify-hmac-sha256", .coding = CODING_BASE64, .signs = "{body}"};

/* docs.slack.dev/authentication/verifying-requests-from-slack: the signing secret of the app. */
static const struct recipe slack = {.header = "x-slack-signature",
                                    .prefix = "v0=",
                                    .ts_header = "x-slack-request-timestamp",
                                    .signs = "v0:{ts}:{body}"};

/* developers.zoom.us/docs/api/webhooks, "Verify webhook events": the secret token of the app. */
static const struct recipe zoom = {.header = "x-zm-signature",
                                   .prefix = "v0=",
                                   .ts_header = "x-zm-request-timestamp",
                                   .signs = "v0:{ts}:{body}"};

/* developer.paddle.com/webhooks/signature-verification: "ts=...;h1=..."; its libraries allow five seconds. */
static const struct recipe paddle = {.header = "paddle-signature",
                                     .separators = ";",
                                     .prefix = "h1=",
                                     .ts_entry = "ts=",
                                     .signs = "{ts}:{body}",
                                     .tolerance_ms = 5000};

/* linear.app/developers/webhooks: hex over the body, which holds its own time in milliseconds. */
static const struct recipe linear = {
    .header = "linear-signature", .ts_json = "webhookTimestamp", .ts_in_ms = true, .signs = "{body}"};

/* developer.squareup.com/docs/webhooks/step3validate: the notification URL, exactly as it was given to them.
 */
static const struct recipe square = {
    .header = "x-square-hmacsha256-signature", .coding = CODING_BASE64, .signs = "{url}{body}"};

/* docs.discord.com/developers/interactions/overview, "Validating Security Request Headers": the application's
 * public key, in hex. */
static const struct recipe discord = {
    .header = "x-signature-ed25519", .ts_header = "x-signature-timestamp", .signs = "{ts}{body}"};

/* www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features:
 * ECDSA over P-256 and SHA-256, in base64; so is the public key that they show. */
static const struct recipe sendgrid = {.header = "x-twilio-email-event-webhook-signature",
                                       .ts_header = "x-twilio-email-event-webhook-timestamp",
                                       .coding = CODING_BASE64,
                                       .signs = "{ts}{body}"};

#define SCHEMES(X)                                                                                           \
    X("none", scheme_none, NULL)                           /* takes everything; says so in each envelope */  \
    X("standard_webhooks", scheme_standard_webhooks, NULL) /* standardwebhooks.com */                        \
    X("svix", scheme_standard_webhooks, NULL)              /* the same; both take both header brands */      \
    X("stripe", scheme_provider_hmac, &stripe)                                                               \
    X("github", scheme_github, &github)                                                                      \
    X("shopify", scheme_provider_hmac, &shopify)                                                             \
    X("slack", scheme_provider_hmac, &slack)                                                                 \
    X("zoom", scheme_provider_hmac, &zoom)                                                                   \
    X("paddle", scheme_provider_hmac, &paddle)                                                               \
    X("linear", scheme_provider_hmac, &linear)                                                               \
    X("square", scheme_provider_hmac, &square)                                                               \
    X("twilio", scheme_twilio, NULL)                                                                         \
    X("gitlab", scheme_gitlab, NULL)                                                                         \
    X("discord", scheme_provider_ed25519, &discord)                                                          \
    X("sendgrid", scheme_provider_ecdsa, &sendgrid)                                                          \
    X("hmac", scheme_hmac, NULL) /* whatever the options say, with a shared secret */                        \
    X("ed25519", scheme_ed25519, NULL)                                                                       \
    X("rsa", scheme_rsa, NULL)                                                                               \
    X("ecdsa", scheme_ecdsa, NULL)                                                                           \
    X("bearer", scheme_bearer, NULL) /* a token in a header */                                               \
    X("basic", scheme_basic, NULL)   /* user and password */                                                 \
    X("mtls", scheme_mtls, NULL)     /* the fingerprint of the client's certificate */                       \
    X("lua", scheme_lua, NULL)       /* a function of the operator's */

const struct scheme_row scheme_rows[] = {
#define SCHEME_ROW(name, scheme, facts) {name, &scheme, facts},
    SCHEMES(SCHEME_ROW)
#undef SCHEME_ROW
};
const size_t scheme_row_count = sizeof scheme_rows / sizeof *scheme_rows;

const char *const *verify_scheme_names(void)
{
    static const char *const names[] = {
#define SCHEME_NAME(name, scheme, facts) name,
        SCHEMES(SCHEME_NAME)
#undef SCHEME_NAME
            NULL};
    return names;
}
