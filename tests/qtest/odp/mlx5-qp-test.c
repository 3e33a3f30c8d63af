/*
 * QTest: mlx5 queue pairs: states, flush, retries, errors
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

#define MS 1000000ll

static QMlx5Qp *qp_plain(QMlx5 *d, uint8_t st)
{
    QMlx5QpAttr a = qmlx5_qp_attr(d, st);

    return qmlx5_qp_new(d, &a);
}

/* Which transition is allowed where, and where it leads */

static const struct {
    uint16_t op;
    uint8_t from;                 /* bits */
    uint8_t to;
} transitions[] = {
    { QMLX5_RST2INIT_QP,  1 << QMLX5_RST, QMLX5_INIT },
    { QMLX5_INIT2INIT_QP, 1 << QMLX5_INIT, QMLX5_INIT },
    { QMLX5_INIT2RTR_QP,  1 << QMLX5_INIT, QMLX5_RTR },
    { QMLX5_RTR2RTS_QP,   1 << QMLX5_RTR, QMLX5_RTS },
    { QMLX5_RTS2RTS_QP,   1 << QMLX5_RTS, QMLX5_RTS },
    { QMLX5_2ERR_QP,      0x7f, QMLX5_ERR },
    { QMLX5_2RST_QP,      0x7f, QMLX5_RST },
};

static void bring_to(QMlx5Qp *qp, uint8_t state)
{
    static const uint16_t path[] = {
        QMLX5_2RST_QP, QMLX5_RST2INIT_QP, QMLX5_INIT2RTR_QP, QMLX5_RTR2RTS_QP,
    };

    for (unsigned i = 0; i <= MIN(state, QMLX5_RTS); i++) {
        g_assert_cmphex(qmlx5_qp_modify(qp, path[i]), ==, 0);
    }
    if (state == QMLX5_ERR) {
        g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_2ERR_QP), ==, 0);
    }
    g_assert_cmpint(qmlx5_qp_state(qp), ==, state);
}

static void test_transitions(void)
{
    static const uint8_t states[] = {
        QMLX5_RST, QMLX5_INIT, QMLX5_RTR, QMLX5_RTS, QMLX5_ERR,
    };
    static const uint8_t services[] = { QMLX5_RC, QMLX5_UC, QMLX5_UD };
    QMlx5 *d = qmlx5_start("");

    for (unsigned s = 0; s < ARRAY_SIZE(services); s++) {
        QMlx5Qp *qp = qp_plain(d, services[s]);

        for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
            for (unsigned t = 0; t < ARRAY_SIZE(transitions); t++) {
                bool legal = transitions[t].from & 1 << states[i];

                bring_to(qp, states[i]);
                g_assert_cmphex(qmlx5_qp_modify(qp, transitions[t].op), ==,
                                legal ? 0 : QMLX5_BAD_QP_STATE);
                g_assert_cmpint(qmlx5_qp_state(qp), ==,
                                legal ? transitions[t].to : states[i]);
            }
        }
        g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    }
    qmlx5_stop(d);
}

static void test_send_in_state(void)
{
    static const uint8_t states[] = { QMLX5_RST, QMLX5_INIT, QMLX5_RTR };
    QMlx5 *d = qmlx5_start("");

    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        QMlx5Qp *qp = qp_plain(d, QMLX5_RC);
        QMlx5Wqe w;

        bring_to(qp, states[i]);
        qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
        qmlx5_post(qp, &w);
        qmlx5_cq_none(qp->a.scq);
        g_assert_cmpint(qmlx5_qp_state(qp), ==, states[i]);
    }
    qmlx5_stop(d);
}

