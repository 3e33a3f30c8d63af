/*
 * QTest: mlx5 tag matching
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum {
    NO_TAG, RNDV, FIN, EAGER,     /* kinds of messages */

    OP_NOP = 0, OP_APPEND, OP_REMOVE,
    SW_CNT = 1 << 6, WANT_CQE = 1 << 7,

    /* Completions, offset 41. */
    CONSUMED = 1, EXPECTED, UNEXPECTED, GOT_NO_TAG, APPENDED, REMOVED, NOOP,
    CONSUMED_MSG = 0xa, CONSUMED_MSG_SW, CANCELED,

    LOG_TAGS = 3,
    MEM = 64 * 1024,
};

typedef struct Bench {
    QMlx5 *d;
    QMlx5Srq *xrq;
    QMlx5Cq *cq;                  /* of the XRQ */
    QMlx5Qp *cmd;                 /* command queue pair */
    QMlx5Qp *client, *server;
    uint64_t src, dst;
    uint32_t key;                 /* of buffers of entries */
} Bench;

typedef struct Xrq {
    uint8_t topology, log, offload;
    uint32_t pd, cqn;
    uint32_t len;                 /* of the command; 0: all */
} Xrq;

static uint8_t xrq_create(Bench *b, const Xrq *x)
{
    QMlx5 *d = b->d;
    QMlx5Srq *s = g_new0(QMlx5Srq, 1);
    uint32_t head = MLX5_BYTES(create_xrq_in);
    uint8_t out[16] = { }, st;
    g_autofree uint8_t *in = g_malloc0(head + 8);
    uint8_t *ctx = MLX5_ADDR(in, create_xrq_in, xrq_context);
    uint8_t *wq = MLX5_ADDR(ctx, xrqc, wq);
    uint8_t *tm = MLX5_ADDR(ctx, xrqc, tag_matching_topology_context);

    g_ptr_array_add(d->objs, s);
    s->d = d;
    s->log_size = 5;
    s->log_stride = 6;
    s->buf = qmlx5_alloc(d->host, QMLX5_PAGE);
    s->dbr = qmlx5_dbr_new(d);
    for (unsigned i = 0; i < 32; i++) {
        uint8_t next[16] = { };

        stw_be_p(next + 2, (i + 1) & 31);
        qmlx5_write(d, s->buf + i * 64, next, sizeof(next));
    }
    qmlx5_cmd_head(in, QMLX5_CREATE_XRQ, 0);
    MLX5_SET(ctx, xrqc, topology, x->topology);
    MLX5_SET(ctx, xrqc, offload, x->offload);
    MLX5_SET(ctx, xrqc, cqn, x->cqn);
    MLX5_SET(ctx, xrqc, user_index, 0x1234);
    MLX5_SET(tm, tag_matching_topology_context, log_matching_list_sz, x->log);
    MLX5_SET(wq, wq, pd, x->pd);
    MLX5_SET64(wq, wq, dbr_addr, s->dbr);
    MLX5_SET(wq, wq, log_wq_stride, s->log_stride);
    MLX5_SET(wq, wq, log_wq_sz, s->log_size);
    stq_be_p(in + head, s->buf);
    st = qmlx5_cmd(d, in, x->len ? x->len : head + 8, out, sizeof(out));
    s->srqn = qmlx5_be32(out + 8) & 0xffffff;
    if (!st) {
        b->xrq = s;
    }
    return st;
}

static QMlx5Qp *qp_on(Bench *b, bool xrq)
{
    QMlx5QpAttr a = qmlx5_qp_attr(b->d, QMLX5_RC);

    if (xrq) {
        a.rq_type = 1;
        a.srq = b->xrq;
        a.rcq = b->cq;
    }
    return qmlx5_qp_new(b->d, &a);
}

