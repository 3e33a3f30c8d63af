/*
 * QTest: mlx5 data path: every operation, every byte
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

#define MEM (256 * 1024)

static const uint32_t lengths[] = {
    0, 1, 2, 3, 7, 8, 15, 16, 63, 64, 65, 255, 256, 1000, 4095, 4096, 4097,
    8191, 8192, 8193, 65535, 65536, 65537, 200000,
};

typedef struct Pair {
    QMlx5Host *host;
    QMlx5 *d[2];
    QMlx5Qp *qp[2];
    uint64_t buf[2];
    uint32_t all[2];              /* keys of all memory, all rights */
} Pair;

/* Two queue pairs connected to each other, on one HCA or on two. */
static Pair *pair(uint8_t st, unsigned hcas)
{
    Pair *p = g_new0(Pair, 1);

    p->host = qmlx5_start_n(p->d, hcas, "");
    if (hcas == 1) {
        p->d[1] = p->d[0];
    }
    for (int i = 0; i < 2; i++) {
        QMlx5QpAttr a = qmlx5_qp_attr(p->d[i], st);

        p->qp[i] = qmlx5_qp_new(p->d[i], &a);
        p->buf[i] = qmlx5_alloc(p->host, MEM + 8192);
        p->all[i] = qmlx5_mkey_pa(p->d[i], p->d[i]->pd, QMLX5_ALL);
    }
    qmlx5_qp_connect(p->qp[0], p->qp[1]);
    qmlx5_qp_rts(p->qp[0]);
    qmlx5_qp_rts(p->qp[1]);
    return p;
}

static void pair_free(Pair *p)
{
    if (p->d[1] != p->d[0]) {
        qmlx5_free(p->d[1]);
    }
    qmlx5_free(p->d[0]);
    qmlx5_host_free(p->host);
    g_free(p);
}

/* A byte before and after what is to be written must stay. */
static void guard(QMlx5 *d, uint64_t addr, uint32_t len)
{
    uint8_t g = 0xa5;

    qmlx5_write(d, addr - 1, &g, 1);
    qmlx5_write(d, addr + len, &g, 1);
}

static void guarded(QMlx5 *d, uint64_t addr, uint32_t len)
{
    qmlx5_expect_byte(d, addr - 1, 1, 0xa5);
    qmlx5_expect_byte(d, addr + len, 1, 0xa5);
}

static void rdma_lengths(uint8_t st, unsigned hcas)
{
    Pair *p = pair(st, hcas);
    QMlx5 *d = p->d[0];

    for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
        uint64_t to = p->buf[1] + 1 + i * 61, from = p->buf[0] + 7 * i;
        uint32_t n = lengths[i];

        qmlx5_fill(d, from, n, i + 1);
        guard(d, to, n);
        qmlx5_post_rdma(p->qp[0], QMLX5_OP_WRITE, p->all[0], from, n,
                        p->all[1], to);
        qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
        qmlx5_expect(d, to, n, i + 1);
        guarded(d, to, n);
        if (st != QMLX5_RC) {
            continue;
        }
        qmlx5_fill(d, to, n, i + 1000);
        guard(d, from + 1, n);
        qmlx5_post_rdma(p->qp[0], QMLX5_OP_READ, p->all[0], from + 1, n,
                        p->all[1], to);
        g_assert_cmpint(qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ), ==,
                        n);
        qmlx5_expect(d, from + 1, n, i + 1000);
        guarded(d, from + 1, n);
    }
    qmlx5_cq_none(p->qp[1]->a.rcq);
    qmlx5_cq_none(p->qp[1]->a.scq);
    pair_free(p);
}

