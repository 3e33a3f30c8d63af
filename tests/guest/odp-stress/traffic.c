/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traffic of random operations, checked byte by byte, while the memory under
 * it is disturbed. Each worker thread owns queue pairs, their operations and
 * one completion queue.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "op.h"

enum { INLINE_BYTES = 64, MAX_DEPTH = 64 };

enum kind {
    OP_SEND, OP_SEND_IMM, OP_WRITE, OP_WRITE_IMM, OP_READ, OP_FADD, OP_CSWAP,
    OP_COUNT,           /* FETCH_ADD of 1 on the counter that all share */
    OP_KINDS,
};

static const struct {
    const char *name;
    enum ibv_wr_opcode opcode;
    bool message;       /* takes a receive at the peer */
    uint32_t odp;       /* capability that ODP memory needs */
} kinds[OP_KINDS] = {
    [OP_SEND] = { "SEND", IBV_WR_SEND, true, IBV_ODP_SUPPORT_SEND },
    [OP_SEND_IMM] = { "SEND_IMM", IBV_WR_SEND_WITH_IMM, true,
                      IBV_ODP_SUPPORT_SEND },
    [OP_WRITE] = { "WRITE", IBV_WR_RDMA_WRITE, false, IBV_ODP_SUPPORT_WRITE },
    [OP_WRITE_IMM] = { "WRITE_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, true,
                       IBV_ODP_SUPPORT_WRITE },
    [OP_READ] = { "READ", IBV_WR_RDMA_READ, false, IBV_ODP_SUPPORT_READ },
    [OP_FADD] = { "FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, false,
                  IBV_ODP_SUPPORT_ATOMIC },
    [OP_CSWAP] = { "CMP_SWAP", IBV_WR_ATOMIC_CMP_AND_SWP, false,
                   IBV_ODP_SUPPORT_ATOMIC },
    [OP_COUNT] = { "FETCH_ADD (shared)", IBV_WR_ATOMIC_FETCH_AND_ADD, false,
                   IBV_ODP_SUPPORT_ATOMIC },
};

struct op {
    enum kind kind;
    bool busy, sent, received;
    struct buf src, dst;
    uint64_t seed;
    uint32_t imm;
    uint64_t before, after, compare;    /* of the remote word */
};

/* A posted receive. */
struct rbuf {
    struct buf buf;
    unsigned area;
};

/* Where receives are posted: a receive queue or a shared one. */
struct rq {
    struct ibv_qp *qp;
    struct ibv_srq *srq;
    unsigned *free, n_free;
};

struct pair {
    struct ibv_qp *qp[2];
    enum ibv_qp_type type;
    uint32_t odp;               /* IBV_ODP_SUPPORT_* */
    struct ibv_ah *ah;
    struct rq *rq, own_rq;
    struct op op[MAX_DEPTH];
    uint64_t head, tail;        /* posted, retired by send completions */
    uint64_t msg[MAX_DEPTH], msg_head, msg_tail;
    bool last_unsignaled;
};

struct worker {
    struct arena *a;
    unsigned index;
    pthread_t thread;
    struct rng rng;
    struct ibv_cq *cq;
    struct ibv_comp_channel *channel;
    struct rq srq;
    struct pair *pair;
    struct rbuf *rbuf;
    double progress;            /* when the last completion came */
    unsigned idle;              /* polls since */
};

static const char *qp_type(enum ibv_qp_type t)
{
    return t == IBV_QPT_RC ? "RC" : t == IBV_QPT_UC ? "UC" : "UD";
}

static void op_name(char *text, size_t size, const struct pair *p,
                    const struct op *op)
{
    snprintf(text, size, "%s %s of QP 0x%x", qp_type(p->type),
             kinds[op->kind].name, p->qp[0]->qp_num);
}

/* How many kinds of memory an operation may use. */
static unsigned usable(struct worker *w, const struct pair *p, uint32_t cap)
{
    return (p->odp & cap) == cap ? w->a->kinds : 1;
}