static Bench *bench_with(uint8_t offload)
{
    Bench *b = g_new0(Bench, 1);
    Xrq x = { .topology = 1, .log = LOG_TAGS, .offload = offload };

    b->d = qmlx5_start("");
    b->cq = qmlx5_cq_new(b->d, 6);
    x.pd = b->d->pd;
    x.cqn = b->cq->cqn;
    g_assert_cmphex(xrq_create(b, &x), ==, 0);
    b->cmd = qp_on(b, true);
    qmlx5_qp_rts(b->cmd);
    b->client = qp_on(b, false);
    b->server = qp_on(b, true);
    qmlx5_qp_connect(b->client, b->server);
    qmlx5_qp_rts(b->client);
    qmlx5_qp_rts(b->server);
    b->src = qmlx5_alloc(b->d->host, MEM);
    b->dst = qmlx5_alloc(b->d->host, MEM);
    b->key = b->d->lkey;
    return b;
}

static Bench *bench(void)
{
    return bench_with(1);
}

static void bench_free(Bench *b)
{
    qmlx5_stop(b->d);
    g_free(b);
}

static void list_op(Bench *b, QMlx5Qp *qp, uint8_t op, uint8_t flags,
                    uint16_t index, uint16_t sw_cnt, uint64_t tag,
                    uint64_t mask, uint64_t va, uint32_t len)
{
    QMlx5Wqe w;
    uint8_t *seg;

    qmlx5_wqe(&w, QMLX5_OP_TAG_MATCHING, 0, 0);
    seg = w.b + w.len;
    w.len += 32;
    seg[0] = op << 4;
    seg[1] = flags;
    stw_be_p(seg + 2, index);
    stw_be_p(seg + 6, sw_cnt);
    stq_be_p(seg + 16, tag);
    stq_be_p(seg + 24, mask);
    if (op == OP_APPEND) {
        seg = w.b + w.len;
        w.len += 16;
        stl_be_p(seg, len);
        stl_be_p(seg + 4, len ? b->key : 0x100);
        stq_be_p(seg + 8, va);
    }
    qmlx5_post(qp, &w);
}

static void expect_cqe(Bench *b, uint8_t opcode, uint8_t app_op, uint16_t info,
                       uint8_t cqe[64])
{
    qmlx5_cq_wait(b->cq, cqe);
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, opcode);
    g_assert_cmphex(cqe[40], ==, 1);
    g_assert_cmphex(cqe[41], ==, app_op);
    g_assert_cmphex(lduw_be_p(cqe + 42), ==, info);
    g_assert_cmphex(qmlx5_be32(cqe + 32), ==, 0x1234);
}

/* Entry @index, with a buffer of @len bytes at @va. */
static void append(Bench *b, uint16_t index, uint64_t tag, uint64_t mask,
                   uint64_t va, uint32_t len)
{
    uint8_t cqe[64];

    list_op(b, b->cmd, OP_APPEND, WANT_CQE, (index + 1) & 7, 0, tag, mask, va,
            len);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, APPENDED, index, cqe);
    g_assert_cmphex(cqe[0], ==, 0x80);
}

static void header(Bench *b, uint8_t kind, uint64_t tag)
{
    uint8_t h[16] = { kind };

    stl_be_p(h + 4, 0xcafe);
    stq_be_p(h + 8, tag);
    qmlx5_write(b->d, b->src, h, sizeof(h));
}

/* A message of @len bytes behind its header. */
static void message(Bench *b, uint8_t kind, uint64_t tag, uint32_t len,
                    uint32_t seed)
{
    qmlx5_fill(b->d, b->src + 16, len, seed);
    header(b, kind, tag);
    qmlx5_post_send(b->client, QMLX5_OP_SEND, b->d->lkey, b->src, 16 + len);
    qmlx5_cq_expect(b->client->a.scq, QMLX5_CQE_REQ);
}

static void check_header(const uint8_t *cqe, uint8_t kind, uint64_t tag)
{
    g_assert_cmphex(cqe[0], ==, kind);
    g_assert_cmphex(qmlx5_be32(cqe + 4), ==, 0xcafe);
    g_assert_cmphex(ldq_be_p(cqe + 8), ==, tag);
}

