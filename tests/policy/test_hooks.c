/* SPDX-License-Identifier: MIT
 * What a policy's hooks see and what becomes of their answers. */
#include "policy_kit.h"

#include "wire/bytes.h"
#include "wire/dns.h"

static void fill_a(struct ask ask, uint32_t ttl)
{
        char records[300];
        snprintf(records, sizeof records, "%s %u IN A 192.0.2.1", ask.name, (unsigned)ttl);
        fill(&kit, ask, REPLY(ask.name, ask.type, .ra = true, .records = records));
}

static void no_errors(void)
{
        struct sardine_policy_stats stats = policy_stats(&kit);
        for (unsigned i = 0; i < SARDINE_HOOK_COUNT; i++)
                if (stats.errors[i] || stats.timeouts[i] || stats.skipped[i])
                        fail_msg("hook %u: %s", i, policy_line);
}

static void without_hooks_none_is_called(void **state)
{
        (void)state;
        policy_set(&kit, "return {}");
        fill_a(ASK("www.example", 1), 300);
        assert_int_equal(look(&kit, ASK("www.example", 1))->outcome, SARDINE_HIT);
        struct sardine_policy_stats stats = policy_stats(&kit);
        assert_int_equal(stats.loaded, 1);
        assert_int_equal(stats.hooks, 0);
        assert_int_equal(stats.calls[SARDINE_HOOK_KEY] + stats.calls[SARDINE_HOOK_STORE], 0);
}

static void it_is_lua_5_4(void **state)
{
        (void)state;
        policy_set(&kit, "assert(_VERSION == 'Lua 5.4') assert(7 // 2 == 3 and math.type(3) == 'integer')\n"
                         "assert(utf8.char(228) == 'ä') local x <const> = 1\n"
                         "assert(1 << 62 == 0x4000000000000000)\n"
                         "return { key = function(q) return 't' .. (7 // 2) end }");
        fill_a(ASK("www.example", 1), 300);
        no_errors();
}

static void b24_a_tag_from_the_hook_keeps_tenants_apart(void **state)
{
        (void)state;
        const uint8_t kid[4] = {192, 0, 2, 7}, adult[4] = {198, 51, 100, 7};
        policy_set(&kit, "return { key = function(q)\n"
                         "  if q.client and q.client:within('192.0.2.0/24') then return 'kids' end\n"
                         "end }");
        fill_a(ASK("www.example", 1, .client = kid), 300);
        assert_int_equal(look(&kit, ASK("www.example", 1, .client = kid))->outcome, SARDINE_HIT);
        assert_int_equal(look(&kit, ASK("www.example", 1, .client = adult))->outcome, SARDINE_MISS);
        fill_a(ASK("www.example", 1, .client = adult), 300);
        /* What the host calls "kids" is somebody else's. */
        assert_int_equal(look(&kit, ASK("www.example", 1, .client = adult, .tag = "kids"))->outcome,
                         SARDINE_MISS);
        struct sardine_selector sel = {.sz = sizeof sel, .use_tag = 1, .tag = "kids", .tag_len = 4};
        assert_int_equal(sardine_expunge(kit.cache, &sel), 1);
        assert_int_equal(look(&kit, ASK("www.example", 1, .client = kid))->outcome, SARDINE_MISS);
        assert_int_equal(look(&kit, ASK("www.example", 1, .client = adult))->outcome, SARDINE_HIT);
        no_errors();
}

static const char *host_tag(void *ctx, const char *name)
{
        return strcmp(name, "tenant") == 0 ? ctx : NULL;
}