static void test_flush(void)
{
    static const uint8_t services[] = { QMLX5_RC, QMLX5_UC, QMLX5_UD };
    QMlx5 *d = qmlx5_start("");
    uint64_t buf = qmlx5_alloc(d->host, 4096);

    for (unsigned s = 0; s < ARRAY_SIZE(services); s++) {
        QMlx5Qp *qp = qmlx5_qp_self(d, services[s]);
        uint8_t cqe[64];

        for (int i = 0; i < 5; i++) {
            qmlx5_recv(qp, d->lkey, buf, 64);
        }
        g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_2ERR_QP), ==, 0);
        for (int i = 0; i < 5; i++) {
            qmlx5_cq_wait(qp->a.rcq, cqe);
            g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_RESP_ERR);
            g_assert_cmphex(qmlx5_cqe_syndrome(cqe), ==, QMLX5_SYN_FLUSH);
            g_assert_cmphex(lduw_be_p(cqe + 60), ==, i);
            g_assert_cmphex(qmlx5_be32(cqe + 56) & 0xffffff, ==, qp->qpn);
        }
        /* Drain: what is posted now comes back, too. */
        qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf, 8);
        qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_FLUSH);
        qmlx5_recv(qp, d->lkey, buf, 64);
        for (int i = 0; i < 100 && !qmlx5_cq_peek(qp->a.rcq, cqe); i++) {
            qmlx5_clock(d, 10 * MS);  /* no doorbell tells of it */
        }
        qmlx5_cq_expect_err(qp->a.rcq, QMLX5_CQE_RESP_ERR, QMLX5_SYN_FLUSH);
        qmlx5_cq_none(qp->a.rcq);
        qmlx5_cq_none(qp->a.scq);
        g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    }
    qmlx5_stop(d);
}

static void test_flush_after_error(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
    uint64_t buf = qmlx5_alloc(d->host, 4096);
    uint8_t cqe[64];
    QMlx5Wqe w;

    qmlx5_recv(qp, d->lkey, buf, 64);
    for (int i = 0; i < 6; i++) {
        /* The third has a bad key; unsigned ones are flushed as well. */
        qmlx5_wqe(&w, QMLX5_OP_WRITE, i < 2 ? QMLX5_F_SIGNALED : 0, 0);
        qmlx5_wqe_raddr(&w, buf, qmlx5_mkey_pa(d, d->pd, QMLX5_ALL));
        qmlx5_wqe_data(&w, i == 2 ? 0x7777700 : d->lkey, buf + 1024, 8);
        qmlx5_queue(qp, &w);
    }
    qmlx5_ring(qp);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_PROT);
    for (int i = 3; i < 6; i++) {
        qmlx5_cq_wait(qp->a.scq, cqe);
        g_assert_cmphex(qmlx5_cqe_syndrome(cqe), ==, QMLX5_SYN_FLUSH);
        g_assert_cmphex(lduw_be_p(cqe + 60), ==, i);
    }
    qmlx5_cq_expect_err(qp->a.rcq, QMLX5_CQE_RESP_ERR, QMLX5_SYN_FLUSH);
    g_assert_cmpint(qmlx5_qp_state(qp), ==, QMLX5_ERR);
    qmlx5_stop(d);
}

/* Unreliable services: an error of the sender leaves the receiver alive. */
static void test_sq_error_state(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_UD);
    uint64_t buf = qmlx5_alloc(d->host, 4096);

    qmlx5_recv(qp, d->lkey, buf, 128);
    qmlx5_post_send(qp, QMLX5_OP_SEND, 0x7777700, buf + 1024, 8);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_PROT);
    g_assert_cmpint(qmlx5_qp_state(qp), ==, QMLX5_SQER);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf + 1024, 8);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_FLUSH);
    qmlx5_cq_none(qp->a.rcq);
    g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_SQERR2RTS_QP), ==, 0);
    g_assert_cmpint(qmlx5_qp_state(qp), ==, QMLX5_RTS);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf + 1024, 8);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    g_assert_cmpint(qmlx5_cq_expect(qp->a.rcq, QMLX5_CQE_SEND), ==, 48);
    qmlx5_stop(d);
}

/* Receiver not ready */