static void send_lengths(uint8_t st, unsigned hcas)
{
    Pair *p = pair(st, hcas);
    QMlx5 *d = p->d[0];
    uint32_t skip = st == QMLX5_UD ? 40 : 0;

    for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
        uint64_t to = p->buf[1] + 1 + i * 61, from = p->buf[0] + 7 * i;
        uint32_t n = lengths[i], got;
        uint8_t cqe[64];

        if (st == QMLX5_UD && n > 4096) {
            break;
        }
        qmlx5_fill(d, from, n, i + 1);
        guard(d, to, n + skip);
        qmlx5_recv(p->qp[1], p->d[1]->lkey, to, n + skip + (n == 0));
        qmlx5_post_send(p->qp[0], QMLX5_OP_SEND_IMM, p->all[0], from, n);
        qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
        qmlx5_cq_wait(p->qp[1]->a.rcq, cqe);
        g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_SEND_IMM);
        got = qmlx5_be32(cqe + 44);
        g_assert_cmpint(got, ==, n + skip);
        g_assert_cmphex(qmlx5_be32(cqe + 36), ==, 0x1234);
        g_assert_cmphex(lduw_be_p(cqe + 60), ==, i);
        if (st == QMLX5_UD) {
            g_assert_cmphex(qmlx5_be32(cqe + 24) & 0xffffff, ==, p->qp[0]->qpn);
            g_assert_cmphex(lduw_be_p(cqe + 22), ==, p->d[0]->lid);
        }
        qmlx5_expect(d, to + skip, n, i + 1);
        guarded(d, to, n + skip);
    }
    pair_free(p);
}

#define CASE(name, run, service, hcas) \
static void test_##name(void) \
{ \
    run(service, hcas); \
}

CASE(rdma_rc, rdma_lengths, QMLX5_RC, 1)
CASE(rdma_rc_two, rdma_lengths, QMLX5_RC, 2)
CASE(rdma_uc, rdma_lengths, QMLX5_UC, 1)
CASE(send_rc, send_lengths, QMLX5_RC, 1)
CASE(send_rc_two, send_lengths, QMLX5_RC, 2)
CASE(send_uc, send_lengths, QMLX5_UC, 1)
CASE(send_ud, send_lengths, QMLX5_UD, 1)
CASE(send_ud_two, send_lengths, QMLX5_UD, 2)

static void test_write_imm(void)
{
    Pair *p = pair(QMLX5_RC, 1);
    QMlx5 *d = p->d[0];
    uint8_t cqe[64];

    for (uint32_t n = 0; n < 9000; n = n * 3 + 1) {
        qmlx5_fill(d, p->buf[0], n, n);
        qmlx5_recv(p->qp[1], d->lkey, p->buf[1] + 100000, 1);
        qmlx5_post_rdma(p->qp[0], QMLX5_OP_WRITE_IMM, p->all[0], p->buf[0], n,
                        p->all[1], p->buf[1]);
        qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
        qmlx5_cq_wait(p->qp[1]->a.rcq, cqe);
        g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_WR_IMM);
        g_assert_cmphex(qmlx5_be32(cqe + 36), ==, 0x1234);
        g_assert_cmpint(qmlx5_be32(cqe + 44), ==, n);
        qmlx5_expect(d, p->buf[1], n, n);
        /* The receive WQE's own memory is not touched. */
        qmlx5_expect_byte(d, p->buf[1] + 100000, 1, 0);
    }
    pair_free(p);
}

static void test_inline(void)
{
    Pair *p = pair(QMLX5_RC, 1);
    QMlx5 *d = p->d[0];

    for (uint32_t n = 1; n <= 900; n = n * 2 + 3) {
        g_autofree uint8_t *data = qmlx5_pattern(n, n);
        QMlx5Wqe w;

        qmlx5_wqe(&w, QMLX5_OP_WRITE, QMLX5_F_SIGNALED, 0);
        qmlx5_wqe_raddr(&w, p->buf[1] + n, p->all[1]);
        qmlx5_wqe_inline(&w, data, n);
        qmlx5_post(p->qp[0], &w);
        qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
        qmlx5_expect(d, p->buf[1] + n, n, n);

        qmlx5_recv(p->qp[1], d->lkey, p->buf[1] + 4096, 1024);
        qmlx5_wqe(&w, QMLX5_OP_SEND, QMLX5_F_SIGNALED, 0);
        qmlx5_wqe_inline(&w, data, n);
        qmlx5_post(p->qp[0], &w);
        qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
        g_assert_cmpint(qmlx5_cq_expect(p->qp[1]->a.rcq, QMLX5_CQE_SEND), ==,
                        n);
        qmlx5_expect(d, p->buf[1] + 4096, n, n);
    }
    pair_free(p);
}