static void the_question_is_as_it_was_asked(void **state)
{
        (void)state;
        policy_set(
            &kit,
            "return { key = function(q)\n"
            "  assert(q.name == 'www.example.' and tostring(q.qname) == 'www.example.')\n"
            "  assert(q.qname:within('EXAMPLE') and q.qname:within('.') and not q.qname:within('xample'))\n"
            "  assert(q.qname:is('www.example.') and not q.qname:is('example.'))\n"
            "  assert(q.qname:label(1) == 'www' and q.qname:label(-1) == 'example' and #q.qname == 2)\n"
            "  assert(q.qname:label(3) == nil)\n"
            "  assert(q.qtype == types.AAAA and q.qtype == 28)\n"
            "  assert(q.rd == true and q.cd == false and q.dnssec_ok == true)\n"
            "  assert(tostring(q.client) == '2001:db8::1' and q.client:within('2001:db8::/32'))\n"
            "  assert(not q.client:within('192.0.2.0/24') and q.client.family == 6)\n"
            "  assert(q.ecs == nil and q.transport == 'doh' and q.pool == 'auth')\n"
            "  assert(tostring(q.listener) == '127.0.0.1' and q.listener_port == 5300)\n"
            "  assert(q:host_tag('tenant') == 'acme' and q:host_tag('other') == nil)\n"
            "  assert(q.tag == '')\n"
            "  return {skip = true}\n"
            "end }");
        uint8_t packet[1024], reply[1024];
        const uint8_t client[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}, local[4] = {127, 0, 0, 1};
        size_t len = ask_packet(&ASK("wWw.example", 28, .rd = true, .dnssec_ok = true), packet);
        struct sardine_query q = {
            .sz = sizeof q,
            .packet = packet,
            .len = len,
            .client = client,
            .client_len = 16,
            .transport = SARDINE_DOH,
            .local = local,
            .local_len = 4,
            .local_port = 5300,
            .pool = "auth",
            .host_tag = host_tag,
            .host_ctx = "acme",
        };
        struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = sizeof reply};
        int outcome = sardine_lookup(kit.cache, &q, &a);
        no_errors();
        assert_int_equal(outcome, SARDINE_BYPASS);
        assert_int_equal(a.reason, SARDINE_BYPASS_POLICY);
}

static void a_misspelled_field_is_an_error(void **state)
{
        (void)state;
        policy_set(&kit, "return {\n key = function(q)\n  return q.qnam\n end }");
        assert_int_equal(look(&kit, ASK("www.example", 1))->outcome, SARDINE_MISS);
        assert_int_equal(policy_stats(&kit).errors[SARDINE_HOOK_KEY], 1);
        assert_non_null(strstr(policy_line, ".lua:3: a view of a question has no field qnam"));
}

static void a_key_hook_may_skip_the_cache(void **state)
{
        (void)state;
        policy_set(&kit,
                   "return { key = function(q) return not q.qname:within('private.example') and nil end }");
        fill_a(ASK("www.example", 1), 300);
        assert_int_equal(look(&kit, ASK("www.example", 1))->outcome, SARDINE_HIT);
        assert_int_equal(look(&kit, ASK("x.private.example", 1))->outcome, SARDINE_BYPASS);
        no_errors();
}

/* B89: what is stored is one version; who asks decides what is shown of it. */
static void b89_ttl_cap_for_one_client(void **state)
{
        (void)state;
        const uint8_t capped[4] = {192, 0, 2, 7};
        policy_set(&kit, "return { key = function(q)\n"
                         "  if q.client and q.client:within('192.0.2.7') then return {max_ttl = 5} end\n"
                         "end }");
        fill_a(ASK("www.example", 1), 300);
        assert_int_equal(first_ttl(look(&kit, ASK("www.example", 1, .client = capped, .edns = true))), 5);
        assert_int_equal(
            count_type(look(&kit, ASK("www.example", 1, .client = capped, .edns = true)), DNS_OPT), 0);
        assert_int_equal(first_ttl(look(&kit, ASK("www.example", 1))), 300);
        no_errors();
}

static void b89_ttl_cap_by_the_host(void **state)
{
        (void)state;
        fill_a(ASK("www.example", 1), 300);
        uint8_t packet[1024], reply[1024];
        struct sardine_query q = {.sz = sizeof q, .packet = packet, .max_ttl = 5};
        q.len = ask_packet(&ASK("www.example", 1, .edns = true), packet);
        struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = sizeof reply};
        assert_int_equal(sardine_lookup(kit.cache, &q, &a), SARDINE_HIT);
        assert_int_equal(a.ttl, 300);
        size_t question = 12 + 13 + 4;
        assert_int_equal(get_be32(reply + question + 6), 5);
        /* The OPT's flags stand where a TTL would. */
        assert_int_equal(get_be16(reply + question + 16 + 1), DNS_OPT);
        assert_int_equal(get_be32(reply + question + 16 + 5), 0);
        assert_int_equal(first_ttl(look(&kit, ASK("www.example", 1))), 300);
}