static void test_rnr(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    uint64_t buf = qmlx5_alloc(d->host, 4096);
    QMlx5Qp *qp;
    uint8_t cqe[64];

    a.rnr_retry = 2;
    a.min_rnr_nak = 14;               /* 1.28 ms */
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);

    /* Posted in time: nothing is lost. */
    qmlx5_fill(d, buf, 100, 1);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf, 100);
    qmlx5_cq_none(qp->a.scq);
    qmlx5_recv(qp, d->lkey, buf + 2048, 100);
    qmlx5_cq_none(qp->a.scq);         /* not before the timer */
    qmlx5_clock(d, 2 * MS);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    g_assert_cmpint(qmlx5_cq_expect(qp->a.rcq, QMLX5_CQE_SEND), ==, 100);
    qmlx5_expect(d, buf + 2048, 100, 1);

    /* Never: two retries, then the error. */
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf, 100);
    qmlx5_clock(d, 1300000);
    qmlx5_cq_none(qp->a.scq);
    qmlx5_clock(d, 1300000);
    qmlx5_cq_wait(qp->a.scq, cqe);
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ_ERR);
    g_assert_cmphex(qmlx5_cqe_syndrome(cqe), ==, QMLX5_SYN_RNR_RETRY);
    qmlx5_stop(d);
}

static void test_rnr_without_end(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);   /* rnr_retry 7 */
    uint64_t buf = qmlx5_alloc(d->host, 4096);

    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf, 100);
    for (int i = 0; i < 30; i++) {
        qmlx5_clock(d, MS);
    }
    qmlx5_cq_none(qp->a.scq);
    qmlx5_recv(qp, d->lkey, buf + 2048, 100);
    qmlx5_clock(d, MS);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_cq_expect(qp->a.rcq, QMLX5_CQE_SEND);

    /* Gone in mid-wait. */
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf, 100);
    qmlx5_settle(d);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    qmlx5_clock(d, 50 * MS);
    qmlx5_stop(d);
}

static void test_rnr_zero(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *qp;

    a.rnr_retry = 0;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, d->vectors, 8);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_RNR_RETRY);
    qmlx5_stop(d);
}

/* Nobody answers */

static void retry_case(QMlx5 *d, uint32_t qpn, uint16_t dlid)
{
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *qp;

    a.retry = 3;
    a.ack_timeout = 8;                /* 4.096 us * 2^8: 1.05 ms */
    qp = qmlx5_qp_new(d, &a);
    qp->remote_qpn = qpn;
    qp->dlid = dlid;
    qmlx5_qp_rts(qp);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, d->vectors, 8);
    for (int i = 0; i < 3; i++) {
        qmlx5_cq_none(qp->a.scq);
        qmlx5_clock(d, 1100000);
    }
    qmlx5_clock(d, 1100000);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_RETRY);
    g_assert_cmpint(qmlx5_qp_state(qp), ==, QMLX5_ERR);
}

static void test_retry(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *init = qp_plain(d, QMLX5_RC);

    bring_to(init, QMLX5_INIT);
    retry_case(d, 0x2ffff, d->lid);       /* no such QP */
    retry_case(d, init->qpn, d->lid);     /* not ready to receive */
    retry_case(d, init->qpn, 0xbff0);     /* no such port */
    qmlx5_stop(d);
}

static void test_peer_dies(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5QpAttr attr = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *a, *b;

    attr.ack_timeout = 8;
    a = qmlx5_qp_new(d, &attr);
    b = qmlx5_qp_new(d, &attr);
    qmlx5_qp_connect(a, b);
    qmlx5_qp_rts(a);
    qmlx5_qp_rts(b);
    qmlx5_recv(b, d->lkey, d->vectors, 64);
    qmlx5_post_send(a, QMLX5_OP_SEND, d->lkey, d->vectors + 512, 8);
    qmlx5_cq_expect(a->a.scq, QMLX5_CQE_REQ);
    qmlx5_cq_expect(b->a.rcq, QMLX5_CQE_SEND);
    g_assert_cmphex(qmlx5_qp_destroy(b), ==, 0);
    qmlx5_post_send(a, QMLX5_OP_SEND, d->lkey, d->vectors + 512, 8);
    for (int i = 0; i < 10; i++) {
        qmlx5_clock(d, 1100000);
    }
    qmlx5_cq_expect_err(a->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_RETRY);
    qmlx5_stop(d);
}

