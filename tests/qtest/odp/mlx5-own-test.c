/*
 * QTest: mlx5 objects that rest on others
 *
 * What is in use cannot be destroyed, and a user context names its own
 * objects only, but for what the kernel shares.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum {
    CREATE_UCTX = 0xa04,
    DCI = 5,
    OPT_SRQN = 1 << 18,
    OPT_CQN_RCV = 1 << 19,
};

static uint8_t dealloc_pd(QMlx5 *d, uint32_t pd)
{
    return qmlx5_cmd_simple(d, QMLX5_DEALLOC_PD, 0, pd, 0, NULL);
}

static uint8_t destroy_cq(QMlx5 *d, uint32_t cqn)
{
    return qmlx5_cmd_simple(d, QMLX5_DESTROY_CQ, 0, cqn, 0, NULL);
}

/* Runs @in for user context @uid; the new object's number, if any. */
static uint8_t by(QMlx5 *d, uint16_t uid, uint8_t *in, uint32_t len,
                  uint32_t *id)
{
    uint8_t out[16] = { };
    uint8_t status;

    stw_be_p(in + 2, uid);
    status = qmlx5_cmd(d, in, len, out, sizeof(out));
    *id = qmlx5_be32(out + 8) & 0xffffff;
    return status;
}

static uint16_t uctx_new(QMlx5 *d)
{
    uint8_t in[32] = { };
    uint32_t id;
    uint8_t out[16];

    qmlx5_cmd_head(in, CREATE_UCTX, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    id = MLX5_GET(out, create_uctx_out, uid);
    g_assert_cmphex(id, !=, 0);
    return id;
}

static uint32_t number_by(QMlx5 *d, uint16_t uid, uint16_t op)
{
    uint8_t in[16] = { };
    uint32_t id;

    qmlx5_cmd_head(in, op, 0);
    g_assert_cmphex(by(d, uid, in, sizeof(in), &id), ==, 0);
    return id;
}

static uint8_t cq_by(QMlx5 *d, uint16_t uid, const QMlx5Cq *like, uint32_t uar,
                     uint32_t eqn, uint32_t *cqn)
{
    g_autofree uint8_t *in = g_malloc0(65536);
    QMlx5Cq cq = *like;
    uint32_t len;

    cq.uar = uar;
    len = qmlx5_cq_in(&cq, in, eqn);
    return by(d, uid, in, len, cqn);
}

static void test_eq_in_use(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Eq *eq = qmlx5_eq_new(d, 4, 2, 0);
    QMlx5Cq *like = qmlx5_cq_new(d, 4);
    uint32_t cqn;

    g_assert_cmphex(cq_by(d, 0, like, d->uar, eq->eqn, &cqn), ==, 0);
    g_assert_cmphex(qmlx5_eq_destroy(eq), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(destroy_cq(d, cqn), ==, 0);
    g_assert_cmphex(qmlx5_eq_destroy(eq), ==, 0);
    g_assert_cmphex(cq_by(d, 0, like, d->uar, eq->eqn, &cqn), ==,
                    QMLX5_BAD_RES);
    qmlx5_stop(d);
}

static void test_pd_in_use(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t pd = qmlx5_pd_new(d), other = qmlx5_pd_new(d), key;
    QMlx5MkeyAttr a = {
        .mode = 1, .pd = pd, .access = QMLX5_ALL, .log_page = 12,
        .entries = 8, .len = 8 * QMLX5_PAGE, .umr = true, .free = true,
    };
    QMlx5Umr move = {
        .flags = QMLX5_UMR_INLINE, .mask = QMLX5_M_PD, .pd = other,
    };
    QMlx5QpAttr qa = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *qp;

    key = qmlx5_mkey_pa(d, pd, QMLX5_ALL);
    g_assert_cmphex(dealloc_pd(d, pd), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_mkey_destroy(d, key), ==, 0);

    /* A free key, which an UMR moves. */
    key = qmlx5_mkey_new(d, &a);
    g_assert_cmphex(dealloc_pd(d, pd), ==, QMLX5_BAD_RES_STATE);
    move.key = key;
    g_assert_cmphex(qmlx5_umr(d, &move), ==, 0);
    g_assert_cmphex(dealloc_pd(d, other), ==, QMLX5_BAD_RES_STATE);

    qa.pd = pd;
    qp = qmlx5_qp_new(d, &qa);
    g_assert_cmphex(dealloc_pd(d, pd), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    g_assert_cmphex(dealloc_pd(d, pd), ==, 0);
    g_assert_cmphex(qmlx5_mkey_destroy(d, key), ==, 0);
    g_assert_cmphex(dealloc_pd(d, other), ==, 0);
    qmlx5_stop(d);
}

static uint8_t dealloc_uar(QMlx5 *d, uint32_t uar)
{
    return qmlx5_cmd_simple(d, QMLX5_DEALLOC_UAR, 0, uar, 0, NULL);
}

static void test_uar_in_use(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t uar = qmlx5_uar_new(d), old = d->uar, cqn;
    QMlx5Cq *like = qmlx5_cq_new(d, 4);
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Eq *eq;
    QMlx5Qp *qp;

    g_assert_cmphex(cq_by(d, 0, like, uar, d->comp_eq->eqn, &cqn), ==, 0);
    g_assert_cmphex(dealloc_uar(d, uar), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(destroy_cq(d, cqn), ==, 0);
    a.uar = uar;
    qp = qmlx5_qp_new(d, &a);
    g_assert_cmphex(dealloc_uar(d, uar), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    d->uar = uar;
    eq = qmlx5_eq_new(d, 4, 2, 0);
    d->uar = old;
    g_assert_cmphex(dealloc_uar(d, uar), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_eq_destroy(eq), ==, 0);
    g_assert_cmphex(dealloc_uar(d, uar), ==, 0);
    g_assert_cmphex(dealloc_uar(d, uar), ==, QMLX5_BAD_RES);
    qmlx5_stop(d);
}

static void test_user_cq(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Cq *like = qmlx5_cq_new(d, 4);
    uint16_t a = uctx_new(d), b = uctx_new(d);
    uint32_t uar_a = number_by(d, a, QMLX5_ALLOC_UAR), cqn, id;
    uint8_t in[16] = { };

    /* The kernel's EQ serves all; a UAR is its owner's. */
    g_assert_cmphex(cq_by(d, b, like, uar_a, d->comp_eq->eqn, &cqn), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(cq_by(d, b, like, d->uar, d->comp_eq->eqn, &cqn), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(cq_by(d, a, like, uar_a, d->comp_eq->eqn, &cqn), ==, 0);
    qmlx5_cmd_head(in, QMLX5_DESTROY_CQ, 0);
    stl_be_p(in + 8, cqn);
    g_assert_cmphex(by(d, b, in, sizeof(in), &id), ==, QMLX5_BAD_RES);
    g_assert_cmphex(by(d, a, in, sizeof(in), &id), ==, 0);
    qmlx5_stop(d);
}

/* Each of what a queue pair names, once of another user's. */
static void test_user_qp(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5QpAttr attr = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *like = qmlx5_qp_new(d, &attr);
    QMlx5Srq *kernel_srq = qmlx5_srq_new(d, d->pd, 4, 0);
    g_autofree uint8_t *in = g_malloc0(65536);
    uint16_t uid[2] = { uctx_new(d), uctx_new(d) };
    uint32_t pd[2], uar[2], cqn[2], qpn;

    for (int i = 0; i < 2; i++) {
        pd[i] = number_by(d, uid[i], QMLX5_ALLOC_PD);
        uar[i] = number_by(d, uid[i], QMLX5_ALLOC_UAR);
        g_assert_cmphex(cq_by(d, uid[i], like->a.scq, uar[i],
                              d->comp_eq->eqn, &cqn[i]), ==, 0);
    }
    for (int wrong = 0; wrong < 7; wrong++) {
        uint8_t *qpc = MLX5_ADDR(in, create_qp_in, qpc);
        uint32_t len;

        memset(in, 0, 65536);
        len = qmlx5_qp_in(like, in);
        MLX5_SET(qpc, qpc, pd, pd[wrong == 0]);
        MLX5_SET(qpc, qpc, uar_page, uar[wrong == 1]);
        MLX5_SET(qpc, qpc, cqn_snd, cqn[wrong == 2]);
        MLX5_SET(qpc, qpc, cqn_rcv, cqn[wrong == 3]);
        if (wrong == 4 || wrong == 6) {
            MLX5_SET(qpc, qpc, rq_type, 1);
            MLX5_SET(qpc, qpc, srqn_rmpn_xrqn, kernel_srq->srqn);
        }
        if (wrong == 6) {         /* not wrong: it receives nothing */
            MLX5_SET(qpc, qpc, st, DCI);
        }
        g_assert_cmphex(by(d, uid[0], in, len, &qpn), ==,
                        wrong >= 5 ? 0 : QMLX5_BAD_RES);
    }
    /* The kernel may name anything. */
    stw_be_p(in + 2, 0);
    g_assert_cmphex(by(d, 0, in, qmlx5_qp_in(like, in), &qpn), ==, 0);
    qmlx5_stop(d);
}

/* A queue pair moves to another SRQ and another CQ to receive in. */
static void test_moves(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Srq *srq[2] = { qmlx5_srq_new(d, d->pd, 4, 0),
                         qmlx5_srq_new(d, d->pd, 4, 0) };
    QMlx5Cq *cq = qmlx5_cq_new(d, 4);
    uint8_t in[MLX5_BYTES(rst2init_qp_in)] = { };
    uint8_t *qpc = MLX5_ADDR(in, rst2init_qp_in, qpc);
    QMlx5Qp *qp;
    uint32_t old;

    a.rq_type = 1;
    a.srq = srq[0];
    qp = qmlx5_qp_new(d, &a);
    old = qp->a.rcq->cqn;
    g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_RST2INIT_QP), ==, 0);
    qmlx5_qp_context(qp, QMLX5_INIT2RTR_QP, in);
    MLX5_SET(in, rst2init_qp_in, opt_param_mask, OPT_SRQN | OPT_CQN_RCV);
    MLX5_SET(qpc, qpc, srqn_rmpn_xrqn, 0xffff);
    MLX5_SET(qpc, qpc, cqn_rcv, cq->cqn);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), NULL, 0), ==, QMLX5_BAD_RES);
    MLX5_SET(qpc, qpc, srqn_rmpn_xrqn, srq[1]->srqn);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), NULL, 0), ==, 0);
    /* The old ones are free to go, the new ones are not. */
    g_assert_cmphex(destroy_cq(d, old), ==, 0);
    g_assert_cmphex(destroy_cq(d, cq->cqn), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    g_assert_cmphex(destroy_cq(d, cq->cqn), ==, 0);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/own/eq-in-use", test_eq_in_use);
    qtest_add_func("/mlx5/own/pd-in-use", test_pd_in_use);
    qtest_add_func("/mlx5/own/uar-in-use", test_uar_in_use);
    qtest_add_func("/mlx5/own/user-cq", test_user_cq);
    qtest_add_func("/mlx5/own/user-qp", test_user_qp);
    qtest_add_func("/mlx5/own/moves", test_moves);
    return g_test_run();
}
