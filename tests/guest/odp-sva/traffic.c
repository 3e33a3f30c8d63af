/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random requests between random places of memory of all kinds, which comes
 * and goes under the traffic.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sva.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { SLOTS = 6, GUARD = 32, LARGEST = 32 << 20, MAX_THREADS = 8 };

/* HUGE: a small part of what the kernel can make a huge page of. */
enum kind { PRIVATE, SHARED, FILE_SHARED, FILE_PRIVATE, HEAP, HUGE, KINDS };

struct slot {
    uint8_t *mem;
    uint8_t *part;              /* of the shared huge page, its own */
    enum kind kind;
};

struct worker {
    struct traffic *t;
    struct link l;
    struct rng rng;
    struct slot slot[SLOTS];
    uint8_t *plain[2];          /* registered, for a peer without a portal */
    struct ibv_mr *mr[2];
    pthread_t thread;
    unsigned long ops[6], remaps;
    uint64_t bytes;
};

struct traffic {
    const struct options *opt;
    struct sva_portal p;
    struct vdev v, peer;
    uint32_t key;
    size_t size;                /* of a slot */
    size_t huge;                /* of a huge page; 0: do without */
    uint8_t *shared;            /* one for all slots, or NULL */
    struct worker worker[MAX_THREADS];
    atomic_bool stop, bad;
    unsigned long forks, pageouts, collapses;
};

static uint8_t *huge_page(struct traffic *t, uint8_t *mem)
{
    return (uint8_t *)((uintptr_t)mem & -(uintptr_t)t->huge);
}

static void slot_drop(struct traffic *t, struct slot *s)
{
    if (!s->mem) {
        return;
    }
    if (s->kind == HEAP) {
        free(s->mem);
    } else if (s->kind == HUGE && t->shared) {
        if (madvise(s->mem, t->size, MADV_DONTNEED)) {
            die_errno("MADV_DONTNEED");
        }
    } else if (s->kind == HUGE) {
        if (munmap(huge_page(t, s->mem), t->huge)) {
            die_errno("munmap");
        }
    } else if (munmap(s->mem, t->size)) {
        die_errno("munmap");
    }
    s->mem = NULL;
}

/*
 * A range is collapsed only where one mapping has all of it, which other slots
 * are too small for.
 */
static uint8_t *huge_new(struct traffic *t, struct slot *s, struct rng *rng)
{
    size_t page = page_size();

    if (t->shared) {
        return s->part;
    }
    return (uint8_t *)fresh_aligned(t->huge, t->huge) +
           rng_below(rng, (t->huge - t->size) / page + 1) * page;
}