/* Lists on both sides, with edges that do not meet. */
static void test_scatter_gather(void)
{
    Pair *p = pair(QMLX5_RC, 1);
    QMlx5 *d = p->d[0];
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Sge to[7] = {
        { p->all[1], p->buf[1] + 100, 1 }, { p->all[1], p->buf[1] + 4095, 2 },
        { p->all[1], p->buf[1] + 8000, 500 },
        { p->all[1], p->buf[1] + 20000, 4096 },
        { p->all[1], p->buf[1] + 30000, 3 },
        { p->all[1], p->buf[1] + 31000, 398 },
        { p->all[1], p->buf[1] + 40000, 5000 },
    };
    static const uint32_t pieces[] = { 3, 1000, 1, 2000, 1996, 999, 1 };
    uint32_t total = 0, done = 0;
    g_autofree uint8_t *want = NULL;
    g_autofree uint8_t *got = g_malloc(8192);
    QMlx5Wqe w;

    a.log_rq_stride = 3;              /* 128 bytes: eight entries */
    for (int i = 0; i < 2; i++) {
        p->qp[i] = qmlx5_qp_new(d, &a);
    }
    qmlx5_qp_connect(p->qp[0], p->qp[1]);
    qmlx5_qp_rts(p->qp[0]);
    qmlx5_qp_rts(p->qp[1]);

    for (unsigned i = 0; i < ARRAY_SIZE(pieces); i++) {
        total += pieces[i];
    }
    want = qmlx5_pattern(total, 42);
    qmlx5_recv_sgl(p->qp[1], to, 7);
    qmlx5_wqe(&w, QMLX5_OP_SEND, QMLX5_F_SIGNALED, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(pieces); i++) {
        uint64_t at = p->buf[0] + i * 8000;

        qmlx5_write(d, at, want + done, pieces[i]);
        qmlx5_wqe_data(&w, p->all[0], at, pieces[i]);
        done += pieces[i];
    }
    qmlx5_post(p->qp[0], &w);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    g_assert_cmpint(qmlx5_cq_expect(p->qp[1]->a.rcq, QMLX5_CQE_SEND), ==,
                    total);
    done = 0;
    for (unsigned i = 0; i < 7 && done < total; i++) {
        uint32_t n = MIN(to[i].len, total - done);

        qmlx5_read(d, to[i].va, got, n + 1);
        g_assert_cmpmem(got, n, want + done, n);
        if (n == to[i].len) {
            g_assert_cmphex(got[n], ==, 0);
        }
        done += n;
    }
    pair_free(p);
}

/* WQEs of one to eight blocks, so that many lie over the queue's end. */
static void test_sq_wrap(void)
{
    Pair *p = pair(QMLX5_RC, 1);
    QMlx5 *d = p->d[0];

    for (int i = 0; i < 150; i++) {
        unsigned sges = 1 + i * 7 % 27;
        QMlx5Wqe w;

        qmlx5_fill(d, p->buf[0], sges * 16, i);
        qmlx5_wqe(&w, QMLX5_OP_WRITE, QMLX5_F_SIGNALED, 0);
        qmlx5_wqe_raddr(&w, p->buf[1], p->all[1]);
        for (unsigned s = 0; s < sges; s++) {
            qmlx5_wqe_data(&w, p->all[0], p->buf[0] + s * 16, 16);
        }
        qmlx5_post(p->qp[0], &w);
        qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
        qmlx5_expect(d, p->buf[1], sges * 16, i);
    }
    pair_free(p);
}