static void test_commands(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    Xrq good = { .topology = 1, .log = 7, .offload = 1, .pd = d->pd,
                 .cqn = b->cq->cqn }, x;
    uint8_t in[16] = { }, out[MLX5_BYTES(query_xrq_out)], *ctx, *tm;
    uint32_t old = b->xrq->srqn;

    x = good;
    x.topology = 2;
    g_assert_cmphex(xrq_create(b, &x), ==, QMLX5_BAD_PARAM);
    x = good;
    x.log = 8;
    g_assert_cmphex(xrq_create(b, &x), ==, QMLX5_BAD_PARAM);
    x.log = 0;
    g_assert_cmphex(xrq_create(b, &x), ==, QMLX5_BAD_PARAM);
    x = good;
    x.offload = 2;
    g_assert_cmphex(xrq_create(b, &x), ==, QMLX5_BAD_PARAM);
    x = good;
    x.topology = 0;               /* a rendezvous needs tags */
    g_assert_cmphex(xrq_create(b, &x), ==, QMLX5_BAD_PARAM);
    x = good;
    x.pd = 0xffff;
    g_assert_cmphex(xrq_create(b, &x), ==, QMLX5_BAD_RES);
    x = good;
    x.cqn = 0xffff;
    g_assert_cmphex(xrq_create(b, &x), ==, QMLX5_BAD_RES);
    x = good;
    x.len = MLX5_BYTES(create_xrq_in);
    g_assert_cmphex(xrq_create(b, &x), ==, QMLX5_BAD_INP_LEN);
    x.len = 64;
    g_assert_cmphex(xrq_create(b, &x), ==, QMLX5_BAD_INP_LEN);
    g_assert_cmphex(xrq_create(b, &good), ==, 0);

    qmlx5_cmd_head(in, QMLX5_QUERY_XRQ, 0);
    stl_be_p(in + 8, b->xrq->srqn);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    ctx = MLX5_ADDR(out, query_xrq_out, xrq_context);
    tm = MLX5_ADDR(ctx, xrqc, tag_matching_topology_context);
    g_assert_cmphex(MLX5_GET(ctx, xrqc, state), ==, 0);
    g_assert_cmphex(MLX5_GET(ctx, xrqc, topology), ==, 1);
    g_assert_cmphex(MLX5_GET(ctx, xrqc, offload), ==, 1);
    g_assert_cmphex(MLX5_GET(ctx, xrqc, cqn), ==, b->cq->cqn);
    g_assert_cmphex(MLX5_GET(ctx, xrqc, user_index), ==, 0x1234);
    g_assert_cmphex(MLX5_GET(tm, tag_matching_topology_context,
                             log_matching_list_sz), ==, 7);
    g_assert_cmphex(MLX5_GET(MLX5_ADDR(ctx, xrqc, wq), wq, log_wq_sz), ==, 5);
    stl_be_p(in + 8, 0xffff);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==,
                    QMLX5_BAD_RES);

    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_ARM_RQ, 2, b->xrq->srqn, 4, NULL),
                    ==, 0);
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_ARM_RQ, 2, b->xrq->srqn, 99,
                                     NULL), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_ARM_RQ, 1, b->xrq->srqn, 4, NULL),
                    ==, QMLX5_BAD_RES);
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_ARM_RQ, 3, b->xrq->srqn, 4, NULL),
                    ==, QMLX5_BAD_PARAM);

    /* Queue pairs and its CQ. */
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DESTROY_XRQ, 0, old, 0, NULL), ==,
                    QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_cq_destroy(b->cq), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DESTROY_XRQ, 0, b->xrq->srqn, 0,
                                     NULL), ==, 0);
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DESTROY_XRQ, 0, b->xrq->srqn, 0,
                                     NULL), ==, QMLX5_BAD_RES);
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DESTROY_RMP, 0, old, 0, NULL), ==,
                    QMLX5_BAD_RES);
    bench_free(b);
}