/* Syndromes */

static void expect_both(QMlx5Qp *qp, uint8_t req, uint8_t resp)
{
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, req);
    if (resp) {
        qmlx5_cq_expect_err(qp->a.rcq, QMLX5_CQE_RESP_ERR, resp);
    }
    g_assert_cmpint(qmlx5_qp_state(qp), ==, QMLX5_ERR);
    qmlx5_qp_revive(qp);
}

static void test_syndromes(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
    uint64_t buf = qmlx5_alloc(d->host, 8192);
    uint32_t all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    uint8_t eqe[64];
    QMlx5Wqe w;

    /* Longer than the receive buffer. */
    qmlx5_recv(qp, d->lkey, buf, 16);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf, 17);
    expect_both(qp, QMLX5_SYN_REMOTE_INVAL, QMLX5_SYN_LOCAL_LENGTH);

    /* Own key bad. */
    qmlx5_recv(qp, d->lkey, buf, 16);
    qmlx5_post_send(qp, QMLX5_OP_SEND, 0x5555500, buf, 16);
    expect_both(qp, QMLX5_SYN_LOCAL_PROT, QMLX5_SYN_FLUSH);

    /* Receiver's key bad. */
    qmlx5_recv(qp, 0x5555500, buf, 16);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, buf, 16);
    expect_both(qp, QMLX5_SYN_REMOTE_OP, QMLX5_SYN_LOCAL_PROT);

    /* Remote key bad: the responder's event. */
    while (qmlx5_eq_poll(d->async_eq, eqe)) {
        ;
    }
    qmlx5_eq_update(d->async_eq, true);
    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, all, buf, 8, 0x5555500, buf);
    expect_both(qp, QMLX5_SYN_REMOTE_ACCESS, 0);
    qmlx5_eq_wait(d->async_eq, QMLX5_EV_WQ_ACCESS, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 56) & 0xffffff, ==, qp->qpn);

    /* Unaligned atomic. */
    qmlx5_post_atomic(qp, QMLX5_OP_FA, all, buf, all, buf + 4, 1, 0);
    expect_both(qp, QMLX5_SYN_REMOTE_INVAL, 0);
    qmlx5_eq_wait(d->async_eq, QMLX5_EV_WQ_INVAL, eqe);

    /* Opcodes that do not exist, or not for this service. */
    for (int op = 0x30; op < 0x100; op += 0x11) {
        qmlx5_wqe(&w, op, QMLX5_F_SIGNALED, 0);
        qmlx5_wqe_data(&w, d->lkey, buf, 8);
        qmlx5_post(qp, &w);
        expect_both(qp, QMLX5_SYN_LOCAL_QP_OP, 0);
    }
    qmlx5_stop(d);
}

static void test_service_opcodes(void)
{
    static const struct {
        uint8_t st, op;
    } bad[] = {
        { QMLX5_UC, QMLX5_OP_READ }, { QMLX5_UC, QMLX5_OP_FA },
        { QMLX5_UC, QMLX5_OP_CS }, { QMLX5_UD, QMLX5_OP_WRITE },
        { QMLX5_UD, QMLX5_OP_READ }, { QMLX5_UD, QMLX5_OP_FA },
    };
    QMlx5 *d = qmlx5_start("");

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        QMlx5Qp *qp = qmlx5_qp_self(d, bad[i].st);
        QMlx5Wqe w;

        qmlx5_wqe(&w, bad[i].op, QMLX5_F_SIGNALED, 0);
        if (bad[i].st == QMLX5_UD) {
            qmlx5_wqe_av(&w, d->lid, qp->qpn, qp->a.qkey);
        }
        qmlx5_wqe_raddr(&w, d->vectors, d->lkey);
        qmlx5_wqe_atomic(&w, 1, 1);
        qmlx5_wqe_data(&w, d->lkey, d->vectors, 8);
        qmlx5_post(qp, &w);
        qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR,
                            QMLX5_SYN_LOCAL_QP_OP);
    }
    qmlx5_stop(d);
}

