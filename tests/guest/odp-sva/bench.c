/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a fault costs, and what a portal's key costs once all is present,
 * beside pinned memory and on-demand paging in the same run. One line a
 * number: NAME VALUE, microseconds for a request or a touch; of several rounds
 * the best, since what else the host does only ever adds.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "sva.h"

enum { PAGE = 4096, LARGE = 2 << 20, LINKS = 8, TOUCHES = 64, ROUNDS = 40,
       TOUCH_ROUNDS = 200, AGAIN = 8 };

enum how { PINNED, SVA, ODP, HOWS };
static const char *const how_name[HOWS] = { "pinned", "sva", "odp" };

enum order { SEQUENTIAL, RANDOM, MIXED, ORDERS };
static const char *const order_name[ORDERS] = { "sequential", "random",
                                                "mixed" };

static double best(double a, double b)
{
    return a && a < b ? a : b;
}

struct bench {
    struct vdev v;
    struct sva_portal p;
    struct link l[LINKS];
    uint32_t key;
    uint8_t *src;
    struct ibv_mr *mr;
    struct rng rng;
};

/* Memory that the device writes to. */
struct target {
    uint8_t *mem;
    size_t len;
    uint32_t rkey;
    struct ibv_mr *mr;
};

static struct target target_new(struct bench *b, enum how how, size_t len,
                                bool huge)
{
    struct target t = { .len = len };
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                 IBV_ACCESS_REMOTE_READ;

    t.mem = fresh_aligned(len, LARGE);
    if (madvise(t.mem, len, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE)) {
        die_errno("madvise");
    }
    if (how == SVA) {
        t.rkey = b->key;
        return t;
    }
    t.mr = mr_reg(&b->v, t.mem, len,
                  access | (how == ODP ? IBV_ACCESS_ON_DEMAND : 0));
    t.rkey = t.mr->rkey;
    return t;
}

static void target_free(struct target *t)
{
    if (t->mr) {
        ibv_dereg_mr(t->mr);
    }
    munmap(t->mem, t->len);
}

static void post(struct bench *b, struct link *l, struct target *t, size_t off,
                 size_t len, bool read)
{
    struct request r = { read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, b->src,
                         b->mr->lkey, t->mem + off, t->rkey, len, 0, 0 };

    link_post(l, &r);
}

/* Polls without the naps that cq_wait() takes after a while. */
static void wait_for(struct link *l)
{
    struct ibv_wc wc;
    int n;

    while (!(n = ibv_poll_cq(l->cq[0], 1, &wc))) {
        sched_yield();
    }
    if (n < 0 || wc.status != IBV_WC_SUCCESS) {
        die("a request failed");
    }
}

/* Every step'th byte once, with n requests out; us each. */
static double touch(struct bench *b, struct target *t, size_t step,
                    unsigned n)
{
    size_t count = t->len / step, posted = 0, done = 0;
    double start = now();

    while (done < count) {
        while (posted < count && posted - done < n) {
            post(b, &b->l[posted % n], t, posted * step, 64, false);
            posted++;
        }
        wait_for(&b->l[done % n]);
        done++;
    }
    return (now() - start) * 1e6 / count;
}

static void first_touch(struct bench *b, enum how how, size_t step, unsigned n)
{
    bool huge = step == LARGE;
    size_t len = huge ? 16 * (size_t)LARGE : TOUCHES * PAGE;
    double first = 0, after = 0;

    for (unsigned i = 0; i < (huge ? ROUNDS : TOUCH_ROUNDS); i++) {
        struct target t = target_new(b, how, len, huge);

        first = best(first, touch(b, &t, step, n));
        /* Bringing large pages has emptied the host's caches. */
        touch(b, &t, step, n);
        /* Large pages are few: more rounds, or noise is all there is. */
        for (unsigned again = 0; again < AGAIN; again++) {
            after = best(after, touch(b, &t, step, n));
        }
        target_free(&t);
    }
    printf("first-%s-%s-%u %.2f\n", huge ? "2M" : "4K", how_name[how], n,
           first);
    printf("after-%s-%s-%u %.2f\n", huge ? "2M" : "4K", how_name[how], n,
           after);
}