static void test_list(void)
{
    Bench *b = bench();
    uint8_t cqe[64];
    QMlx5Qp *plain = qmlx5_qp_self(b->d, QMLX5_RC);
    QMlx5Wqe w;

    append(b, 0, 1, UINT64_MAX, b->dst, 64);
    append(b, 1, 2, UINT64_MAX, b->dst + 64, 64);
    list_op(b, b->cmd, OP_REMOVE, WANT_CQE, 0, 0, 0, 0, 0, 0);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, REMOVED, 0, cqe);
    g_assert_cmphex(cqe[0], ==, 0x80);
    /* Once only. */
    list_op(b, b->cmd, OP_REMOVE, WANT_CQE, 0, 0, 0, 0, 0, 0);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, REMOVED, 0, cqe);
    g_assert_cmphex(cqe[0], ==, 0);
    list_op(b, b->cmd, OP_NOP, WANT_CQE, 0, 0, 0, 0, 0, 0);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, NOOP, 0, cqe);
    /* Without a completion. */
    list_op(b, b->cmd, OP_NOP, 0, 0, 0, 0, 0, 0, 0);
    qmlx5_cq_none(b->cq);

    /* What is no list operation, and entries that there are not. */
    list_op(b, b->cmd, 3, WANT_CQE, 0, 0, 0, 0, 0, 0);
    qmlx5_cq_expect_err(b->cmd->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_qp_revive(b->cmd);
    list_op(b, b->cmd, OP_REMOVE, WANT_CQE, 8, 0, 0, 0, 0, 0);
    qmlx5_cq_expect_err(b->cmd->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_qp_revive(b->cmd);
    list_op(b, b->cmd, OP_APPEND, WANT_CQE, 8, 0, 5, 0, b->dst, 64);
    qmlx5_cq_expect_err(b->cmd->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_qp_revive(b->cmd);
    /* Entry 2 goes before entry 1, which is still there. */
    list_op(b, b->cmd, OP_APPEND, 0, 1, 0, 5, UINT64_MAX, b->dst, 64);
    list_op(b, b->cmd, OP_APPEND, 0, 2, 0, 5, UINT64_MAX, b->dst, 64);
    qmlx5_cq_expect_err(b->cmd->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_qp_revive(b->cmd);
    qmlx5_wqe(&w, QMLX5_OP_TAG_MATCHING, 0, 0);
    w.len = 32;
    qmlx5_post(b->cmd, &w);
    qmlx5_cq_expect_err(b->cmd->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_QP_OP);
    /* A queue pair without such a queue. */
    list_op(b, plain, OP_NOP, 0, 0, 0, 0, 0, 0, 0);
    qmlx5_cq_expect_err(plain->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_QP_OP);
    bench_free(b);
}

static void test_eager(void)
{
    Bench *b = bench();
    uint8_t cqe[64], h[16 + 40] = { EAGER };
    QMlx5Wqe w;

    /* The oldest entry that matches: under its mask. */
    append(b, 0, 0x1100, 0xff00, b->dst, 4096);
    append(b, 1, 0x1234, UINT64_MAX, b->dst + 4096, 4096);
    append(b, 2, 0x1234, UINT64_MAX, b->dst + 8192, 4096);
    message(b, EAGER, 0x1234, 3000, 1);
    expect_cqe(b, QMLX5_CQE_SEND, CONSUMED_MSG, 1, cqe);
    check_header(cqe, EAGER, 0x1234);
    g_assert_cmpint(qmlx5_be32(cqe + 44), ==, 3000);
    qmlx5_expect(b->d, b->dst + 4096, 3000, 1);
    message(b, EAGER, 0x1234, 4096, 2);
    expect_cqe(b, QMLX5_CQE_SEND, CONSUMED_MSG, 2, cqe);
    qmlx5_expect(b->d, b->dst + 8192, 4096, 2);
    message(b, EAGER, 0xabcdef1155ull, 0, 3);
    expect_cqe(b, QMLX5_CQE_SEND, CONSUMED_MSG, 0, cqe);
    g_assert_cmpint(qmlx5_be32(cqe + 44), ==, 0);

    /* From the work request itself, and from two pieces. */
    append(b, 3, 7, UINT64_MAX, b->dst, 64);
    append(b, 4, 8, UINT64_MAX, b->dst + 64, 64);
    stq_be_p(h + 8, 7);
    memset(h + 16, 0x5a, 40);
    qmlx5_wqe(&w, QMLX5_OP_SEND, QMLX5_F_SIGNALED, 0);
    qmlx5_wqe_inline(&w, h, sizeof(h));
    qmlx5_post(b->client, &w);
    qmlx5_cq_expect(b->client->a.scq, QMLX5_CQE_REQ);
    expect_cqe(b, QMLX5_CQE_SEND, CONSUMED_MSG, 3, cqe);
    qmlx5_expect_byte(b->d, b->dst, 40, 0x5a);
    stq_be_p(h + 8, 8);
    qmlx5_write(b->d, b->src, h, sizeof(h));
    qmlx5_wqe(&w, QMLX5_OP_SEND, QMLX5_F_SIGNALED, 0);
    qmlx5_wqe_data(&w, b->d->lkey, b->src, 10);
    qmlx5_wqe_data(&w, b->d->lkey, b->src + 10, 46);
    qmlx5_post(b->client, &w);
    qmlx5_cq_expect(b->client->a.scq, QMLX5_CQE_REQ);
    expect_cqe(b, QMLX5_CQE_SEND, CONSUMED_MSG, 4, cqe);
    qmlx5_expect_byte(b->d, b->dst + 64, 40, 0x5a);

    /* More than the buffer takes. */
    append(b, 5, 9, UINT64_MAX, b->dst, 64);
    qmlx5_fill(b->d, b->dst, 128, 77);
    header(b, EAGER, 9);
    qmlx5_post_send(b->client, QMLX5_OP_SEND, b->d->lkey, b->src, 16 + 65);
    expect_cqe(b, QMLX5_CQE_SEND, CANCELED, 5, cqe);
    qmlx5_cq_expect_err(b->client->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_INVAL);
    qmlx5_expect(b->d, b->dst, 128, 77);
    g_assert_cmphex(qmlx5_qp_state(b->server), ==, QMLX5_ERR);
    bench_free(b);
}

static void test_unexpected(void)
{
    Bench *b = bench();
    uint8_t cqe[64];

    qmlx5_srq_recv(b->xrq, b->d->lkey, b->dst, 4096);
    qmlx5_srq_recv(b->xrq, b->d->lkey, b->dst + 4096, 4096);
    qmlx5_srq_recv(b->xrq, b->d->lkey, b->dst + 8192, 4096);
    append(b, 0, 1, UINT64_MAX, b->dst + 16384, 4096);
    message(b, NO_TAG, 1, 100, 1);
    expect_cqe(b, QMLX5_CQE_SEND, GOT_NO_TAG, 0, cqe);
    g_assert_cmpint(lduw_be_p(cqe + 60), ==, 0);
    g_assert_cmpint(qmlx5_be32(cqe + 44), ==, 116);
    g_assert_cmphex(ldq_be_p(cqe + 8), ==, 0);
    qmlx5_expect(b->d, b->dst + 16, 100, 1);
    message(b, EAGER, 2, 100, 2);
    expect_cqe(b, QMLX5_CQE_SEND, UNEXPECTED, 0, cqe);
    g_assert_cmpint(lduw_be_p(cqe + 60), ==, 1);
    qmlx5_expect(b->d, b->dst + 4096 + 16, 100, 2);

    /* Software has not seen that one: a new tag waits, an old one does not. */
    list_op(b, b->cmd, OP_APPEND, WANT_CQE, 2, 0, 3, UINT64_MAX,
            b->dst + 20480, 4096);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, APPENDED, 1, cqe);
    g_assert_cmpint(lduw_be_p(cqe + 4), ==, 1);
    message(b, EAGER, 1, 50, 3);
    expect_cqe(b, QMLX5_CQE_SEND, CONSUMED_MSG, 0, cqe);
    message(b, EAGER, 3, 50, 4);
    expect_cqe(b, QMLX5_CQE_SEND, UNEXPECTED, 0, cqe);
    g_assert_cmpint(lduw_be_p(cqe + 60), ==, 2);
    /* One of two. */
    list_op(b, b->cmd, OP_NOP, WANT_CQE | SW_CNT, 0, 1, 0, 0, 0, 0);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, NOOP, 0, cqe);
    g_assert_cmpint(lduw_be_p(cqe + 4), ==, 2);
    list_op(b, b->cmd, OP_NOP, WANT_CQE | SW_CNT, 0, 2, 0, 0, 0, 0);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, NOOP, 0, cqe);
    message(b, EAGER, 3, 50, 5);
    expect_cqe(b, QMLX5_CQE_SEND, CONSUMED_MSG, 1, cqe);
    qmlx5_expect(b->d, b->dst + 20480, 50, 5);

    /* Too short for a header. */
    qmlx5_srq_recv(b->xrq, b->d->lkey, b->dst, 4096);
    qmlx5_post_send(b->client, QMLX5_OP_SEND, b->d->lkey, b->src, 15);
    expect_cqe(b, QMLX5_CQE_SEND, GOT_NO_TAG, 0, cqe);
    bench_free(b);
}