/* The responder's queue pair must allow what arrives. */
static void test_responder_rights(void)
{
    QMlx5 *d = qmlx5_start("");
    uint64_t buf = qmlx5_alloc(d->host, 4096);
    uint32_t all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);

    for (uint32_t access = 0; access < 3; access++) {
        static const uint32_t bits[] = { QMLX5_RR, QMLX5_RW, QMLX5_A };
        static const uint8_t ops[] = { QMLX5_OP_READ, QMLX5_OP_WRITE,
                                       QMLX5_OP_FA };
        QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
        QMlx5Qp *qp;

        a.access = bits[access];
        qp = qmlx5_qp_new(d, &a);
        qmlx5_qp_rts(qp);
        for (unsigned i = 0; i < 3; i++) {
            uint8_t cqe[64];

            if (ops[i] == QMLX5_OP_FA) {
                qmlx5_post_atomic(qp, ops[i], all, buf, all, buf + 64, 1, 0);
            } else {
                qmlx5_post_rdma(qp, ops[i], all, buf, 8, all, buf + 64);
            }
            qmlx5_cq_wait(qp->a.scq, cqe);
            if (i == access) {
                g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
            } else {
                g_assert_cmphex(qmlx5_cqe_syndrome(cqe), ==,
                                QMLX5_SYN_REMOTE_INVAL);
                qmlx5_qp_revive(qp);
            }
        }
    }
    qmlx5_stop(d);
}

static void test_destroy_busy(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
    uint64_t buf = qmlx5_alloc(d->host, 2 << 20);
    uint32_t all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    QMlx5Wqe w;

    /* More bytes than one slice moves, then gone. */
    for (int i = 0; i < 30; i++) {
        qmlx5_wqe(&w, QMLX5_OP_WRITE, QMLX5_F_SIGNALED, 0);
        qmlx5_wqe_raddr(&w, buf + (1 << 20), all);
        qmlx5_wqe_data(&w, all, buf, 1 << 20);
        qmlx5_queue(qp, &w);
    }
    qmlx5_ring(qp);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, QMLX5_BAD_RES);
    qmlx5_ring(qp);
    qmlx5_settle(d);
    qmlx5_stop(d);
}

static void test_bad_create(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *good = qmlx5_qp_new(d, &a), qp = *good;
    uint8_t in[8192] = { }, out[16];
    uint8_t *qpc = MLX5_ADDR(in, create_qp_in, qpc);
    uint32_t len = qmlx5_qp_in(&qp, in);

#define BAD(field, value, status) do { \
        memset(in, 0, sizeof(in)); \
        qmlx5_qp_in(&qp, in); \
        mlx5_field_set(qpc, MLX5_OFF_qpc_##field, MLX5_WIDTH_qpc_##field, \
                       value); \
        g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, status); \
    } while (0)

    BAD(pd, 0xfffff, QMLX5_BAD_RES);
    BAD(cqn_snd, 0xfffff, QMLX5_BAD_RES);
    BAD(cqn_rcv, 0xfffff, QMLX5_BAD_RES);
    BAD(uar_page, 0xfffff, QMLX5_BAD_RES);
    BAD(st, 0xee, QMLX5_BAD_PARAM);
    BAD(rq_type, 5, QMLX5_BAD_PARAM);
    BAD(log_sq_size, 15, QMLX5_BAD_INP_LEN);
    BAD(log_rq_size, 15, QMLX5_BAD_INP_LEN);
    BAD(page_offset, 63, QMLX5_BAD_INP_LEN);
    memset(in, 0, sizeof(in));
    qmlx5_qp_in(&qp, in);
    MLX5_SET(qpc, qpc, rq_type, 1);
    MLX5_SET(qpc, qpc, srqn_rmpn_xrqn, 0xfffff);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, QMLX5_BAD_RES);
    memset(in, 0, sizeof(in));
    qmlx5_qp_in(&qp, in);
    g_assert_cmphex(qmlx5_cmd(d, in, len, out, 16), ==, 0);
    qmlx5_stop(d);
}