static void test_rq_wrap(void)
{
    Pair *p = pair(QMLX5_RC, 1);
    QMlx5 *d = p->d[0];
    uint32_t posted = 0, sent = 0;
    uint8_t cqe[64];

    while (sent < 100) {
        while (posted - sent < 16 && posted < 100) {
            qmlx5_recv(p->qp[1], d->lkey, p->buf[1] + posted * 64, 64);
            posted++;
        }
        for (int i = 0; i < 11 && sent < posted; i++, sent++) {
            qmlx5_fill(d, p->buf[0], 64, sent);
            qmlx5_post_send(p->qp[0], QMLX5_OP_SEND, p->all[0], p->buf[0], 64);
            qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
            qmlx5_cq_wait(p->qp[1]->a.rcq, cqe);
            g_assert_cmpint(lduw_be_p(cqe + 60), ==, sent);
        }
    }
    for (uint32_t i = 0; i < 100; i++) {
        qmlx5_expect(d, p->buf[1] + i * 64, 64, i);
    }
    pair_free(p);
}

static void test_counter_wrap(void)
{
    Pair *p = pair(QMLX5_RC, 1);
    QMlx5Qp *qp = p->qp[0];
    uint8_t cqe[64];
    QMlx5Wqe w;

    /* A ring of NOPs, posted whole until the 16-bit counters go round. */
    for (int i = 0; i < 64; i++) {
        qmlx5_wqe(&w, QMLX5_OP_NOP, i == 63 ? QMLX5_F_SIGNALED : 0, 0);
        qmlx5_queue(qp, &w);
    }
    for (int i = 0; i < 1100; i++) {
        qmlx5_ring(qp);
        qmlx5_cq_wait(qp->a.scq, cqe);
        g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
        g_assert_cmphex(lduw_be_p(cqe + 60), ==, (uint16_t)(qp->sq_pi - 1));
        qp->sq_pi += 64;
    }
    pair_free(p);
}

static void test_atomics(void)
{
    Pair *p = pair(QMLX5_RC, 1);
    QMlx5 *d = p->d[0];
    uint64_t word = p->buf[1] + 64, result = p->buf[0] + 8;
    uint64_t value = 0x1122334455667788ull;
    QMlx5Wqe w;
    uint8_t *seg;

    qmlx5_put64_le(d, word, value);
    qmlx5_put64_le(d, word - 8, 0x5555555555555555ull);
    qmlx5_put64_le(d, word + 8, 0xaaaaaaaaaaaaaaaaull);
    for (uint64_t add = 1; add < 1ull << 60; add *= 1000003) {
        qmlx5_post_atomic(p->qp[0], QMLX5_OP_FA, p->all[0], result, p->all[1],
                          word, add, 0);
        g_assert_cmpint(qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ), ==,
                        8);
        g_assert_cmphex(qmlx5_get64_le(d, result), ==, value);
        value += add;
        g_assert_cmphex(qmlx5_get64_le(d, word), ==, value);
    }
    /* Carry out of the top. */
    qmlx5_post_atomic(p->qp[0], QMLX5_OP_FA, p->all[0], result, p->all[1],
                      word, ~0ull, 0);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    value--;
    g_assert_cmphex(qmlx5_get64_le(d, word), ==, value);
    /* Compare: no, then yes. */
    qmlx5_post_atomic(p->qp[0], QMLX5_OP_CS, p->all[0], result, p->all[1],
                      word, 77, value + 1);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    g_assert_cmphex(qmlx5_get64_le(d, result), ==, value);
    g_assert_cmphex(qmlx5_get64_le(d, word), ==, value);
    qmlx5_post_atomic(p->qp[0], QMLX5_OP_CS, p->all[0], result, p->all[1],
                      word, 77, value);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    g_assert_cmphex(qmlx5_get64_le(d, result), ==, value);
    g_assert_cmphex(qmlx5_get64_le(d, word), ==, 77);

    /* Result to a list of two pieces. */
    qmlx5_wqe(&w, QMLX5_OP_FA, QMLX5_F_SIGNALED, 0);
    qmlx5_wqe_raddr(&w, word, p->all[1]);
    qmlx5_wqe_atomic(&w, 1, 0);
    qmlx5_wqe_data(&w, p->all[0], p->buf[0] + 100, 3);
    qmlx5_wqe_data(&w, p->all[0], p->buf[0] + 203, 5);
    qmlx5_post(p->qp[0], &w);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect_byte(d, p->buf[0] + 100, 1, 77);
    qmlx5_expect_byte(d, p->buf[0] + 101, 2, 0);
    g_assert_cmphex(qmlx5_get64_le(d, word), ==, 78);

    /* Masked: swap bits 15:8 if bits 7:0 are 78. */
    qmlx5_wqe(&w, QMLX5_OP_MASKED_CS, QMLX5_F_SIGNALED, 0);
    qmlx5_wqe_raddr(&w, word, p->all[1]);
    qmlx5_wqe_atomic(&w, 0xffffffffffffffffull, 78);
    seg = w.b + w.len;
    w.len += 16;
    stq_be_p(seg, 0xff00);
    stq_be_p(seg + 8, 0xff);
    qmlx5_wqe_data(&w, p->all[0], result, 8);
    qmlx5_post(p->qp[0], &w);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    g_assert_cmphex(qmlx5_get64_le(d, word), ==, 0xff4e);

    g_assert_cmphex(qmlx5_get64_le(d, word - 8), ==, 0x5555555555555555ull);
    g_assert_cmphex(qmlx5_get64_le(d, word + 8), ==, 0xaaaaaaaaaaaaaaaaull);
    pair_free(p);
}