static void rndv_message(Bench *b, uint64_t tag, uint64_t va, uint32_t rkey,
                         uint32_t len)
{
    uint8_t rvh[16];

    stq_be_p(rvh, va);
    stl_be_p(rvh + 8, rkey);
    stl_be_p(rvh + 12, len);
    header(b, RNDV, tag);
    qmlx5_write(b->d, b->src + 16, rvh, sizeof(rvh));
    qmlx5_post_send(b->client, QMLX5_OP_SEND, b->d->lkey, b->src, 64);
    qmlx5_cq_expect(b->client->a.scq, QMLX5_CQE_REQ);
}

static void test_rendezvous(void)
{
    Bench *b = bench();
    uint32_t rkey = qmlx5_mkey_pa(b->d, b->d->pd, QMLX5_RR);
    uint64_t data = qmlx5_alloc(b->d->host, MEM), fin = b->src + 4096;
    uint8_t cqe[64], h[16];

    append(b, 0, 5, UINT64_MAX, b->dst, 40000);
    append(b, 1, 6, UINT64_MAX, b->dst, 0);
    append(b, 2, 7, UINT64_MAX, b->dst, 100);
    append(b, 3, 8, UINT64_MAX, b->dst, 4096);
    qmlx5_fill(b->d, data, 40000, 11);
    qmlx5_recv(b->client, b->d->lkey, fin, 64);
    rndv_message(b, 5, data, rkey, 40000);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, CONSUMED, 0, cqe);
    check_header(cqe, RNDV, 5);
    expect_cqe(b, QMLX5_CQE_SEND, EXPECTED, 0, cqe);
    g_assert_cmpint(qmlx5_be32(cqe + 44), ==, 40000);
    qmlx5_expect(b->d, b->dst, 40000, 11);
    /* The peer is told, by a message with the same tag. */
    g_assert_cmpint(qmlx5_cq_expect(b->client->a.rcq, QMLX5_CQE_SEND), ==, 16);
    qmlx5_read(b->d, fin, h, sizeof(h));
    check_header(h, FIN, 5);

    /* Nothing to read. */
    qmlx5_recv(b->client, b->d->lkey, fin, 64);
    rndv_message(b, 6, data, rkey, 0);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, CONSUMED, 1, cqe);
    expect_cqe(b, QMLX5_CQE_SEND, EXPECTED, 1, cqe);
    qmlx5_cq_expect(b->client->a.rcq, QMLX5_CQE_SEND);

    /* More than the entry has room for. */
    rndv_message(b, 7, data, rkey, 101);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, CONSUMED, 2, cqe);
    expect_cqe(b, QMLX5_CQE_SEND, CANCELED, 2, cqe);
    g_assert_cmphex(qmlx5_qp_state(b->server), ==, QMLX5_ERR);
    qmlx5_qp_revive(b->server);
    qmlx5_qp_revive(b->client);

    /* A key that the peer has not. */
    rndv_message(b, 8, data, rkey ^ 0x10, 100);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, CONSUMED, 3, cqe);
    expect_cqe(b, QMLX5_CQE_SEND, CANCELED, 3, cqe);
    g_assert_cmphex(qmlx5_qp_state(b->server), ==, QMLX5_ERR);
    bench_free(b);
}