static void post_recv(struct worker *w, struct pair *p, const struct op *op)
{
    struct rq *rq = p->rq;
    unsigned index = rq->free[--rq->n_free];
    struct rbuf *rb = &w->rbuf[index];
    struct ibv_sge sge[MAX_SEGS];
    struct ibv_recv_wr *bad, wr = {
        .wr_id = 1ull << 63 | index,
        .sg_list = sge,
    };
    unsigned grh = p->type == IBV_QPT_UD ? GRH_BYTES : 0;
    uint32_t cap = rq->srq ? IBV_ODP_SUPPORT_SRQ_RECV : IBV_ODP_SUPPORT_RECV;

    /* Any message of the others may land in a shared receive. */
    buf_choose(&rb->buf, &w->rng, w->a->remote_dst, usable(w, p, cap),
               rb->area, 1 + rng_below(&w->rng, w->a->opt->sge),
               rq->srq ? MAX_BYTES : op->src.len + grh, 1);
    buf_guard(&rb->buf, w->a, &w->rng);
    wr.num_sge = rb->buf.n;
    buf_sge(&rb->buf, sge);
    if (rq->srq ? ibv_post_srq_recv(rq->srq, &wr, &bad) :
                  ibv_post_recv(rq->qp, &wr, &bad)) {
        die("posting a receive failed");
    }
}

static enum kind choose_kind(struct worker *w, const struct pair *p)
{
    /* Without acknowledge only a message tells when the bytes are there. */
    static const enum kind uc[] = { OP_SEND, OP_SEND_IMM, OP_WRITE_IMM };

    switch (p->type) {
    case IBV_QPT_RC:
        return rng_below(&w->rng, OP_KINDS);
    case IBV_QPT_UC:
        return uc[rng_below(&w->rng, ARRAY_SIZE(uc))];
    default:
        return uc[rng_below(&w->rng, 2)];
    }
}

static unsigned choose_len(struct worker *w, const struct pair *p)
{
    unsigned max = MAX_BYTES;

    if (p->type == IBV_QPT_UD) {
        max = 128u << w->a->v->port.active_mtu;
        max = max > 4096 ? 4096 : max;
    }
    switch (rng_below(&w->rng, 4)) {
    case 0:
        return 1 + rng_below(&w->rng, INLINE_BYTES);
    case 1:
        return max - rng_below(&w->rng, 16);
    default:
        return 1 + rng_below(&w->rng, max);
    }
}

static void prepare_atomic(struct worker *w, struct pair *p, struct op *op,
                           unsigned area, struct ibv_send_wr *wr)
{
    struct arena *a = w->a;
    unsigned n = usable(w, p, IBV_ODP_SUPPORT_ATOMIC);
    uint8_t *remote;
    uint32_t rkey;

    buf_choose(&op->dst, &w->rng, a->local_dst, n, area, 1, 8, 8);
    buf_guard(&op->dst, a, &w->rng);
    if (op->kind == OP_COUNT) {
        remote = a->counter->dev;
        rkey = a->counter->mr->rkey;
        wr->wr.atomic.compare_add = 1;
    } else {
        buf_choose(&op->src, &w->rng, a->remote_dst, n, area, 1, 8, 8);
        buf_guard(&op->src, a, &w->rng);
        remote = seg_dev(&op->src.seg[0]);
        rkey = op->src.seg[0].region->mr->rkey;
        op->before = rng_next(&w->rng);
        memcpy(seg_cpu(&op->src.seg[0]), &op->before, 8);
        op->compare = rng_next(&w->rng);
        if (op->kind == OP_FADD) {
            op->after = op->before + op->compare;
        } else if (rng_one_in(&w->rng, 2)) {
            op->after = op->before;
        } else {
            op->compare = op->before;
            op->after = rng_next(&w->rng);
        }
        wr->wr.atomic.compare_add = op->compare;
        wr->wr.atomic.swap = op->after;
    }
    wr->wr.atomic.remote_addr = (uintptr_t)remote;
    wr->wr.atomic.rkey = rkey;
}

/* Choose buffers, fill the source, guard the target; the WR to post. */
static void prepare(struct worker *w, struct pair *p, struct op *op,
                    unsigned area, struct ibv_send_wr *wr,
                    struct ibv_sge *sge)
{
    struct arena *a = w->a;
    unsigned n = usable(w, p, kinds[op->kind].odp);
    unsigned pieces = 1 + rng_below(&w->rng, a->opt->sge);
    unsigned len = choose_len(w, p);
    const struct buf *local = &op->src;