static void test_atomic_lengths(void)
{
    Pair *p = pair(QMLX5_RC, 1);
    QMlx5Wqe w;

    for (uint32_t n = 0; n < 17; n += 4) {
        uint8_t cqe[64];

        if (n == 8) {
            continue;
        }
        qmlx5_wqe(&w, QMLX5_OP_FA, QMLX5_F_SIGNALED, 0);
        qmlx5_wqe_raddr(&w, p->buf[1], p->all[1]);
        qmlx5_wqe_atomic(&w, 1, 0);
        qmlx5_wqe_data(&w, p->all[0], p->buf[0], n);
        qmlx5_post(p->qp[0], &w);
        qmlx5_cq_wait(p->qp[0]->a.scq, cqe);
        g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ_ERR);
        g_assert_cmphex(qmlx5_cqe_syndrome(cqe), ==, QMLX5_SYN_LOCAL_LENGTH);
        qmlx5_qp_revive(p->qp[0]);
        qmlx5_qp_revive(p->qp[1]);
        g_assert_cmphex(qmlx5_get64_le(p->d[0], p->buf[1]), ==, 0);
    }
    pair_free(p);
}

static void test_srq(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Srq *srq = qmlx5_srq_new(d, d->pd, 4, 0);
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *qp[3];
    uint64_t buf = qmlx5_alloc(d->host, MEM);
    uint8_t cqe[64];

    a.rq_type = 1;
    a.srq = srq;
    a.rcq = qmlx5_cq_new(d, 6);
    for (int i = 0; i < 3; i++) {
        qp[i] = qmlx5_qp_new(d, &a);
        qmlx5_qp_rts(qp[i]);
    }
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 9; i++) {
            qmlx5_srq_recv(srq, d->lkey, buf + i * 128, 128);
        }
        for (int i = 0; i < 9; i++) {
            QMlx5Qp *from = qp[i % 3];

            qmlx5_fill(d, buf + 65536, 100, round * 9 + i);
            qmlx5_post_send(from, QMLX5_OP_SEND, d->lkey, buf + 65536, 100);
            qmlx5_cq_expect(from->a.scq, QMLX5_CQE_REQ);
            qmlx5_cq_wait(a.rcq, cqe);
            g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_SEND);
            g_assert_cmphex(qmlx5_be32(cqe + 56) & 0xffffff, ==, from->qpn);
            g_assert_cmpint(lduw_be_p(cqe + 60), ==, (round * 9 + i) & 15);
            qmlx5_expect(d, buf + i * 128, 100, round * 9 + i);
        }
    }
    qmlx5_stop(d);
}

