/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys outlive their owners in a peer's hands; they must be worth nothing. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "owner.h"

enum { BYTES = 1 << 20, BURST = 16, PIECE = BYTES / BURST };

struct lives {
    const struct options *opt;
    struct vdev v;
    struct link l;
    uint8_t *src;
    struct ibv_mr *mr;
    unsigned through, refused, flushed;
    bool bad;
};

static void lives_open(struct lives *t, const struct options *opt)
{
    t->opt = opt;
    vdev_open(&t->v, opt->device, -1);
    link_open(&t->l, &t->v, &t->v);
    t->src = fresh(BYTES);
    pattern_fill(t->src, 11, 0, BYTES);
    t->mr = mr_reg(&t->v, t->src, BYTES, IBV_ACCESS_LOCAL_WRITE);
}

static void say_wrong(struct lives *t, const char *what)
{
    printf("FAIL: %s\n", what);
    t->bad = true;
}

static struct request to_owner(struct lives *t, const struct owner *o,
                               size_t off, size_t len)
{
    return (struct request) { IBV_WR_RDMA_WRITE, t->src + off, t->mr->lkey,
                              o->mem + off, o->key, len, 0, 0 };
}

static void denied(struct lives *t, const struct owner *o, const char *what)
{
    struct request r = to_owner(t, o, 0, 64);
    enum ibv_wc_status got = link_do(&t->l, &r, NULL);

    if (got != IBV_WC_REM_ACCESS_ERR) {
        printf("%s\n", ibv_wc_status_str(got));
        say_wrong(t, what);
    }
}

static void burst(struct lives *t, const struct owner *o)
{
    for (unsigned i = 0; i < BURST; i++) {
        struct request r = to_owner(t, o, i * PIECE, PIECE);

        link_post(&t->l, &r);
    }
}

/* All end, first some well, then one refused, then the rest flushed. */
static void burst_wait(struct lives *t)
{
    unsigned refused = 0;

    for (unsigned i = 0; i < BURST; i++) {
        enum ibv_wc_status got = link_wait(&t->l);

        if (got == IBV_WC_SUCCESS && !refused) {
            t->through++;
        } else if (got == IBV_WC_REM_ACCESS_ERR && !refused) {
            refused++;
            t->refused++;
        } else if (got == IBV_WC_WR_FLUSH_ERR && refused) {
            t->flushed++;
        } else {
            printf("%s\n", ibv_wc_status_str(got));
            say_wrong(t, "an unexpected completion");
        }
    }
    if (refused) {
        link_again(&t->l);
    }
}

int mode_kill(const struct options *opt)
{
    struct lives t = { 0 };
    struct rng rng = { opt->seed };
    struct owner o, before = { 0 };

    lives_open(&t, opt);
    for (unsigned i = 0; i < opt->iters && !t.bad; i++) {
        owner_start(&o, opt->portal[0], t.v.pd, NULL, BYTES, 0);
        if (i) {
            denied(&t, &before, "an old key was good under the next owner");
        }
        burst(&t, &o);
        if (!rng_one_in(&rng, 8)) {
            usleep(rng_below(&rng, 40000));
        }
        owner_kill(&o);
        burst_wait(&t);
        owner_reap(&o);
        denied(&t, &o, "a killed owner's key was good");
        before = o;
    }
    printf("%u kills: writes through %u, refused %u, flushed %u\n",
           opt->iters, t.through, t.refused, t.flushed);
    link_close(&t.l);
    return t.bad;
}