    op->seed = rng_next(&w->rng);
    op->imm = rng_next(&w->rng);
    wr->opcode = kinds[op->kind].opcode;
    wr->imm_data = op->imm;
    switch (op->kind) {
    case OP_READ:
        buf_choose(&op->src, &w->rng, a->remote_src, n, area, 1, len, 1);
        buf_choose(&op->dst, &w->rng, a->local_dst, n, area, pieces, len, 1);
        local = &op->dst;
        break;
    case OP_WRITE:
    case OP_WRITE_IMM:
        buf_choose(&op->src, &w->rng, a->local_src, n, area, pieces, len, 1);
        buf_choose(&op->dst, &w->rng, a->remote_dst, n, area, 1, len, 1);
        break;
    case OP_SEND:
    case OP_SEND_IMM:
        buf_choose(&op->src, &w->rng, a->local_src, n, area, pieces, len, 1);
        op->dst.n = 0;
        break;
    default:
        prepare_atomic(w, p, op, area, wr);
        buf_sge(&op->dst, sge);
        wr->num_sge = 1;
        return;
    }
    buf_fill(&op->src, a, &w->rng, op->seed);
    buf_guard(&op->dst, a, &w->rng);
    buf_sge(local, sge);
    wr->num_sge = local->n;
    if (op->dst.n) {
        const struct seg *s = op->kind == OP_READ ? &op->src.seg[0] :
                              &op->dst.seg[0];

        wr->wr.rdma.remote_addr = (uintptr_t)seg_dev(s);
        wr->wr.rdma.rkey = s->region->mr->rkey;
    }
    if (op->kind != OP_READ && len <= INLINE_BYTES &&
        rng_one_in(&w->rng, 2)) {
        wr->send_flags |= IBV_SEND_INLINE;
    }
}

static void post(struct worker *w, unsigned pair)
{
    struct arena *a = w->a;
    struct pair *p = &w->pair[pair];
    unsigned depth = a->opt->depth;
    unsigned slot = p->head % depth;
    unsigned area = (w->index * a->opt->qps + pair) * depth + slot;
    struct op *op = &p->op[slot];
    struct ibv_sge sge[MAX_SEGS];
    struct ibv_send_wr *bad, wr = {
        .wr_id = (uint64_t)pair << 40 | p->head,
        .sg_list = sge,
    };
    bool late, signaled;

    op->kind = choose_kind(w, p);
    op->busy = true;
    op->sent = op->received = false;
    prepare(w, p, op, area, &wr, sge);
    /* One of four is retired by the completion of a later one. */
    signaled = p->head + 1 - p->tail >= depth || atomic_load(&a->stop) ||
               !rng_one_in(&w->rng, 4);
    p->last_unsignaled = !signaled;
    wr.send_flags |= signaled ? IBV_SEND_SIGNALED : 0;
    if (p->type == IBV_QPT_UD) {
        wr.wr.ud.ah = p->ah;
        wr.wr.ud.remote_qpn = p->qp[1]->qp_num;
        wr.wr.ud.remote_qkey = UD_QKEY;
    }
    /* A reliable peer may be late: receiver not ready, sent again. */
    late = p->type == IBV_QPT_RC && rng_one_in(&w->rng, 32);
    if (kinds[op->kind].message) {
        p->msg[p->msg_head++ % depth] = slot;
        if (!late) {
            post_recv(w, p, op);
        }
    } else {
        op->received = true;
    }
    if (ibv_post_send(p->qp[0], &wr, &bad)) {
        die("posting a send failed");
    }
    p->head++;
    atomic_fetch_add(&a->totals.posted, 1);
    if (kinds[op->kind].message && late) {
        post_recv(w, p, op);
    }
}

/* The word that an atomic answered, and guard bytes in its place. */
static uint64_t take_word(const struct buf *b)
{
    const struct seg *s = &b->seg[0];
    uint64_t value;

    memcpy(&value, seg_cpu(s), 8);
    if (s->zeroed) {
        memset(seg_cpu(s), 0, 8);
    } else {
        pattern_fill(seg_cpu(s), b->guard, s->offset, 8);
    }
    return value;
}