static void the_answer_is_as_it_came(void **state)
{
        (void)state;
        policy_set(
            &kit,
            "return { store = function(q, r)\n"
            "  assert(q.name == 'www.example.' and q.client == nil and q.transport == nil)\n"
            "  assert(r.rcode == rcodes.NOERROR and r.ttl == 60 and not r.negative and r.count == 2)\n"
            "  assert(r.size > 50 and r.aa == false and r.ad == false and r.class == 0 and r.ecs == nil)\n"
            "  local seen = {}\n"
            "  for rr in r:records() do seen[#seen + 1] = rr.section .. ' ' .. rr.name .. ' ' .. rr.type\n"
            "    if rr.type == types.CNAME then assert(rr.target == 'b.example.' and rr.address == nil) end\n"
            "    if rr.type == types.A then\n"
            "       assert(tostring(rr.address) == '192.0.2.1' and rr.ttl == 60 and #rr.data == 4)\n"
            "    end\n"
            "  end\n"
            "  assert(table.concat(seen, ',') ==\n"
            "    'answer www.example. 5,answer b.example. 1,authority example. 2', table.concat(seen, ','))\n"
            "  return {ttl = 30, class = 3, group = 'cdn'}\n"
            "end }");
        fill(&kit, ASK("www.example", 1),
             REPLY("www.example", 1, .ra = true,
                   .records =
                       "www.example 300 IN CNAME b.example\nb.example 60 IN A 192.0.2.1\n-- authority\n"
                       "example 900 IN NS ns.example"));
        no_errors();
        struct got *got = look(&kit, ASK("www.example", 1));
        assert_int_equal(got->outcome, SARDINE_HIT);
        assert_int_equal(got->answer.ttl, 30);
        struct sardine_selector other = {.sz = sizeof other, .group = "cd", .group_len = 2};
        assert_int_equal(sardine_expunge(kit.cache, &other), 0);
        struct sardine_selector sel = {.sz = sizeof sel, .group = "cdn", .group_len = 3};
        assert_int_equal(sardine_expunge(kit.cache, &sel), 1);
}

static void a_longer_life_shows(void **state)
{
        (void)state;
        policy_set(&kit, "return { store = function(q, r) return 600 end }");
        fill_a(ASK("www.example", 1), 60);
        struct got *got = look(&kit, ASK("www.example", 1));
        assert_int_equal(got->answer.ttl, 600);
        assert_int_equal(first_ttl(got), 600);
}

static void a_store_hook_may_refuse(void **state)
{
        (void)state;
        unsigned reason;
        policy_set(&kit, "return { store = function(q, r)\n"
                         "  for rr in r:records() do\n"
                         "    if rr.address and rr.address:within('203.0.113.0/24') then return false end\n"
                         "  end\n"
                         "end }");
        look(&kit, ASK("bad.example", 1));
        assert_int_equal(
            put(&kit, REPLY("bad.example", 1, .records = "bad.example 300 IN A 203.0.113.9"), &reason),
            SARDINE_REFUSED);
        assert_int_equal(reason, SARDINE_REFUSED_POLICY);
        fill_a(ASK("good.example", 1), 300);
        no_errors();
}

static void b39_the_stale_hook_has_the_last_word(void **state)
{
        (void)state;
        policy_set(&kit, "return { stale = function(e, why)\n"
                         "  assert(e.ttl == 0 and e.expired == 100 and e.age >= 380 and e.size > 10)\n"
                         "  if e.negative then return false end\n"
                         "  if e.qname:within('short.example') then return 3 end\n"
                         "  return why == 'allowed'\n"
                         "end }");
        fill_a(ASK("www.example", 1), 300);
        fill_a(ASK("a.short.example", 1), 300);
        fill(&kit, ASK("no.example", 1),
             REPLY("no.example", 1, .rcode = 3,
                   .records = "-- authority\nexample 300 IN SOA ns.example host.example 1 2 3 4 300"));
        kit_wait(&kit, 400);
        assert_int_equal(look(&kit, ASK("www.example", 1, .flags = SARDINE_ALLOW_STALE))->outcome,
                         SARDINE_STALE);
        struct got *got = look(&kit, ASK("a.short.example", 1, .flags = SARDINE_ALLOW_STALE));
        assert_int_equal(got->outcome, SARDINE_STALE);
        assert_int_equal(first_ttl(got), 3);
        assert_int_equal(look(&kit, ASK("no.example", 1, .flags = SARDINE_ALLOW_STALE))->outcome,
                         SARDINE_MISS);
        no_errors();
}