static void test_srq_limit(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Srq *srq = qmlx5_srq_new(d, d->pd, 4, 3);
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    uint64_t buf = qmlx5_alloc(d->host, 4096);
    uint8_t eqe[64];
    QMlx5Qp *qp;

    a.rq_type = 1;
    a.srq = srq;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    for (int i = 0; i < 5; i++) {
        qmlx5_srq_recv(srq, d->lkey, buf, 64);
    }
    for (int i = 0; i < 3; i++) {
        while (qmlx5_eq_poll(d->async_eq, eqe)) {
            g_assert_cmphex(eqe[1], !=, QMLX5_EV_SRQ_LIMIT);
        }
        qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf + 64, 8);
        qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    }
    qmlx5_eq_wait(d->async_eq, QMLX5_EV_SRQ_LIMIT, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 56) & 0xffffff, ==, srq->srqn);
    /* Once. */
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf + 64, 8);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_eq_none(d->async_eq);
    qmlx5_stop(d);
}

static void test_srq_bad_link(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Srq *srq = qmlx5_srq_new(d, d->pd, 4, 0);
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    uint8_t eqe[64], next[2] = { 0xff, 0xff };
    QMlx5Qp *qp;

    a.rq_type = 1;
    a.srq = srq;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    qmlx5_srq_recv(srq, d->lkey, d->vectors, 64);
    qmlx5_write(d, srq->buf + 2, next, 2);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, d->vectors, 8);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_OP);
    qmlx5_eq_wait(d->async_eq, QMLX5_EV_SRQ_CATAS, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 56) & 0xffffff, ==, srq->srqn);
    qmlx5_stop(d);
}

static void test_ud_qkey(void)
{
    Pair *p = pair(QMLX5_UD, 1);
    QMlx5 *d = p->d[0];

    qmlx5_recv(p->qp[1], d->lkey, p->buf[1], 100);
    p->qp[0]->a.qkey = 0x33334444;        /* that of the WQE */
    qmlx5_post_send(p->qp[0], QMLX5_OP_SEND, p->all[0], p->buf[0], 8);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    qmlx5_cq_none(p->qp[1]->a.rcq);       /* dropped */
    p->qp[0]->a.qkey = 0x11112222;
    qmlx5_post_send(p->qp[0], QMLX5_OP_SEND, p->all[0], p->buf[0], 8);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    g_assert_cmpint(qmlx5_cq_expect(p->qp[1]->a.rcq, QMLX5_CQE_SEND), ==, 48);
    pair_free(p);
}

static void test_ud_nobody(void)
{
    Pair *p = pair(QMLX5_UD, 1);

    /* No receive WQE; no QP; no port: the sender does not learn of it. */
    qmlx5_post_send(p->qp[0], QMLX5_OP_SEND, p->all[0], p->buf[0], 8);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    p->qp[0]->remote_qpn = 0x3ffff;
    qmlx5_post_send(p->qp[0], QMLX5_OP_SEND, p->all[0], p->buf[0], 8);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    p->qp[0]->dlid = 0xbbbb;
    qmlx5_post_send(p->qp[0], QMLX5_OP_SEND, p->all[0], p->buf[0], 8);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    pair_free(p);
}

/* Large messages of several queue pairs, moved in turns. */
static void test_large(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t len = 3 << 20;
    uint64_t src = qmlx5_alloc(d->host, len), dst[4];
    uint32_t all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    QMlx5Qp *qp[4];

    qmlx5_fill(d, src, len, 1);
    for (int i = 0; i < 4; i++) {
        qp[i] = qmlx5_qp_self(d, QMLX5_RC);
        dst[i] = qmlx5_alloc(d->host, len);
    }
    for (int i = 0; i < 4; i++) {
        qmlx5_post_rdma(qp[i], i & 1 ? QMLX5_OP_READ : QMLX5_OP_WRITE, all,
                        i & 1 ? dst[i] : src, len, all, i & 1 ? src : dst[i]);
    }
    for (int i = 0; i < 4; i++) {
        qmlx5_cq_expect(qp[i]->a.scq, QMLX5_CQE_REQ);
        qmlx5_expect(d, dst[i], len, 1);
    }
    qmlx5_stop(d);
}