/* Queue overrun and malformed WQEs */

static void test_bad_wqe(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
    QMlx5Wqe w;

    /* Another QP's number. */
    qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
    stl_be_p(w.b + 4, (qp->qpn + 1) << 8 | 1);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_qp_revive(qp);
    /* No size; larger than what is posted. */
    qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
    stl_be_p(w.b + 4, qp->qpn << 8);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_qp_revive(qp);
    qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
    stl_be_p(w.b + 4, qp->qpn << 8 | 63);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_qp_revive(qp);
    /* A write without a remote address. */
    qmlx5_wqe(&w, QMLX5_OP_WRITE, QMLX5_F_SIGNALED, 0);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_qp_revive(qp);
    /* Inline data that claims to be longer than the WQE. */
    qmlx5_wqe(&w, QMLX5_OP_SEND, QMLX5_F_SIGNALED, 0);
    qmlx5_wqe_inline(&w, "x", 1);
    stl_be_p(w.b + 16, 1u << 31 | 900);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_qp_revive(qp);
    /* Longer than the longest message. */
    qmlx5_wqe(&w, QMLX5_OP_SEND, QMLX5_F_SIGNALED, 0);
    qmlx5_wqe_data(&w, d->lkey, d->vectors, 0x7fffffff);
    qmlx5_post(qp, &w);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_LENGTH);
    qmlx5_stop(d);
}

static void test_sq_overrun(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
    uint8_t eqe[64];

    qp->sq_pi += 65;                  /* 64 blocks */
    qmlx5_ring(qp);
    qmlx5_eq_wait(d->async_eq, QMLX5_EV_WQ_CATAS, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 56) & 0xffffff, ==, qp->qpn);
    g_assert_cmpint(qmlx5_qp_state(qp), ==, QMLX5_ERR);
    qmlx5_stop(d);
}

static void test_rq_overrun(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);

    qmlx5_put32(d, qp->dbr, 17);      /* 16 entries */
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, d->vectors, 8);
    qmlx5_settle(d);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    qmlx5_stop(d);
}

static void test_other_uar(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
    uint32_t own = qp->uar;
    QMlx5Wqe w;

    qmlx5_wqe(&w, QMLX5_OP_NOP, QMLX5_F_SIGNALED, 0);
    qp->uar = qmlx5_uar_new(d);
    qmlx5_post(qp, &w);
    qmlx5_cq_none(qp->a.scq);
    qp->uar = own;
    qmlx5_ring(qp);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/qp/transitions", test_transitions);
    qtest_add_func("/mlx5/qp/send-in-state", test_send_in_state);
    qtest_add_func("/mlx5/qp/flush", test_flush);
    qtest_add_func("/mlx5/qp/flush-after-error", test_flush_after_error);
    qtest_add_func("/mlx5/qp/sq-error-state", test_sq_error_state);
    qtest_add_func("/mlx5/qp/rnr", test_rnr);
    qtest_add_func("/mlx5/qp/rnr-without-end", test_rnr_without_end);
    qtest_add_func("/mlx5/qp/rnr-zero", test_rnr_zero);
    qtest_add_func("/mlx5/qp/retry", test_retry);
    qtest_add_func("/mlx5/qp/peer-dies", test_peer_dies);
    qtest_add_func("/mlx5/qp/syndromes", test_syndromes);
    qtest_add_func("/mlx5/qp/service-opcodes", test_service_opcodes);
    qtest_add_func("/mlx5/qp/responder-rights", test_responder_rights);
    qtest_add_func("/mlx5/qp/destroy-busy", test_destroy_busy);
    qtest_add_func("/mlx5/qp/bad-create", test_bad_create);
    qtest_add_func("/mlx5/qp/bad-wqe", test_bad_wqe);
    qtest_add_func("/mlx5/qp/sq-overrun", test_sq_overrun);
    qtest_add_func("/mlx5/qp/rq-overrun", test_rq_overrun);
    qtest_add_func("/mlx5/qp/other-uar", test_other_uar);
    return g_test_run();
}
