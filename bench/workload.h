/* SPDX-License-Identifier: MIT
 *
 * The reference workload: a numbered list of questions, and the answer to each. Both are functions of numbers
 * alone, so that a query generator, a responder and a checker agree without telling each other anything.
 *
 * Questions: 56 % A, 25 % AAAA, 19 % TXT, all different. A name is a common host label, a label of 4..12
 * random letters and the question's number in hex, and a common suffix: 24 bytes on the wire in the mean for
 * a million. Answers: 1..4 records of the question's type, TXT data of 64..224 bytes, one TTL.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKLOAD_QUERY_MAX    96   /* of workload_query() */
#define WORKLOAD_RESPONSE_MAX 2048 /* of workload_response() */
#define WORKLOAD_UDP_SIZE     1232 /* what our queries offer: room for every answer of the workload */

/* Question `i` of list `seed` as a query with RD and an OPT, its ID the low bits of `i`. Returns the length.
 */
size_t workload_query(uint64_t seed, uint64_t i, uint8_t query[WORKLOAD_QUERY_MAX]);

/* The same question as a line for dnsperf: "www.example.com A". */
void workload_text(uint64_t seed, uint64_t i, char text[WORKLOAD_QUERY_MAX]);

/* The answer to any query with a question, as an upstream would send it. Types other than those of the
 * workload have no data (with a SOA). TC and no records if it does not fit, which cannot happen on a stream.
 * Returns the length, or 0 if that is not a query. */
size_t workload_response(const uint8_t *query, size_t len, uint32_t ttl, bool stream,
                         uint8_t response[WORKLOAD_RESPONSE_MAX]);

/* Length of header and question of a message that starts with one plain question, or 0. */
size_t workload_question_end(const uint8_t *message, size_t len);

/* A number for a question in any case; `end` as from workload_question_end(). */
uint64_t workload_question_hash(const uint8_t *message, size_t end);

/* A number from which all others can be told: a bijection with good avalanche. */
uint64_t workload_mix(uint64_t x);

#endif
