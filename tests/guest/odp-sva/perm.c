/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What must be refused, and how each end hears of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sva.h"

enum { LEN = 256 };

struct perm {
    struct sva_portal p;
    struct vdev v;
    struct link l;
    uint32_t key;
    size_t page;
    uint8_t *good, *read_only, *read_only_absent, *none, *unmapped, *beyond;
    unsigned checks;
    bool bad;
};

static const enum ibv_wr_opcode opcodes[] = {
    IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
    IBV_WR_ATOMIC_FETCH_AND_ADD,
};
static const char *const names[] = { "WRITE", "READ", "SEND", "FETCH_ADD" };

static void verdict(struct perm *t, const char *what, const char *op,
                    const char *end, enum ibv_wc_status got,
                    enum ibv_wc_status want)
{
    t->checks++;
    if (got != want) {
        printf("FAIL: %s, %s, %s: %s, not %s\n", what, op, end,
               ibv_wc_status_str(got), ibv_wc_status_str(want));
        t->bad = true;
    }
}

/* All requests with `mem` at either end. readable: it may be read. */
static void memory(struct perm *t, const char *what, void *mem, bool readable)
{
    for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
        uint32_t len = i == 3 ? 8 : LEN;
        struct request r = { opcodes[i], t->good, t->key, mem, t->key, len,
                             0, 0 };
        enum ibv_wc_status recv, got = link_do(&t->l, &r, &recv);
        bool fine = i == 1 && readable;

        if (i == 2) {
            verdict(t, what, names[i], "peer", got, IBV_WC_REM_OP_ERR);
            verdict(t, what, names[i], "receiver", recv, IBV_WC_LOC_PROT_ERR);
        } else {
            verdict(t, what, names[i], "peer", got,
                    fine ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
        }
        if (i == 2) {
            continue;
        }
        /* As our own memory: written by READ and atomics. */
        fine = i == 0 && readable;
        r.local = mem;
        r.remote = t->good + t->page;
        got = link_do(&t->l, &r, NULL);
        verdict(t, what, names[i], "own memory", got,
                fine ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
    }
}

static uint8_t *mapped(size_t pages, int prot)
{
    uint8_t *mem = mmap(NULL, pages * page_size(), prot,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mem == MAP_FAILED) {
        die_errno("mmap");
    }
    return mem;
}

static void prepare(struct perm *t)
{
    int fd;

    t->good = mapped(8, PROT_READ | PROT_WRITE);
    pattern_fill(t->good, 3, 0, 8 * t->page);
    t->read_only = mapped(1, PROT_READ | PROT_WRITE);
    pattern_fill(t->read_only, 4, 0, t->page);
    if (mprotect(t->read_only, t->page, PROT_READ)) {
        die_errno("mprotect");
    }
    t->read_only_absent = mapped(1, PROT_READ);
    t->none = mapped(1, PROT_NONE);
    t->unmapped = mapped(3, PROT_READ | PROT_WRITE);
    memset(t->unmapped, 1, 3 * t->page);
    munmap(t->unmapped, 3 * t->page);
    fd = memfd_create("short", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, t->page)) {
        die_errno("memfd");
    }
    t->beyond = mmap(NULL, 2 * t->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                     0);
    if (t->beyond == MAP_FAILED) {
        die_errno("mmap");
    }
    t->beyond += t->page;
}