static void check_atomic(struct arena *a, struct op *op, const char *what)
{
    uint64_t got = take_word(&op->dst);

    buf_check(&op->dst, 0, 0, 0, what);
    if (op->kind == OP_COUNT) {
        arena_count(a, got);
        return;
    }
    if (got != op->before) {
        die("wrong byte: %s answered 0x%llx, it was 0x%llx", what,
            (unsigned long long)got, (unsigned long long)op->before);
    }
    got = take_word(&op->src);
    if (got != op->after) {
        die("wrong byte: %s left 0x%llx, not 0x%llx (it was 0x%llx)", what,
            (unsigned long long)got, (unsigned long long)op->after,
            (unsigned long long)op->before);
    }
    buf_check(&op->src, 0, 0, 0, what);
}

static void finish(struct worker *w, struct pair *p, struct op *op)
{
    char what[64];

    if (!op->sent || !op->received) {
        return;
    }
    op_name(what, sizeof(what), p, op);
    if (kinds[op->kind].odp == IBV_ODP_SUPPORT_ATOMIC) {
        check_atomic(w->a, op, what);
        atomic_fetch_add(&w->a->totals.bytes, 8);
    } else {
        if (op->dst.n) {
            buf_check(&op->dst, op->seed, 0, op->src.len, what);
        }
        atomic_fetch_add(&w->a->totals.bytes, op->src.len);
    }
    op->busy = false;
    atomic_fetch_add(&w->a->totals.done, 1);
}

static void send_done(struct worker *w, const struct ibv_wc *wc)
{
    struct pair *p = &w->pair[wc->wr_id >> 40];
    uint64_t seq = wc->wr_id & ((1ull << 40) - 1);

    if (seq < p->tail || seq >= p->head || wc->qp_num != p->qp[0]->qp_num) {
        die("a completion of QP 0x%x for request %llu, expected one of QP "
            "0x%x in [%llu, %llu)", wc->qp_num, (unsigned long long)seq,
            p->qp[0]->qp_num, (unsigned long long)p->tail,
            (unsigned long long)p->head);
    }
    for (; p->tail <= seq; p->tail++) {
        struct op *op = &p->op[p->tail % w->a->opt->depth];

        op->sent = true;
        finish(w, p, op);
    }
}

static struct pair *pair_of_peer(struct worker *w, uint32_t qpn)
{
    for (unsigned i = 0; i < w->a->opt->qps; i++) {
        if (w->pair[i].qp[1]->qp_num == qpn) {
            return &w->pair[i];
        }
    }
    die("a receive completion names QP 0x%x, which is not ours", qpn);
}

static void recv_done(struct worker *w, const struct ibv_wc *wc)
{
    struct pair *p = pair_of_peer(w, wc->qp_num);
    unsigned index = wc->wr_id & 0xffffffff;
    struct rbuf *rb = &w->rbuf[index];
    unsigned grh = p->type == IBV_QPT_UD ? GRH_BYTES : 0;
    bool imm, written;
    struct op *op;
    char what[64];

    if (p->msg_tail == p->msg_head) {
        die("a receive completion of QP 0x%x, but no message is under way",
            wc->qp_num);
    }
    op = &p->op[p->msg[p->msg_tail++ % w->a->opt->depth]];
    op_name(what, sizeof(what), p, op);
    written = op->kind == OP_WRITE_IMM;
    imm = written || op->kind == OP_SEND_IMM;
    if (wc->opcode != (written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) ||
        wc->byte_len != op->src.len + grh ||
        !!(wc->wc_flags & IBV_WC_WITH_IMM) != imm ||
        (imm && wc->imm_data != op->imm)) {
        die("receive completion of %s: opcode %d, %u bytes, flags 0x%x, "
            "immediate 0x%x; sent %u bytes, immediate 0x%x", what, wc->opcode,
            wc->byte_len, wc->wc_flags, wc->imm_data, op->src.len + grh,
            op->imm);
    }
    buf_check(&rb->buf, op->seed, grh, written ? 0 : op->src.len, what);
    p->rq->free[p->rq->n_free++] = index;
    atomic_fetch_add(&w->a->totals.recvs, 1);
    op->received = true;
    finish(w, p, op);
}

