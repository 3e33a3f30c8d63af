/*
 * QTest: a guest that writes garbage to an mlx5 HCA
 *
 * Random bytes in work requests, doorbells, doorbell records, UAR pages,
 * commands and page lists. The device may answer with any error; it must stay
 * alive, answer commands, and not write where it was not told to. The seed
 * is printed; MLX5_SEED=n repeats a run.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

#define VA 0x7f1234000000ull

static GRand *dice;

static uint32_t any(uint32_t below)
{
    return g_rand_int(dice) % below;
}

static void garbage(void *p, size_t len)
{
    uint8_t *b = p;

    for (size_t i = 0; i < len; i++) {
        b[i] = any(4) ? any(256) : 0;
    }
}

/* Memory that nobody names: it must stay as it is. */
static uint64_t canary(QMlx5 *d)
{
    uint64_t at = qmlx5_alloc(d->host, 16 * QMLX5_PAGE);

    qtest_memset(d->qts, at, 0x5c, 16 * QMLX5_PAGE);
    return at;
}

static void alive(QMlx5 *d, uint64_t can)
{
    uint32_t pd = qmlx5_pd_new(d);

    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DEALLOC_PD, 0, pd, 0, NULL), ==,
                    0);
    qmlx5_expect_byte(d, can, 16 * QMLX5_PAGE, 0x5c);
}

/* Work requests: valid heads, then anything. */
static void test_wqes(void)
{
    static const uint8_t ops[] = {
        QMLX5_OP_NOP, QMLX5_OP_SEND_INVAL, QMLX5_OP_WRITE,
        QMLX5_OP_WRITE_IMM, QMLX5_OP_SEND, QMLX5_OP_SEND_IMM, QMLX5_OP_READ,
        QMLX5_OP_CS, QMLX5_OP_FA, QMLX5_OP_MASKED_CS, QMLX5_OP_MASKED_FA,
        QMLX5_OP_UMR,
    };
    static const uint8_t services[] = { QMLX5_RC, QMLX5_UC, QMLX5_UD,
                                        QMLX5_ST_UMR };
    QMlx5 *d = qmlx5_start("");
    uint64_t can = canary(d), buf = qmlx5_alloc(d->host, 16 * QMLX5_PAGE);
    uint32_t keys[3];
    QMlx5Qp *qp[4];

    qmlx5_pf_enable(d, 6);
    keys[0] = qmlx5_mkey_mtt(d, d->pd, QMLX5_ALL, VA, buf, 16 * QMLX5_PAGE);
    keys[1] = qmlx5_mkey_odp(d, QMLX5_ALL, VA, 16);
    keys[2] = d->null_mkey;
    for (int i = 0; i < 4; i++) {
        QMlx5QpAttr a = qmlx5_qp_attr(d, services[i]);

        a.rnr_retry = 0;
        a.retry = 0;
        a.log_sq = 8;
        qp[i] = qmlx5_qp_new(d, &a);
        qmlx5_qp_rts(qp[i]);
    }
    for (int n = 0; n < 1200; n++) {
        QMlx5Qp *q = qp[any(4)];
        uint8_t cqe[64];
        QMlx5Wqe w;

        if (qmlx5_qp_state(q) != QMLX5_RTS) {
            qmlx5_qp_revive(q);
        }
        if (q->a.st != QMLX5_ST_UMR && any(2)) {
            /* Only keys of ours, so that nothing of others is hit. */
            qmlx5_recv(q, keys[any(3)], VA + any(20 * QMLX5_PAGE),
                       1 + any(9000));
        }
        qmlx5_wqe(&w, ops[any(ARRAY_SIZE(ops))], any(256), any(2) ? keys[any(3)]
                                                          : g_rand_int(dice));
        garbage(w.b + 16, 1008);
        w.len = 16 * (1 + any(63));
        for (uint32_t at = 16; at + 16 <= w.len && any(8); at += 16) {
            switch (any(5)) {
            case 0:               /* remote address */
                stq_be_p(w.b + at, VA + any(20 * QMLX5_PAGE));
                stl_be_p(w.b + at + 8, keys[any(3)]);
                break;
            case 1:               /* data */
            case 2:
                stl_be_p(w.b + at, any(9000));
                stl_be_p(w.b + at + 4, keys[any(3)]);
                stq_be_p(w.b + at + 8, VA + any(20 * QMLX5_PAGE));
                break;
            case 3:               /* inline */
                stl_be_p(w.b + at, 1u << 31 | any(1200));
                break;
            }
        }
        qmlx5_queue(q, &w);
        if (any(16) == 0) {
            q->sq_pi += any(300);
        }
        qmlx5_ring(q);
        for (int i = 0; i < 300 && (qmlx5_cq_poll(q->a.scq, cqe) ||
                                    qmlx5_cq_poll(q->a.rcq, cqe)); i++) {
            ;
        }
        if (d->pf_eq && any(4) == 0) {
            QMlx5Fault f;

            while (qmlx5_pf_poll(d, &f)) {
                f.token ^= any(3) ? 0 : 1ull << any(48);
                qmlx5_pf_resume(d, &f, any(2));
            }
        }
        /* UMRs may have changed the keys; an UMR names no memory of ours. */
        if (n % 100 == 0) {
            qmlx5_clock(d, 1000000);
            alive(d, can);
        }
    }
    qmlx5_clock(d, 1000000000);
    alive(d, can);
    qmlx5_stop(d);
}