static void keys(struct perm *t)
{
    struct request r = { IBV_WR_RDMA_WRITE, t->good, t->key, t->good + t->page,
                         t->key, LEN, 0, 0 };
    struct sva_portal *p = &t->p;
    enum ibv_wc_status recv;
    uint32_t key;

    /* Rights. */
    key = key_or_die(p, t->v.pd, IBV_ACCESS_REMOTE_READ);
    r.rkey = key;
    verdict(t, "key without remote write", "WRITE", "peer",
            link_do(&t->l, &r, NULL), IBV_WC_REM_ACCESS_ERR);
    r.opcode = IBV_WR_RDMA_READ;
    verdict(t, "key with remote read", "READ", "peer",
            link_do(&t->l, &r, NULL), IBV_WC_SUCCESS);
    r.rkey = t->key;
    r.lkey = key;
    verdict(t, "key without local write", "READ", "own memory",
            link_do(&t->l, &r, NULL), IBV_WC_LOC_PROT_ERR);
    r.opcode = IBV_WR_SEND;
    r.lkey = t->key;
    r.rkey = key;
    verdict(t, "key without local write", "SEND", "peer",
            link_do(&t->l, &r, &recv), IBV_WC_REM_OP_ERR);
    verdict(t, "key without local write", "SEND", "receiver", recv,
            IBV_WC_LOC_PROT_ERR);
    t->bad |= sva_key_destroy(p, key);
    r.opcode = IBV_WR_RDMA_READ;
    verdict(t, "destroyed key", "READ", "peer", link_do(&t->l, &r, NULL),
            IBV_WC_REM_ACCESS_ERR);
    t->bad |= !sva_key_destroy(p, key) || p->result != SVA_BAD_KEY;

    /* Bounds. */
    if (sva_key_make(p, t->v.pd, SVA_ALL, t->good + t->page, LEN, &key)) {
        die("%s", p->error);
    }
    r.rkey = key;
    verdict(t, "inside a key", "READ", "peer", link_do(&t->l, &r, NULL),
            IBV_WC_SUCCESS);
    r.remote = t->good + t->page + 1;
    verdict(t, "over a key's end", "READ", "peer", link_do(&t->l, &r, NULL),
            IBV_WC_REM_ACCESS_ERR);
    r.remote = t->good + t->page - 1;
    verdict(t, "before a key's start", "READ", "peer",
            link_do(&t->l, &r, NULL), IBV_WC_REM_ACCESS_ERR);
    t->bad |= sva_key_destroy(p, key);

    t->bad |= !sva_key_make(p, t->v.pd, IBV_ACCESS_REMOTE_WRITE, NULL, 0,
                            &key) || p->result != SVA_BAD_ACCESS;
    t->bad |= !sva_key_make(p, t->v.pd, SVA_ALL, t->good, SIZE_MAX, &key) ||
              p->result != SVA_BAD_RANGE;
    t->checks += 4;
}

/* Memory that goes away while a request uses it. */
static void yank(struct perm *t, struct rng *rng, unsigned times)
{
    size_t len = 1 << 20;
    uint8_t *to = fresh(len), *from;
    unsigned fine = 0, refused = 0;

    for (unsigned i = 0; i < times; i++) {
        struct request r = { IBV_WR_RDMA_READ, to, t->key, NULL, t->key, len,
                             0, 0 };
        enum ibv_wc_status got;

        from = fresh(len);
        pattern_fill(from, i, 0, len);
        r.remote = from;
        link_post(&t->l, &r);
        if (!rng_one_in(rng, 4)) {
            usleep(rng_below(rng, 3000));
        }
        munmap(from, len);
        got = link_wait(&t->l);
        if (got == IBV_WC_SUCCESS) {
            fine++;
            t->bad |= pattern_check(to, i, 0, len) >= 0;
        } else {
            refused++;
            verdict(t, "munmap in mid-read", "READ", "peer", got,
                    IBV_WC_REM_ACCESS_ERR);
            link_again(&t->l);
        }
    }
    printf("munmap in mid-read: %u were through, %u refused\n", fine, refused);
    munmap(to, len);
}

int mode_perm(const struct options *opt)
{
    struct perm t = { .page = page_size() };
    struct rng rng = { opt->seed };
    struct sva_counters c;

    portal_or_die(&t.p, opt->portal[0]);
    vdev_open(&t.v, opt->device, -1);
    link_open(&t.l, &t.v, &t.v);
    t.key = key_or_die(&t.p, t.v.pd, SVA_ALL);
    prepare(&t);
    memory(&t, "read-only", t.read_only, true);
    memory(&t, "read-only, absent", t.read_only_absent, true);
    memory(&t, "program text", (void *)((uintptr_t)mode_perm & -64ul), true);
    memory(&t, "PROT_NONE", t.none, false);
    memory(&t, "unmapped", t.unmapped, false);
    memory(&t, "NULL", NULL, false);
    memory(&t, "kernel", (void *)0xffff800000000000, false);
    memory(&t, "not an address", (void *)0x00f0000000000000, false);
    memory(&t, "beyond a file's end", t.beyond, false);
    if (pattern_check(t.read_only, 4, 0, t.page) >= 0) {
        printf("FAIL: read-only memory changed\n");
        t.bad = true;
    }
    keys(&t);
    yank(&t, &rng, opt->iters / 10 + 1);
    sva_counters(&t.p, &c);
    printf("%u checks, stalls %llu, page requests %llu, denied %llu, pending "
           "%llu\n", t.checks, (unsigned long long)c.stalls,
           (unsigned long long)c.page_requests, (unsigned long long)c.denied,
           (unsigned long long)c.pending);
    t.bad |= c.pending || !c.denied;
    link_close(&t.l);
    sva_portal_close(&t.p);
    return t.bad;
}