/* Asks for the pages first: by ibv_advise_mr, or, unregistered, by madvise. */
static void prefetch(struct bench *b, enum how how)
{
    size_t len = TOUCHES * PAGE;
    double ask = 0, then = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct target t = target_new(b, how, len, false);
        double start = now();

        if (how == SVA) {
            if (madvise(t.mem, len, MADV_POPULATE_WRITE)) {
                die_errno("madvise");
            }
        } else if (how == ODP) {
            struct ibv_sge sge = { (uintptr_t)t.mem, len, t.mr->lkey };

            errno = ibv_advise_mr(b->v.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                                  IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
            if (errno) {
                die_errno("ibv_advise_mr");
            }
        }
        ask = best(ask, (now() - start) * 1e6 / TOUCHES);
        then = best(then, touch(b, &t, PAGE, 1));
        target_free(&t);
    }
    printf("prefetch-4K-%s-1 %.2f\n", how_name[how], ask);
    printf("prefetched-4K-%s-1 %.2f\n", how_name[how], then);
}

static void cpu_touch(void)
{
    double us = 0;

    for (unsigned i = 0; i < TOUCH_ROUNDS; i++) {
        volatile uint8_t *mem = fresh(TOUCHES * PAGE);
        double start;

        madvise((void *)mem, TOUCHES * PAGE, MADV_NOHUGEPAGE);
        start = now();
        for (size_t off = 0; off < TOUCHES * PAGE; off += PAGE) {
            mem[off] = 1;
        }
        us = best(us, (now() - start) * 1e6 / TOUCHES);
        munmap((void *)mem, TOUCHES * PAGE);
    }
    printf("cpu-touch %.2f\n", us);
}

static double accesses(struct bench *b, struct target *t, enum order order)
{
    unsigned n = 200;
    double start = now();

    for (unsigned i = 0; i < n; i++) {
        size_t pages = t->len / PAGE;
        size_t page = order == SEQUENTIAL ? i % pages :
                      rng_below(&b->rng, pages);

        post(b, &b->l[0], t, page * PAGE, PAGE,
             order == MIXED && rng_one_in(&b->rng, 2));
        wait_for(&b->l[0]);
    }
    return (now() - start) * 1e6 / n;
}

/* All present; the kinds take turns, so that drifts hit them alike. */
static void working_set(struct bench *b, unsigned kib, enum order order)
{
    struct target t[HOWS];
    double us[HOWS] = { 0 };

    for (int how = 0; how < HOWS; how++) {
        t[how] = target_new(b, how, (size_t)kib << 10, false);
        memset(t[how].mem, 1, t[how].len);
        touch(b, &t[how], PAGE, 1);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (int how = 0; how < HOWS; how++) {
            us[how] = best(us[how], accesses(b, &t[how], order));
        }
    }
    for (int how = 0; how < HOWS; how++) {
        printf("set-%uK-%s-%s %.2f\n", kib, order_name[order], how_name[how],
               us[how]);
        target_free(&t[how]);
    }
}

int mode_bench(const struct options *opt)
{
    static const unsigned set[] = { 256, 1024, 4096 };
    struct bench b = { .rng = { opt->seed } };
    struct sva_counters c;

    portal_or_die(&b.p, opt->portal[0]);
    vdev_open(&b.v, opt->device, -1);
    for (unsigned i = 0; i < LINKS; i++) {
        link_open(&b.l[i], &b.v, &b.v);
    }
    b.key = key_or_die(&b.p, b.v.pd, SVA_ALL);
    b.src = fresh(LARGE);
    b.mr = mr_reg(&b.v, b.src, LARGE, IBV_ACCESS_LOCAL_WRITE);

    cpu_touch();
    for (int how = 0; how < HOWS; how++) {
        first_touch(&b, how, PAGE, 1);
        first_touch(&b, how, PAGE, LINKS);
        first_touch(&b, how, LARGE, 1);
        prefetch(&b, how);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(set); i++) {
        for (int order = 0; order < ORDERS; order++) {
            working_set(&b, set[i], order);
        }
    }
    sva_counters(&b.p, &c);
    printf("faults %llu\n", (unsigned long long)(c.stalls + c.page_requests));
    printf("atc-hits %llu\n", (unsigned long long)c.atc_hits);
    for (unsigned i = 0; i < LINKS; i++) {
        link_close(&b.l[i]);
    }
    sva_portal_close(&b.p);
    return 0;
}