static void dump(struct worker *w)
{
    for (unsigned i = 0; i < w->a->opt->qps; i++) {
        struct pair *p = &w->pair[i];

        fprintf(stderr, "QP 0x%x state %d -> QP 0x%x state %d: posted %llu, "
                "retired %llu, messages %llu of %llu\n", p->qp[0]->qp_num,
                qp_state(p->qp[0]), p->qp[1]->qp_num, qp_state(p->qp[1]),
                (unsigned long long)p->head, (unsigned long long)p->tail,
                (unsigned long long)p->msg_tail,
                (unsigned long long)p->msg_head);
        for (unsigned k = 0; k < w->a->opt->depth; k++) {
            struct op *op = &p->op[k];
            char what[64];

            if (op->busy) {
                op_name(what, sizeof(what), p, op);
                fprintf(stderr, "  slot %u: %s, %u bytes, sent %d, "
                        "received %d\n", k, what, op->dst.len, op->sent,
                        op->received);
            }
        }
    }
}

static void complete(struct worker *w, const struct ibv_wc *wc)
{
    w->progress = now();
    if (wc->status != IBV_WC_SUCCESS) {
        dump(w);
        die("dead QP: completion of QP 0x%x, wr_id 0x%llx: %s, vendor "
            "syndrome 0x%x", wc->qp_num, (unsigned long long)wc->wr_id,
            ibv_wc_status_str(wc->status), wc->vendor_err);
    }
    if (wc->wr_id >> 63) {
        recv_done(w, wc);
    } else {
        send_done(w, wc);
    }
}

/* Sleep until the completion queue has an event. */
static void wait_event(struct worker *w)
{
    struct pollfd fd = { .fd = w->channel->fd, .events = POLLIN };
    struct ibv_cq *cq;
    void *context;

    if (poll(&fd, 1, 1000) == 1) {
        if (ibv_get_cq_event(w->channel, &cq, &context)) {
            die_errno("ibv_get_cq_event");
        }
        ibv_ack_cq_events(cq, 1);
    }
}

static unsigned reap(struct worker *w)
{
    struct ibv_wc wc[16];
    int n = ibv_poll_cq(w->cq, ARRAY_SIZE(wc), wc);

    if (n < 0) {
        die("ibv_poll_cq failed");
    }
    for (int i = 0; i < n; i++) {
        complete(w, &wc[i]);
    }
    return n;
}

static void wait_some(struct worker *w)
{
    if (reap(w)) {
        w->idle = 0;
        return;
    }
    if (w->channel) {
        if (ibv_req_notify_cq(w->cq, 0)) {
            die("ibv_req_notify_cq failed");
        }
        if (!reap(w)) {
            wait_event(w);
        }
    } else {
        relax(w->idle++);
    }
    if (now() - w->progress > w->a->opt->timeout) {
        dump(w);
        die("lost completion: nothing for %.0f s", w->a->opt->timeout);
    }
}

static bool may_post(struct worker *w, struct pair *p)
{
    return !p->op[p->head % w->a->opt->depth].busy &&
           (!atomic_load(&w->a->stop) || p->last_unsignaled);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    bool busy = true;

    w->progress = now();
    while (busy) {
        busy = !atomic_load(&w->a->stop);
        for (unsigned i = 0; i < w->a->opt->qps; i++) {
            struct pair *p = &w->pair[i];

            while (may_post(w, p)) {
                post(w, i);
            }
            busy |= p->tail != p->head || p->msg_tail != p->msg_head;
        }
        if (busy) {
            wait_some(w);
        }
    }
    return NULL;
}

static void rq_init(struct rq *rq, unsigned capacity)
{
    rq->free = calloc(capacity, sizeof(*rq->free));
    rq->n_free = 0;
}