/* Without the offload, software does it: the header's rest is delivered. */
static void test_software_rendezvous(void)
{
    Bench *b = bench_with(0);
    uint8_t cqe[64], rvh[16];

    append(b, 0, 5, UINT64_MAX, b->dst, 4096);
    rndv_message(b, 5, 0x1122334455667788ull, 0x99, 40000);
    expect_cqe(b, QMLX5_CQE_SEND, CONSUMED_MSG_SW, 0, cqe);
    check_header(cqe, RNDV, 5);
    g_assert_cmpint(qmlx5_be32(cqe + 44), ==, 48);
    qmlx5_read(b->d, b->dst, rvh, sizeof(rvh));
    g_assert_cmphex(ldq_be_p(rvh), ==, 0x1122334455667788ull);
    qmlx5_cq_none(b->cq);
    bench_free(b);
}

/* The device's read waits for the buffer's first page. */
static void rndv_wait(Bench *b, uint64_t va, uint64_t data, uint32_t rkey,
                      QMlx5Fault *f)
{
    uint8_t cqe[64];

    b->key = qmlx5_mkey_odp(b->d, QMLX5_ALL, va, 16);
    qmlx5_pf_enable(b->d, 6);
    append(b, 0, 5, UINT64_MAX, va, 40000);
    qmlx5_fill(b->d, data, 40000, 11);
    rndv_message(b, 5, data, rkey, 40000);
    expect_cqe(b, QMLX5_CQE_NO_PACKET, CONSUMED, 0, cqe);
    qmlx5_pf_wait(b->d, f);
    g_assert_cmphex(f->va & ~0xfffull, ==, va);
}