/* After a failure, by the token: the key hook might see something else by now. */
static void failed_knows_its_question_by_the_token(void **state)
{
        (void)state;
        policy_set(
            &kit,
            "local n = 0 return { key = function(q) n = n + 1; return n <= 2 and 'first' or 'later' end,\n"
            "  stale = function(e, why) return why == 'servfail' and e.tag == 'first' end }");
        fill_a(ASK("www.example", 1), 300);
        kit_wait(&kit, 400);
        struct got *got = look(&kit, ASK("www.example", 1));
        assert_int_equal(got->outcome, SARDINE_MISS);
        struct sardine_token token = got->token;
        uint8_t packet[1024], reply[1024];
        struct sardine_query q = {.sz = sizeof q, .packet = packet, .failure = DNS_SERVFAIL};
        q.len = ask_packet(&ASK("www.example", 1), packet);
        struct sardine_answer a = {.sz = sizeof a, .buf = reply, .cap = sizeof reply, .token = &token};
        assert_int_equal(sardine_failed(kit.cache, &q, &a), SARDINE_STALE);
        /* A token of another question is none of this one's. */
        q.len = ask_packet(&ASK("wwx.example", 1), packet);
        assert_int_equal(sardine_failed(kit.cache, &q, &a), SARDINE_ERR_TOKEN);
        no_errors();
}

/* It takes the time of those who insert, and of nobody else: whatever a lookup finds in a full cache, or does
 * not find, it does not ask the hook. */
static void the_evict_hook_is_never_in_a_lookup(void **state)
{
        (void)state;
        enum { NAMES = 60000, STEP = 17, GROUP = 16 };
        kit_close(&kit);
        kit.options.max_entries = 0;
        kit.options.max_bytes = 2 << 20;
        kit.options.refresh_percent = 50;
        policy_open(&kit);
        policy_set(&kit, "return { evict = function(e) return e.hits end }");
        char name[64];
        for (unsigned i = 0; i < NAMES; i++) {
                snprintf(name, sizeof name, "n%u.example", i);
                fill_a(ASK(name, 1), 300 + i % 100);
        }
        uint64_t calls = policy_stats(&kit).calls[SARDINE_HOOK_EVICT];
        assert_true(calls > 0);
        unsigned seen[SARDINE_WAIT + 1] = {0};
        static const uint32_t flags[] = {0, SARDINE_PEEK, SARDINE_CACHE_ONLY, SARDINE_ALLOW_STALE, 0};
        for (unsigned pass = 0; pass < sizeof flags / sizeof flags[0]; pass++) {
                for (unsigned i = 0; i < NAMES + STEP; i += STEP) {
                        snprintf(name, sizeof name, "n%u.example", i);
                        seen[look(&kit, ASK(name, 1, .flags = flags[pass]))->outcome]++;
                }
                kit_wait(&kit, 120); /* to be refreshed, then stale */
        }
        assert_true(seen[SARDINE_HIT] > 0 && seen[SARDINE_MISS] > 0 && seen[SARDINE_STALE] > 0 &&
                    seen[SARDINE_REFRESH] > 0);
        static uint8_t packets[GROUP][1024], replies[GROUP][1024];
        struct sardine_query queries[GROUP];
        struct sardine_answer got[GROUP];
        int outcomes[GROUP];
        for (unsigned i = 0; i < GROUP; i++) {
                snprintf(name, sizeof name, "n%u.example", NAMES - i);
                queries[i] = (struct sardine_query){
                    .sz = sizeof queries[i], .packet = packets[i], .failure = DNS_SERVFAIL};
                queries[i].len = ask_packet(&ASK(name, 1), packets[i]);
                got[i] =
                    (struct sardine_answer){.sz = sizeof got[i], .buf = replies[i], .cap = sizeof replies[i]};
        }
        assert_int_equal(sardine_lookup_batch(kit.cache, GROUP, queries, got, outcomes), 0);
        for (unsigned i = 0; i < GROUP; i++)
                assert_true(sardine_failed(kit.cache, &queries[i], &got[i]) >= 0);
        assert_int_equal(policy_stats(&kit).calls[SARDINE_HOOK_EVICT], calls);
        no_errors();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(without_hooks_none_is_called, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(it_is_lua_5_4, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(b24_a_tag_from_the_hook_keeps_tenants_apart, policy_setup,
                                            policy_teardown),
            cmocka_unit_test_setup_teardown(the_question_is_as_it_was_asked, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(a_misspelled_field_is_an_error, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(a_key_hook_may_skip_the_cache, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(b89_ttl_cap_for_one_client, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(b89_ttl_cap_by_the_host, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(the_answer_is_as_it_came, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(a_longer_life_shows, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(a_store_hook_may_refuse, policy_setup, policy_teardown),
            cmocka_unit_test_setup_teardown(b39_the_stale_hook_has_the_last_word, policy_setup,
                                            policy_teardown),
            cmocka_unit_test_setup_teardown(failed_knows_its_question_by_the_token, policy_setup,
                                            policy_teardown),
            cmocka_unit_test_setup_teardown(the_evict_hook_is_never_in_a_lookup, policy_setup,
                                            policy_teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