/* New memory of some kind; it reads as zeroes. */
static void slot_new(struct traffic *t, struct slot *s, struct rng *rng)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;

    s->kind = rng_below(rng, t->huge ? KINDS : HUGE);
    if (s->kind == HUGE) {
        s->mem = huge_new(t, s, rng);
        return;
    }
    if (s->kind == HEAP) {
        s->mem = calloc(1, t->size);
        if (!s->mem) {
            die("out of memory");
        }
        return;
    }
    if (s->kind == SHARED) {
        flags = MAP_SHARED | MAP_ANONYMOUS;
    } else if (s->kind != PRIVATE) {
        flags = s->kind == FILE_SHARED ? MAP_SHARED : MAP_PRIVATE;
        fd = memfd_create("slot", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, t->size)) {
            die_errno("memfd");
        }
    }
    s->mem = mmap(NULL, t->size, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (s->mem == MAP_FAILED) {
        die_errno("mmap");
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void wrong(struct traffic *t, const char *what, long at)
{
    printf("FAIL: %s, byte %ld\n", what, at);
    atomic_store(&t->bad, true);
}

/* What surrounds the target is still as it was. */
static void check_guard(struct traffic *t, const uint8_t *g, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (g[i]) {
            wrong(t, "bytes beside the target changed", i);
            return;
        }
    }
}

static void one_atomic(struct worker *w, struct slot *a, struct slot *b)
{
    struct traffic *t = w->t;
    size_t off = rng_below(&w->rng, t->size / 8 - 1) * 8;
    uint64_t old = rng_next(&w->rng), arg = rng_next(&w->rng), want;
    uint64_t *result = (uint64_t *)(a->mem + rng_below(&w->rng,
                                                       t->size / 8) * 8);
    uint64_t *word = (uint64_t *)(b->mem + off);
    bool add = rng_one_in(&w->rng, 2);
    struct request r = {
        add ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP,
        result, t->key, word, t->key, 8, add ? arg : old, arg,
    };
    bool present = rng_one_in(&w->rng, 2);

    if (present) {
        *word = old;
    } else {
        slot_drop(t, b);
        slot_new(t, b, &w->rng);
        word = (uint64_t *)(b->mem + off);
        r.remote = word;
        old = 0;
        if (!add) {
            r.compare_add = 0;
        }
    }
    if (a == b) {
        result = (uint64_t *)(b->mem + (off + 64) % t->size / 8 * 8);
        r.local = result;
    }
    want = add ? old + arg : arg;
    if (link_do(&w->l, &r, NULL) != IBV_WC_SUCCESS) {
        wrong(t, "an atomic failed", 0);
    } else if (*result != old || *word != want) {
        wrong(t, "an atomic's result", off);
    }
    w->ops[add ? 3 : 4]++;
}

static void one_transfer(struct worker *w, struct slot *a, struct slot *b)
{
    static const enum ibv_wr_opcode opcode[] = {
        IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
    };
    struct traffic *t = w->t;
    unsigned what = rng_below(&w->rng, 3);
    size_t len = 1 + rng_below(&w->rng, rng_one_in(&w->rng, 3) ?
                               t->size - 2 * GUARD : 5000);
    size_t from = rng_below(&w->rng, t->size - len + 1);
    size_t to = GUARD + rng_below(&w->rng, t->size - len - 2 * GUARD + 1);
    uint64_t seed = rng_next(&w->rng);
    enum ibv_wc_status recv, status;
    struct request r = { opcode[what], .len = len };
    uint8_t *src, *dst;
    long at;

    /* The target is new each time: absent pages, zeroes around. */
    slot_drop(t, b);
    slot_new(t, b, &w->rng);
    dst = b->mem + to;
    src = a->mem + from;
    if (!w->mr[0]) {
        r.local = what == 1 ? dst : src;
        r.remote = what == 1 ? src : dst;
        r.lkey = r.rkey = t->key;
    } else {
        /* The end with the portal is the responder. */
        r.local = w->plain[0];
        r.lkey = w->mr[0]->lkey;
        r.rkey = t->key;
        if (what == 1) {
            r.remote = src;
            dst = w->plain[0];
        } else {
            src = w->plain[0];
            r.remote = dst;
        }
    }
    pattern_fill(src, seed, 0, len);
    status = link_do(&w->l, &r, &recv);
    if (status != IBV_WC_SUCCESS || recv != IBV_WC_SUCCESS) {
        printf("%s\n", ibv_wc_status_str(status));
        wrong(t, "a request failed", what);
        return;
    }
    at = pattern_check(dst, seed, 0, len);
    if (at >= 0) {
        printf("request %u, length %zu, kind %u\n", what, len, b->kind);
        wrong(t, "wrong data", at);
    }
    if (dst != w->plain[0]) {
        check_guard(t, dst - GUARD, GUARD);
        check_guard(t, dst + len, GUARD);
    }
    w->ops[what]++;
    w->bytes += len;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct traffic *t = w->t;

    for (unsigned i = 0; i < t->opt->iters && !atomic_load(&t->bad); i++) {
        unsigned a = rng_below(&w->rng, SLOTS);
        unsigned b = (a + 1 + rng_below(&w->rng, SLOTS - 1)) % SLOTS;

        if (rng_one_in(&w->rng, 3)) {
            slot_drop(t, &w->slot[a]);
            slot_new(t, &w->slot[a], &w->rng);
            w->remaps++;
        }
        if (!w->mr[0] && rng_one_in(&w->rng, 4)) {
            one_atomic(w, &w->slot[a], &w->slot[b]);
        } else {
            one_transfer(w, &w->slot[a], &w->slot[b]);
        }
    }
    return NULL;
}

/* Somebody's part of a huge page, or NULL. */
static uint8_t *find_huge(struct traffic *t, struct rng *rng)
{
    unsigned n = t->opt->threads * SLOTS, first = rng_below(rng, n);

    for (unsigned i = 0; i < n; i++) {
        unsigned at = (first + i) % n;
        /* Its owner changes it meanwhile. */
        struct slot volatile *s = &t->worker[at / SLOTS].slot[at % SLOTS];

        if (s->kind == HUGE) {
            return s->mem;
        }
    }
    return NULL;
}

/* Takes pages away from anybody, and puts others in their place. */
static void *disturb(void *arg)
{
    struct traffic *t = arg;
    struct rng rng = { t->opt->seed + 1000 };
    size_t page = page_size();

    while (!atomic_load(&t->stop)) {
        struct worker *w = &t->worker[rng_below(&rng, t->opt->threads)];
        /* It may be gone, or be another: the calls then fail, or do not. */
        uint8_t *mem = *(uint8_t *volatile *)&w->slot[
            rng_below(&rng, SLOTS)].mem;
        size_t skip = -(uintptr_t)mem & (page - 1);
        pid_t pid;

        switch (rng_below(&rng, 4)) {
        case 0:
            pid = fork();
            if (pid < 0) {
                die_errno("fork");
            }
            if (!pid) {
                usleep(rng_below(&rng, 20000));
                _exit(0);
            }
            usleep(rng_below(&rng, 10000));
            waitpid(pid, NULL, 0);
            t->forks++;
            break;
        case 1:
            mem = find_huge(t, &rng);
            if (mem) {
                t->collapses += !madvise(huge_page(t, mem), t->huge,
                                         MADV_COLLAPSE);
            }
            break;
        default:
            if (mem) {
                t->pageouts += !madvise(mem + skip, t->size - page,
                                        MADV_PAGEOUT);
            }
        }
        usleep(1000);
    }
    return NULL;
}

static void worker_start(struct traffic *t, unsigned i)
{
    struct worker *w = &t->worker[i];

    w->t = t;
    w->rng.state = t->opt->seed + i;
    if (t->opt->peer) {
        link_open(&w->l, &t->peer, &t->v);
        w->plain[0] = fresh(t->size);
        w->mr[0] = mr_reg(&t->peer, w->plain[0], t->size,
                          IBV_ACCESS_LOCAL_WRITE);
    } else {
        link_open(&w->l, &t->v, &t->v);
    }
    for (unsigned s = 0; s < SLOTS; s++) {
        w->slot[s].part = t->shared + (i * SLOTS + s) * t->size;
        slot_new(t, &w->slot[s], &w->rng);
    }
}

/* Where one is too much to be spent freely, all slots share it. */
static void huge_open(struct traffic *t)
{
    t->huge = huge_page_size();
    if (t->huge < t->size) {
        t->huge = 0;
    } else if (t->huge > LARGEST) {
        if (t->opt->threads * SLOTS * t->size > t->huge) {
            die("all of it does not fit into a huge page");
        }
        t->shared = fresh_aligned(t->huge, t->huge);
    }
}

int mode_traffic(const struct options *opt)
{
    static struct traffic t;
    struct sva_counters c;
    pthread_t disturber;
    unsigned long ops[6] = { 0 }, remaps = 0;
    uint64_t bytes = 0;
    double start;

    t.opt = opt;
    t.size = (size_t)opt->kib << 10;
    if (opt->threads < 1 || opt->threads > MAX_THREADS ||
        t.size < 4 * page_size() || t.size % page_size()) {
        die("from 1 to %d threads, whole pages, 4 at least", MAX_THREADS);
    }
    huge_open(&t);
    portal_or_die(&t.p, opt->portal[0]);
    vdev_open(&t.v, opt->device, -1);
    if (opt->peer) {
        vdev_open(&t.peer, opt->peer, -1);
    }
    t.key = key_or_die(&t.p, t.v.pd, SVA_ALL);
    for (unsigned i = 0; i < opt->threads; i++) {
        worker_start(&t, i);
    }
    start = now();
    for (unsigned i = 0; i < opt->threads; i++) {
        if (pthread_create(&t.worker[i].thread, NULL, work, &t.worker[i])) {
            die("pthread_create failed");
        }
    }
    if (opt->disturb && pthread_create(&disturber, NULL, disturb, &t)) {
        die("pthread_create failed");
    }
    for (unsigned i = 0; i < opt->threads; i++) {
        struct worker *w = &t.worker[i];

        pthread_join(w->thread, NULL);
        for (unsigned k = 0; k < ARRAY_SIZE(ops); k++) {
            ops[k] += w->ops[k];
        }
        bytes += w->bytes;
        remaps += w->remaps;
    }
    atomic_store(&t.stop, true);
    if (opt->disturb) {
        pthread_join(disturber, NULL);
    }
    sva_counters(&t.p, &c);
    printf("PASID %u: %lu writes, %lu reads, %lu sends, %lu adds, %lu swaps, "
           "%llu bytes, %.1f s\n", t.p.pasid, ops[0], ops[1], ops[2], ops[3],
           ops[4], (unsigned long long)bytes, now() - start);
    printf("mappings replaced %lu, forks %lu, page-outs %lu, collapses %lu\n",
           remaps + ops[0] + ops[1] + ops[2], t.forks, t.pageouts,
           t.collapses);
    printf("stalls %llu, page requests %llu, resolved %llu, denied %llu, ATC "
           "hits %llu, misses %llu, invalidations %llu\n",
           (unsigned long long)c.stalls, (unsigned long long)c.page_requests,
           (unsigned long long)c.resolved, (unsigned long long)c.denied,
           (unsigned long long)c.atc_hits, (unsigned long long)c.atc_misses,
           (unsigned long long)c.atc_invalidations);
    if (c.pending || c.denied || !(c.stalls + c.page_requests)) {
        printf("FAIL: pending %llu, denied %llu\n",
               (unsigned long long)c.pending, (unsigned long long)c.denied);
        t.bad = true;
    }
    for (unsigned i = 0; i < opt->threads; i++) {
        link_close(&t.worker[i].l);
    }
    sva_portal_close(&t.p);
    return atomic_load(&t.bad);
}
