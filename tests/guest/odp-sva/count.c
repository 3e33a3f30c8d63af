/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every fault is for a page that was absent, and every absent page faults
 * once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sva.h"

struct count {
    struct sva_portal p;
    struct vdev v;
    struct link l;
    uint32_t key;
    uint8_t *src;
    size_t len, page;           /* page: what one fault brings */
    unsigned stalls;            /* that one fault causes */
    bool huge;
    bool bad;
};

static uint64_t faults(const struct sva_counters *c)
{
    return c->stalls + c->page_requests;
}

static void expect(struct count *t, const char *what, uint64_t want,
                   const struct sva_counters *before)
{
    struct sva_counters now;
    uint64_t got, fixed;

    sva_counters(&t->p, &now);
    got = faults(&now) - faults(before);
    fixed = now.resolved - before->resolved;
    printf("%-34s %5" PRIu64 " faults (%" PRIu64 " stalls, %" PRIu64 " page "
           "requests), %" PRIu64 " resolved, %" PRIu64 " pages absent%s\n",
           what, got, now.stalls - before->stalls,
           now.page_requests - before->page_requests, fixed, want,
           got == want * t->stalls && fixed == want ? "" : "  WRONG");
    t->bad |= got != want * t->stalls || fixed != want ||
              now.denied != before->denied || now.pending;
}

static void *target(struct count *t, bool shared)
{
    uint8_t *mem;
    int fd;

    if (shared) {
        fd = memfd_create("target", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, t->len)) {
            die_errno("memfd");
        }
        mem = mmap(NULL, t->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (mem == MAP_FAILED) {
            die_errno("mmap");
        }
        return mem;
    }
    mem = fresh_aligned(t->len, t->page);
    if (t->huge && madvise(mem, t->len, MADV_HUGEPAGE)) {
        die_errno("MADV_HUGEPAGE");
    }
    return mem;
}

static void request(struct count *t, enum ibv_wr_opcode opcode, uint8_t *dst,
                    size_t off, size_t len)
{
    struct request r = { opcode, t->src + off, t->key, dst + off, t->key,
                         len, 0, 0 };

    if (link_do(&t->l, &r, NULL) != IBV_WC_SUCCESS) {
        printf("a request failed\n");
        t->bad = true;
    }
}

static void check(struct count *t, const uint8_t *mem, uint64_t seed)
{
    long at = pattern_check(mem, seed, 0, t->len);

    if (at >= 0) {
        printf("wrong byte at %ld\n", at);
        t->bad = true;
    }
}

/* All of it in requests of `len`; then once more, when all is present. */
static void sweep(struct count *t, const char *what, bool shared, size_t len)
{
    struct sva_counters before;
    uint8_t *dst = target(t, shared);
    char text[64];

    sva_counters(&t->p, &before);
    for (size_t off = 0; off < t->len; off += len) {
        request(t, IBV_WR_RDMA_WRITE, dst, off, len);
    }
    expect(t, what, t->len / t->page, &before);
    check(t, dst, 7);
    sva_counters(&t->p, &before);
    for (size_t off = 0; off < t->len; off += len) {
        request(t, IBV_WR_RDMA_WRITE, dst, off, len);
    }
    snprintf(text, sizeof(text), "%s, again", what);
    expect(t, text, 0, &before);

    /* Every other page only. */
    if (madvise(dst, t->len, shared ? MADV_REMOVE : MADV_DONTNEED)) {
        die_errno("madvise");
    }
    sva_counters(&t->p, &before);
    for (size_t off = 0; off < t->len; off += 2 * t->page) {
        request(t, IBV_WR_RDMA_WRITE, dst, off, 64);
    }
    snprintf(text, sizeof(text), "%s, dropped, every other", what);
    expect(t, text, (t->len / t->page + 1) / 2, &before);
    munmap(dst, t->len);
}

int mode_count(const struct options *opt)
{
    struct count t = { .page = opt->huge ? huge_page_size() : page_size(),
                       .stalls = opt->stalls, .huge = opt->huge };
    struct sva_counters before;
    struct rng rng = { opt->seed };
    uint64_t seen[64] = { 0 };
    unsigned distinct = 0;
    uint8_t *dst;

    if (!t.page) {
        die("this kernel has no huge pages");
    }
    t.len = (((size_t)opt->kib << 10) + t.page - 1) & -t.page;
    portal_or_die(&t.p, opt->portal[0]);
    vdev_open(&t.v, opt->device, -1);
    link_open(&t.l, &t.v, &t.v);
    t.key = key_or_die(&t.p, t.v.pd, SVA_ALL);
    printf("PASID %u, status 0x%x, %zu pages of %zu KiB\n", t.p.pasid,
           sva_portal_status(&t.p), t.len / t.page, t.page >> 10);
    t.src = fresh(t.len);
    pattern_fill(t.src, 7, 0, t.len);
    /* It is present for us: behind odp-stall not yet for the device. */
    dst = fresh(8);
    for (size_t off = 0; off < t.len; off += page_size()) {
        request(&t, IBV_WR_RDMA_WRITE, dst - off, off, 8); /* all to dst */
    }
    munmap(dst, 8);

    sweep(&t, "write, anonymous", false, t.huge ? t.page : 16 * t.page);
    if (!t.huge) {
        sweep(&t, "write by page, anonymous", false, t.page);
        sweep(&t, "write, shared file", true, 16 * t.page);
    }

    /* At random, with repetition. */
    dst = target(&t, false);
    sva_counters(&t.p, &before);
    for (unsigned i = 0; i < 200; i++) {
        size_t n = rng_below(&rng, t.len / t.page) % 4096;

        distinct += !(seen[n / 64] >> (n % 64) & 1);
        seen[n / 64] |= 1ull << (n % 64);
        request(&t, IBV_WR_RDMA_WRITE, dst, n * t.page, 8);
    }
    expect(&t, "write, at random", distinct, &before);
    munmap(dst, t.len);

    /* Absent pages at both ends: read from zero pages into new ones. */
    munmap(t.src, t.len);
    dst = target(&t, false);
    t.src = target(&t, false);
    sva_counters(&t.p, &before);
    for (size_t off = 0; off < t.len; off += t.page) {
        request(&t, IBV_WR_RDMA_READ, dst, off, 64);
    }
    expect(&t, "read, absent at both ends", 2 * (t.len / t.page), &before);
    for (size_t i = 0; i < t.len; i++) {
        t.bad |= t.src[i] != 0;
    }
    sva_counters(&t.p, &before);
    printf("in all: stalls %" PRIu64 ", page requests %" PRIu64 ", resolved %"
           PRIu64 ", of them large %" PRIu64 "\n", before.stalls,
           before.page_requests, before.resolved, before.resolved_large);
    sva_portal_close(&t.p);
    return t.bad;
}