static void worker_init(struct worker *w, struct arena *a, unsigned index)
{
    const struct options *opt = a->opt;
    unsigned slots = opt->qps * opt->depth;
    struct ibv_srq_init_attr srq = {
        .attr = { .max_wr = slots, .max_sge = opt->sge },
    };

    w->a = a;
    w->index = index;
    w->rng.state = opt->seed + index;
    w->channel = opt->events ? ibv_create_comp_channel(a->v->ctx) : NULL;
    w->cq = ibv_create_cq(a->v->ctx, 2 * slots + 16, NULL, w->channel, 0);
    if (!w->cq) {
        die_errno("ibv_create_cq");
    }
    w->srq.srq = ibv_create_srq(a->v->pd, &srq);
    if (!w->srq.srq) {
        die_errno("ibv_create_srq");
    }
    rq_init(&w->srq, slots);
    w->pair = calloc(opt->qps, sizeof(*w->pair));
    w->rbuf = calloc(slots, sizeof(*w->rbuf));
    for (unsigned i = 0; i < opt->qps; i++) {
        struct pair *p = &w->pair[i];
        struct qp_conf conf = {
            .type = IBV_QPT_RC, .send_cq = w->cq, .recv_cq = w->cq,
            .depth = opt->depth, .sge = opt->sge,
            .inline_bytes = INLINE_BYTES,
        };

        /* Of four: RC, RC with SRQ, UC, UD. */
        if (!opt->rc_only && i % 4 >= 2) {
            conf.type = i % 4 == 2 ? IBV_QPT_UC : IBV_QPT_UD;
        }
        p->rq = &p->own_rq;
        if (conf.type == IBV_QPT_RC && i % 2) {
            conf.srq = w->srq.srq;
            p->rq = &w->srq;
        } else {
            rq_init(&p->own_rq, opt->depth);
        }
        p->type = conf.type;
        p->odp = vdev_odp_caps(a->v, conf.type);
        qp_pair(a->v, &conf, p->qp);
        p->own_rq.qp = p->qp[1];
        if (p->type == IBV_QPT_UD) {
            p->ah = ah_self(a->v);
        }
        for (unsigned k = 0; k < opt->depth; k++) {
            unsigned slot = i * opt->depth + k;

            w->rbuf[slot].area = opt->threads * slots + index * slots + slot;
            p->rq->free[p->rq->n_free++] = slot;
        }
    }
}

static void worker_end(struct worker *w)
{
    for (unsigned i = 0; i < w->a->opt->qps; i++) {
        struct pair *p = &w->pair[i];

        for (unsigned k = 0; k < 2; k++) {
            if (qp_state(p->qp[k]) != IBV_QPS_RTS) {
                die("dead QP: 0x%x is in state %d", p->qp[k]->qp_num,
                    qp_state(p->qp[k]));
            }
            if (ibv_destroy_qp(p->qp[k])) {
                die_errno("ibv_destroy_qp");
            }
        }
        if (p->ah && ibv_destroy_ah(p->ah)) {
            die_errno("ibv_destroy_ah");
        }
        free(p->own_rq.free);
    }
    if (ibv_destroy_srq(w->srq.srq) || ibv_destroy_cq(w->cq) ||
        (w->channel && ibv_destroy_comp_channel(w->channel))) {
        die_errno("destroying SRQ, CQ or channel");
    }
    free(w->srq.free);
    free(w->pair);
    free(w->rbuf);
}

int mode_traffic(struct vdev *v, const struct options *opt)
{
    static const unsigned only_drop[] = { ACT_DROP };
    static const unsigned all[] = { ACT_DROP, ACT_DROP, ACT_DROP, ACT_REMAP,
                                    ACT_FLIP, ACT_FORK };
    struct arena a;
    struct worker *w = calloc(opt->threads, sizeof(*w));
    struct odp_counters before;
    double start;
    int bad;

    arena_init(&a, v, opt);
    for (unsigned i = 0; i < opt->threads; i++) {
        worker_init(&w[i], &a, i);
    }
    before = odp_counters_read(v->ctx->device->name);
    start = now();
    for (unsigned i = 0; i < opt->threads; i++) {
        if (pthread_create(&w[i].thread, NULL, work, &w[i])) {
            die("pthread_create failed");
        }
    }
    if (a.kinds == 1) {
        /* Nothing to disturb: that many operations. */
        while (atomic_load(&a.totals.done) < opt->iters) {
            usleep(1000);
        }
    } else if (!strcmp(opt->mode, "dontneed")) {
        disturb(&a, only_drop, ARRAY_SIZE(only_drop));
    } else {
        disturb(&a, all, ARRAY_SIZE(all));
    }
    atomic_store(&a.stop, true);
    for (unsigned i = 0; i < opt->threads; i++) {
        pthread_join(w[i].thread, NULL);
    }
    bad = arena_report(&a, &before, now() - start);
    arena_check_count(&a);
    for (unsigned i = 0; i < opt->threads; i++) {
        worker_end(&w[i]);
    }
    free(w);
    arena_end(&a);
    return bad;
}
