/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attempts to reach, through one portal, the memory of another's owner. */
#include <stdio.h>

#include "owner.h"

enum { BYTES = 256 << 10, KINDS = 6 };

static const char *const kinds[KINDS] = {
    "other's address", "own buffer at other's address", "wrong PASID",
    "stale key", "other domain", "guessed key",
};

struct isolate {
    struct vdev v, stranger;    /* the same device, another domain */
    struct link l, foreign;
    struct owner a, b;
    uint8_t *mine;
    struct ibv_mr *mr, *foreign_mr;
    struct rng rng;
    unsigned tries[KINDS], refused_keys, errors, reached;
    uint32_t latched;           /* PASID of A's portal */
    FILE *list;                 /* or NULL */
    bool bad;
};

/* The HCA lets this one through to the IOMMU, which has to stop it. */
static void reaches_iommu(struct isolate *t, const void *at)
{
    t->reached++;
    if (t->list) {
        fprintf(t->list, "0x%x %p\n", t->latched, at);
    }
}

static void attempt(struct isolate *t, unsigned kind, uint32_t key, bool local)
{
    static const enum ibv_wr_opcode opcode[] = {
        IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
        IBV_WR_ATOMIC_CMP_AND_SWP,
    };
    unsigned n = rng_below(&t->rng, 4);
    size_t len = n < 2 ? 1 + rng_below(&t->rng, 8192) : 8;
    uint8_t *at = t->b.mem + rng_below(&t->rng, (BYTES - len) / 8) * 8;
    struct link *l = kind == 4 ? &t->foreign : &t->l;
    uint32_t mine = (kind == 4 ? t->foreign_mr : t->mr)->lkey;
    struct request r = { opcode[n], t->mine, mine, at, key, len, 1, 2 };
    enum ibv_wc_status got, want = IBV_WC_REM_ACCESS_ERR;

    if (local) {
        r.local = at;
        r.lkey = key;
        r.remote = t->mine;
        r.rkey = t->mr->rkey;
        want = IBV_WC_LOC_PROT_ERR;
    }
    if (kind < 3) {
        reaches_iommu(t, at);
    }
    got = link_do(l, &r, NULL);
    t->tries[kind]++;
    t->errors += got == want;
    if (got != want) {
        printf("FAIL: %s: opcode %u: %s\n", kinds[kind], n,
               ibv_wc_status_str(got));
        t->bad = true;
    }
}

static void wrong_pasid(struct isolate *t)
{
    uint32_t own = t->a.pasid, pasid;

    switch (rng_below(&t->rng, 3)) {
    case 0:
        pasid = t->b.pasid;
        break;
    case 1:
        pasid = 1 + rng_below(&t->rng, 16);
        break;
    default:
        pasid = rng_below(&t->rng, 1 << 20);
    }
    if (pasid == own) {
        return;
    }
    if (owner_relatch(&t->a, pasid)) {
        t->refused_keys++;
        t->tries[2]++;
    } else {
        t->latched = pasid;
        attempt(t, 2, t->a.key, false);
        t->latched = own;
    }
    if (owner_relatch(&t->a, own)) {
        die("the owner cannot have its own PASID again");
    }
}

static void one(struct isolate *t, unsigned kind)
{
    uint32_t key;

    switch (kind) {
    case 0:
    case 1:
        attempt(t, kind, t->a.key, kind == 1);
        break;
    case 2:
        wrong_pasid(t);
        break;
    case 3:
        key = t->a.key;
        owner_destroy_key(&t->a);
        owner_new_key(&t->a);
        attempt(t, kind, key, rng_one_in(&t->rng, 2));
        break;
    case 4:
        attempt(t, kind, t->b.key, false);
        break;
    default:
        /* Near a key that lives: another variant, another index. */
        key = t->b.key ^ (1 + rng_below(&t->rng, 255));
        if (rng_one_in(&t->rng, 2)) {
            key = t->b.key + ((1 + rng_below(&t->rng, 64)) << 8);
        }
        if (key != t->a.key) {
            attempt(t, kind, key, rng_one_in(&t->rng, 2));
        }
    }
}

int mode_isolate(const struct options *opt)
{
    struct isolate t = { .rng = { opt->seed } };
    struct request r;

    vdev_open(&t.v, opt->device, -1);
    t.stranger = t.v;
    t.stranger.pd = ibv_alloc_pd(t.v.ctx);
    if (!t.stranger.pd) {
        die_errno("ibv_alloc_pd");
    }
    link_open(&t.l, &t.v, &t.v);
    link_open(&t.foreign, &t.stranger, &t.stranger);
    t.mine = fresh(BYTES);
    pattern_fill(t.mine, 1, 0, BYTES);
    t.mr = mr_reg(&t.v, t.mine, BYTES, SVA_ALL);
    t.foreign_mr = mr_reg(&t.stranger, t.mine, BYTES, SVA_ALL);
    owner_start(&t.a, opt->portal[0], t.v.pd, NULL, BYTES, 21);
    owner_start(&t.b, opt->portal[1], t.v.pd, NULL, BYTES, 22);
    printf("A: PASID %u, key 0x%x; B: PASID %u, key 0x%x\n", t.a.pasid,
           t.a.key, t.b.pasid, t.b.key);
    t.latched = t.a.pasid;
    if (opt->list) {
        t.list = fopen(opt->list, "w");
        if (!t.list) {
            die_errno(opt->list);
        }
    }
    /* What turns out to be A's own is no attempt. */
    for (unsigned i = 0; t.errors + t.refused_keys < opt->iters && !t.bad;
         i++) {
        one(&t, rng_below(&t.rng, KINDS));
        if ((i & 63) == 63 && !owner_check(&t.b, 22, 0, BYTES)) {
            printf("FAIL: B's memory changed\n");
            t.bad = true;
        }
    }
    for (unsigned i = 0; i < KINDS; i++) {
        printf("%-30s %u\n", kinds[i], t.tries[i]);
        t.bad |= opt->iters >= 100 && !t.tries[i];
    }
    printf("denied by an error completion %u, no key given %u; stopped by the "
           "IOMMU %u\n", t.errors, t.refused_keys, t.reached);
    if (t.list && fclose(t.list)) {
        die_errno(opt->list);
    }
    if (!owner_check(&t.b, 22, 0, BYTES) || !owner_check(&t.a, 21, 0, BYTES)) {
        printf("FAIL: memory changed\n");
        t.bad = true;
    }
    /* B never noticed. */
    r = (struct request) { IBV_WR_RDMA_READ, t.mine, t.mr->lkey, t.b.mem,
                           t.b.key, BYTES, 0, 0 };
    if (link_do(&t.l, &r, NULL) != IBV_WC_SUCCESS ||
        pattern_check(t.mine, 22, 0, BYTES) >= 0) {
        printf("FAIL: B's own key\n");
        t.bad = true;
    }
    owner_exit(&t.a);
    owner_exit(&t.b);
    owner_reap(&t.a);
    owner_reap(&t.b);
    link_close(&t.l);
    link_close(&t.foreign);
    return t.bad;
}