static void test_overlap(void)
{
    Pair *p = pair(QMLX5_RC, 1);
    QMlx5 *d = p->d[0];

    /* Source and destination overlap: no crash, the ends are right. */
    qmlx5_fill(d, p->buf[0], 8192, 5);
    qmlx5_post_rdma(p->qp[0], QMLX5_OP_WRITE, p->all[0], p->buf[0], 8192,
                    p->all[1], p->buf[0]);
    qmlx5_cq_expect(p->qp[0]->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(d, p->buf[0], 8192, 5);
    pair_free(p);
}

/* To memory that is no RAM: the HCA's own BAR, and nowhere. */
static void test_not_ram(void)
{
    Pair *p = pair(QMLX5_RC, 1);
    QMlx5 *d = p->d[0];
    uint8_t cqe[64];

    qmlx5_post_rdma(p->qp[0], QMLX5_OP_WRITE, p->all[0], p->buf[0], 4096,
                    p->all[1], d->bar + d->uar * QMLX5_PAGE);
    qmlx5_cq_wait(p->qp[0]->a.scq, cqe);
    if (qmlx5_cqe_op(cqe) != QMLX5_CQE_REQ) {
        qmlx5_qp_revive(p->qp[0]);
        qmlx5_qp_revive(p->qp[1]);
    }
    qmlx5_post_rdma(p->qp[0], QMLX5_OP_READ, p->all[0], p->buf[0], 64,
                    p->all[1], d->bar);
    qmlx5_cq_wait(p->qp[0]->a.scq, cqe);
    pair_free(p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/data/rdma/rc", test_rdma_rc);
    qtest_add_func("/mlx5/data/rdma/rc-two-hcas", test_rdma_rc_two);
    qtest_add_func("/mlx5/data/rdma/uc", test_rdma_uc);
    qtest_add_func("/mlx5/data/send/rc", test_send_rc);
    qtest_add_func("/mlx5/data/send/rc-two-hcas", test_send_rc_two);
    qtest_add_func("/mlx5/data/send/uc", test_send_uc);
    qtest_add_func("/mlx5/data/send/ud", test_send_ud);
    qtest_add_func("/mlx5/data/send/ud-two-hcas", test_send_ud_two);
    qtest_add_func("/mlx5/data/write-imm", test_write_imm);
    qtest_add_func("/mlx5/data/inline", test_inline);
    qtest_add_func("/mlx5/data/scatter-gather", test_scatter_gather);
    qtest_add_func("/mlx5/data/sq-wrap", test_sq_wrap);
    qtest_add_func("/mlx5/data/rq-wrap", test_rq_wrap);
    qtest_add_func("/mlx5/data/counter-wrap", test_counter_wrap);
    qtest_add_func("/mlx5/data/atomics", test_atomics);
    qtest_add_func("/mlx5/data/atomic-lengths", test_atomic_lengths);
    qtest_add_func("/mlx5/data/srq", test_srq);
    qtest_add_func("/mlx5/data/srq-limit", test_srq_limit);
    qtest_add_func("/mlx5/data/srq-bad-link", test_srq_bad_link);
    qtest_add_func("/mlx5/data/ud-qkey", test_ud_qkey);
    qtest_add_func("/mlx5/data/ud-nobody", test_ud_nobody);
    qtest_add_func("/mlx5/data/large", test_large);
    qtest_add_func("/mlx5/data/overlap", test_overlap);
    qtest_add_func("/mlx5/data/not-ram", test_not_ram);
    return g_test_run();
}