/* Doorbells, doorbell records and every other word of the BAR */
static void test_doorbells(void)
{
    QMlx5 *d = qmlx5_start("");
    uint64_t can = canary(d);
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);

    for (int n = 0; n < 3000; n++) {
        uint64_t uar = d->bar + (uint64_t)(any(2) ? d->uar : any(64)) *
                       QMLX5_PAGE;
        uint8_t b[8];

        garbage(b, sizeof(b));
        switch (any(6)) {
        case 0:                   /* the QP's own records */
            qmlx5_write(d, qp->dbr, b, 8);
            qmlx5_ring(qp);
            break;
        case 1:
            qmlx5_write(d, qp->a.scq->dbr, b, 8);
            break;
        case 2:                   /* its own doorbell, any number */
            stl_be_p(b + 4, any(2) ? qp->qpn << 8 | any(64) :
                                     g_rand_int(dice));
            qtest_memwrite(d->qts, uar + 0x800, b, 8);
            break;
        case 3:
            qtest_memwrite(d->qts, uar + 0x20, b, any(2) ? 8 : 4);
            break;
        case 4:
            /* EQs: not the command EQ's index */
            qtest_memwrite(d->qts, uar + (any(2) ? 0x40 : 0x48), b, 4);
            break;
        default:
            qtest_memwrite(d->qts, uar + any(QMLX5_PAGE / 8) * 8, b,
                           1 << any(4));
            break;
        }
    }
    /* The init segment; then our own queue again. */
    for (int n = 0; n < 300; n++) {
        uint8_t b[8];

        garbage(b, sizeof(b));
        qtest_memwrite(d->qts, d->bar + any(0x1100 / 4) * 4, b, 4);
        qmlx5_bar_read(d, any(0x2000 / 4) * 4);
        qmlx5_bar_write(d, 0x10, d->cmdq >> 32);
        qmlx5_bar_write(d, 0x14, d->cmdq);
    }
    qmlx5_settle(d);
    qmlx5_expect_byte(d, can, 16 * QMLX5_PAGE, 0x5c);
    qmlx5_stop(d);
}

/* Commands: every known opcode with random input, some objects real */
static void test_commands(void)
{
    QMlx5 *d = qmlx5_start("");
    uint64_t can = canary(d);
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
    uint8_t *in = g_malloc(4096), *out = g_malloc0(8192);

    for (int n = 0; n < 3000; n++) {
        uint32_t in_len = 16 + any(any(4) ? 600 : 4000);
        uint16_t op = any(8) ? any(10) << 8 | any(64) : any(0x10000);

        /* Those would end the driver's own rings. */
        if (op == QMLX5_TEARDOWN_HCA || op == QMLX5_DISABLE_HCA ||
            op == QMLX5_DESTROY_EQ || op == QMLX5_CREATE_EQ ||
            op == QMLX5_SET_ISSI || op == QMLX5_INIT_HCA) {
            continue;
        }
        garbage(in, in_len);
        stw_be_p(in, op);
        stw_be_p(in + 2, any(3) ? 0 : any(65536));
        stw_be_p(in + 6, any(4) ? 0 : any(65536));
        if (any(2)) {
            stl_be_p(in + 8, any(2) ? qp->qpn : any(70));
        }
        /* Where a page list or a doorbell record may lie: away from us. */
        for (uint32_t i = 16; i + 8 <= in_len; i += 8) {
            if (any(3) == 0) {
                stq_be_p(in + i, QMLX5_NOWHERE + any(1 << 30));
            } else {
                in[i] |= 0x80;
            }
        }
        qmlx5_cmd_deliver(d, 1 + any(30), in, in_len, out, 16 + any(4096));
        if (n % 300 == 0) {
            qmlx5_clock(d, 1000000);
            qmlx5_expect_byte(d, can, 16 * QMLX5_PAGE, 0x5c);
        }
    }
    alive(d, can);
    g_free(in);
    g_free(out);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    const char *s = getenv("MLX5_SEED");
    uint32_t seed = s ? g_ascii_strtoull(s, NULL, 0) : g_random_int();
    int ret;

    g_test_init(&argc, &argv, NULL);
    g_test_message("MLX5_SEED=%u", seed);
    dice = g_rand_new_with_seed(seed);
    qtest_add_func("/mlx5/hostile/wqes", test_wqes);
    qtest_add_func("/mlx5/hostile/doorbells", test_doorbells);
    qtest_add_func("/mlx5/hostile/commands", test_commands);
    ret = g_test_run();
    g_rand_free(dice);
    return ret;
}