/* The machine moves while the device reads for a rendezvous, at each page. */
static void test_rendezvous_moved(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    const uint64_t va = 0x7f0000000000ull;
    uint32_t rkey = qmlx5_mkey_pa(d, d->pd, QMLX5_RR), n;
    uint64_t data = qmlx5_alloc(d->host, MEM), fin = b->src + 4096;
    uint64_t mtt[16] = { };
    uint8_t cqe[64], h[16];
    QMlx5Fault f;

    qmlx5_recv(b->client, d->lkey, fin, 64);
    rndv_wait(b, va, data, rkey, &f);
    for (n = 0; n < 10; n++) {
        if (n) {
            qmlx5_pf_wait(d, &f);
        }
        g_assert_cmphex(f.va & ~0xfffull, ==, va + n * QMLX5_PAGE);
        if (n % 3 == 0) {
            qmlx5_move(d);
        }
        qmlx5_cq_none(b->cq);
        mtt[n] = (b->dst + n * QMLX5_PAGE) | QMLX5_MTT_RW;
        qmlx5_mtt_update(d, b->key, 0, mtt, 16);
        g_assert_cmphex(qmlx5_pf_resume(d, &f, false), ==, 0);
    }
    expect_cqe(b, QMLX5_CQE_SEND, EXPECTED, 0, cqe);
    g_assert_cmpint(qmlx5_be32(cqe + 44), ==, 40000);
    qmlx5_expect(d, b->dst, 40000, 11);
    g_assert_cmpint(qmlx5_cq_expect(b->client->a.rcq, QMLX5_CQE_SEND), ==, 16);
    qmlx5_read(d, fin, h, sizeof(h));
    check_header(h, FIN, 5);

    /* The list came along. */
    b->key = d->lkey;
    append(b, 1, 6, UINT64_MAX, b->dst, 4096);
    message(b, EAGER, 6, 100, 3);
    expect_cqe(b, QMLX5_CQE_SEND, CONSUMED_MSG, 1, cqe);
    qmlx5_expect(d, b->dst, 100, 3);
    bench_free(b);
}

/* Where @n bytes that begin with @what are in @s. */
static size_t find(const uint8_t *s, size_t len, const uint8_t *what, size_t n)
{
    for (size_t i = 0; i + n <= len; i++) {
        if (!memcmp(s + i, what, n)) {
            return i;
        }
    }
    g_assert_not_reached();
}

/*
 * A stream in which the device reads for a rendezvous that is not there is
 * refused; the same one as it was is not.
 */
static void test_malformed_stream(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    const uint64_t va = 0x7f0000000000ull;
    uint32_t rkey = qmlx5_mkey_pa(d, d->pd, QMLX5_RR);
    uint64_t data = qmlx5_alloc(d->host, MEM);
    g_autofree char *dir = g_dir_make_tmp("mlx5-XXXXXX", NULL);
    g_autofree char *path = g_strdup_printf("%s/s", dir);
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    g_autofree char *s = NULL;
    uint8_t elem[22] = { };
    size_t len, at;
    QMlx5Fault f;

    rndv_wait(b, va, data, rkey, &f);
    qtest_qmp_assert_success(d->qts, "{ 'execute': 'migrate', "
                             "'arguments': { 'uri': %s } }", uri);
    g_assert_true(qmlx5_migrated(d->qts));
    g_assert_true(g_file_get_contents(path, &s, &len, NULL));
    /* Queue, entry, what is read; before it, that an element follows. */
    stl_be_p(elem, b->xrq->srqn);
    stl_be_p(elem + 6, rkey);
    stl_be_p(elem + 10, 40000);
    stq_be_p(elem + 14, data);
    at = find((uint8_t *)s, len, elem, sizeof(elem));
    g_assert_cmphex(s[at - 1], ==, 1);

    for (int i = 0; i < 2; i++) {
        /* Its header of 32 bytes and a flag end the element. */
        const size_t n = sizeof(elem) + 32 + 1 + 1;
        QMlx5Host *to = qmlx5_host(QMLX5_DEVICE " -incoming defer");

        if (i) {
            memmove(s + at - 1, s + at - 1 + n, len - at + 1 - n);
            len -= n;
            g_assert_true(g_file_set_contents(path, s, len, NULL));
        }
        qtest_qmp_assert_success(to->qts, "{ 'execute': 'migrate-incoming', "
                                 "'arguments': { 'uri': %s, "
                                 "'exit-on-error': false } }", uri);
        g_assert_true(qmlx5_migrated(to->qts) == !i);
        qmlx5_host_free(to);
    }
    unlink(path);
    rmdir(dir);
    bench_free(b);
}

/* Header and buffer of pages that are absent at first. */
static void test_page_faults(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    const uint64_t va = 0x7f0000000000ull;
    uint32_t odp = qmlx5_mkey_odp(d, QMLX5_ALL, va, 8);
    uint64_t mtt[8] = { };
    QMlx5Fault f;
    uint8_t cqe[64];

    qmlx5_pf_enable(d, 6);
    append(b, 0, 5, UINT64_MAX, b->dst, 4096);
    header(b, EAGER, 5);
    qmlx5_fill(d, b->src + 16, 1000, 3);
    qmlx5_post_send(b->client, QMLX5_OP_SEND, odp, va + 4090 - 8, 1016);
    for (int i = 0; i < 2; i++) {
        qmlx5_pf_wait(d, &f);
        g_assert_cmphex(f.va & ~0xfffull, ==, va + i * 4096);
        qmlx5_cq_none(b->cq);
        /* The message, where the pages will show it. */
        if (!i) {
            uint8_t m[1016];

            qmlx5_read(d, b->src, m, sizeof(m));
            qmlx5_write(d, b->src + 8192 + 4082, m, sizeof(m));
        }
        mtt[i] = (b->src + 8192 + i * 4096) | QMLX5_MTT_RW;
        qmlx5_mtt_update(d, odp, 0, mtt, 8);
        g_assert_cmphex(qmlx5_pf_resume(d, &f, false), ==, 0);
    }
    expect_cqe(b, QMLX5_CQE_SEND, CONSUMED_MSG, 0, cqe);
    qmlx5_expect(d, b->dst, 1000, 3);
    bench_free(b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/tm/commands", test_commands);
    qtest_add_func("/mlx5/tm/list", test_list);
    qtest_add_func("/mlx5/tm/eager", test_eager);
    qtest_add_func("/mlx5/tm/unexpected", test_unexpected);
    qtest_add_func("/mlx5/tm/rendezvous", test_rendezvous);
    qtest_add_func("/mlx5/tm/software-rendezvous", test_software_rendezvous);
    qtest_add_func("/mlx5/tm/page-faults", test_page_faults);
    qtest_add_func("/mlx5/tm/rendezvous-moved", test_rendezvous_moved);
    qtest_add_func("/mlx5/tm/malformed-stream", test_malformed_stream);
    return g_test_run();
}
