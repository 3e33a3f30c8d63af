/*
 * A small mlx5 driver for qtests: event and completion queues, memory keys,
 * queue pairs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum {
    WAIT_US = 10 * 1000 * 1000,

    UAR_CQ = 0x20,
    UAR_EQ_ARM = 0x40,
    UAR_EQ_CI = 0x48,

    FREE_OBJECT = 0xffffff,       /* number of what was never created */
};

/* A command whose output is one number in the dword at 8. */
static uint8_t create(QMlx5 *d, const void *in, uint32_t len, uint32_t *id)
{
    uint8_t out[16] = { };
    uint8_t st = qmlx5_cmd(d, in, len, out, sizeof(out));

    *id = st ? FREE_OBJECT : qmlx5_be32(out + 8) & 0xffffff;
    return st;
}

static uint32_t alloc_number(QMlx5 *d, uint16_t op)
{
    uint8_t in[16] = { };
    uint32_t id;

    qmlx5_cmd_head(in, op, 0);
    g_assert_cmphex(create(d, in, sizeof(in), &id), ==, 0);
    return id;
}

uint32_t qmlx5_pd_new(QMlx5 *d)
{
    return alloc_number(d, QMLX5_ALLOC_PD);
}

uint32_t qmlx5_uar_new(QMlx5 *d)
{
    return alloc_number(d, QMLX5_ALLOC_UAR);
}

uint64_t qmlx5_dbr_new(QMlx5 *d)
{
    uint64_t at;

    if (d->dbr_next == d->dbr_end) {
        d->dbr_next = qmlx5_alloc(d->host, QMLX5_PAGE);
        d->dbr_end = d->dbr_next + QMLX5_PAGE;
        qtest_memset(d->qts, d->dbr_next, 0, QMLX5_PAGE);
    }
    at = d->dbr_next;
    d->dbr_next += 64;
    return at;
}

static uint32_t put_pages(uint8_t *pas, uint64_t buf, uint64_t bytes)
{
    uint32_t n = DIV_ROUND_UP(bytes, QMLX5_PAGE);

    for (uint32_t i = 0; i < n; i++) {
        stq_be_p(pas + 8 * i, buf + i * QMLX5_PAGE);
    }
    return 8 * n;
}

static void uar_write64(QMlx5 *d, uint32_t uar, uint32_t off, uint32_t hi,
                        uint32_t lo)
{
    uint8_t b[8];

    stl_be_p(b, hi);
    stl_be_p(b + 4, lo);
    qtest_memwrite(d->qts, d->bar + (uint64_t)uar * QMLX5_PAGE + off, b, 8);
}

/* Event queues */

uint32_t qmlx5_eq_in(QMlx5Eq *eq, uint8_t *in, uint64_t mask)
{
    uint8_t *eqc = MLX5_ADDR(in, create_eq_in, eq_context_entry);

    qmlx5_cmd_head(in, QMLX5_CREATE_EQ, 0);
    MLX5_SET(eqc, eqc, log_eq_size, eq->log_size);
    MLX5_SET(eqc, eqc, uar_page, eq->uar);
    MLX5_SET(eqc, eqc, intr, eq->vector);
    stq_be_p(MLX5_ADDR(in, create_eq_in, event_bitmask), mask);
    return MLX5_AT(create_eq_in, pas) +
           put_pages(MLX5_ADDR(in, create_eq_in, pas), eq->buf,
                     64ull << eq->log_size);
}

QMlx5Eq *qmlx5_eq_new(QMlx5 *d, uint8_t log_size, unsigned vector,
                      uint64_t mask)
{
    QMlx5Eq *eq = g_new0(QMlx5Eq, 1);
    uint64_t bytes = 64ull << log_size;
    g_autofree uint8_t *in = g_malloc0(4096 + bytes / 512 + 8);
    uint32_t len;

    g_ptr_array_add(d->objs, eq);
    eq->d = d;
    eq->uar = d->uar;
    eq->vector = vector;
    eq->log_size = log_size;
    eq->buf = qmlx5_alloc(d->host, bytes);
    qtest_memset(d->qts, eq->buf, 1, bytes);
    len = qmlx5_eq_in(eq, in, mask);
    g_assert_cmphex(create(d, in, len, &eq->eqn), ==, 0);
    eq->eqn &= 0xff;
    qmlx5_eq_update(eq, true);
    return eq;
}

bool qmlx5_eq_poll(QMlx5Eq *eq, uint8_t eqe[64])
{
    uint32_t at = eq->ci & ((1u << eq->log_size) - 1);

    qmlx5_read(eq->d, eq->buf + at * 64, eqe, 64);
    if ((eqe[63] & 1) != (eq->ci >> eq->log_size & 1)) {
        return false;
    }
    eq->ci++;
    return true;
}

void qmlx5_eq_wait(QMlx5Eq *eq, uint8_t type, uint8_t eqe[64])
{
    gint64 end = g_get_monotonic_time() + WAIT_US;

    while (!qmlx5_eq_poll(eq, eqe)) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
    g_assert_cmphex(eqe[1], ==, type);
}

void qmlx5_eq_none(QMlx5Eq *eq)
{
    uint8_t eqe[64];

    qmlx5_settle(eq->d);
    g_assert_false(qmlx5_eq_poll(eq, eqe));
}

void qmlx5_eq_update(QMlx5Eq *eq, bool arm)
{
    QMlx5 *d = eq->d;

    qmlx5_bar_write(d, (uint64_t)eq->uar * QMLX5_PAGE +
                    (arm ? UAR_EQ_ARM : UAR_EQ_CI),
                    eq->eqn << 24 | (eq->ci & 0xffffff));
}

uint8_t qmlx5_eq_destroy(QMlx5Eq *eq)
{
    return qmlx5_cmd_simple(eq->d, QMLX5_DESTROY_EQ, 0, eq->eqn, 0, NULL);
}

/* Completion queues */

uint32_t qmlx5_cq_in(QMlx5Cq *cq, uint8_t *in, uint32_t eqn)
{
    uint8_t *cqc = MLX5_ADDR(in, create_cq_in, cq_context);

    qmlx5_cmd_head(in, QMLX5_CREATE_CQ, 0);
    MLX5_SET(cqc, cqc, log_cq_size, cq->log_size);
    MLX5_SET(cqc, cqc, uar_page, cq->uar);
    MLX5_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    MLX5_SET64(cqc, cqc, dbr_addr, cq->dbr);
    return MLX5_AT(create_cq_in, pas) +
           put_pages(MLX5_ADDR(in, create_cq_in, pas), cq->buf,
                     64ull << cq->log_size);
}

QMlx5Cq *qmlx5_cq_prepare(QMlx5 *d, uint8_t log_size, uint8_t **in,
                          uint32_t *len)
{
    QMlx5Cq *cq = g_new0(QMlx5Cq, 1);
    uint64_t bytes = 64ull << log_size;

    g_ptr_array_add(d->objs, cq);
    cq->d = d;
    cq->uar = d->uar;
    cq->log_size = log_size;
    cq->buf = qmlx5_alloc(d->host, bytes);
    cq->dbr = qmlx5_dbr_new(d);
    /* Invalid opcode, software's owner bit. */
    qtest_memset(d->qts, cq->buf, 0xf1, bytes);
    *in = g_malloc0(4096 + bytes / 512 + 8);
    *len = qmlx5_cq_in(cq, *in, d->comp_eq->eqn);
    return cq;
}

QMlx5Cq *qmlx5_cq_new(QMlx5 *d, uint8_t log_size)
{
    g_autofree uint8_t *in = NULL;
    uint32_t len;
    QMlx5Cq *cq = qmlx5_cq_prepare(d, log_size, &in, &len);

    g_assert_cmphex(create(d, in, len, &cq->cqn), ==, 0);
    return cq;
}

bool qmlx5_cq_peek(QMlx5Cq *cq, uint8_t cqe[64])
{
    uint32_t at = cq->ci & ((1u << cq->log_size) - 1);

    qmlx5_read(cq->d, cq->buf + at * 64, cqe, 64);
    return cqe[63] >> 4 != 0xf &&
           (cqe[63] & 1) == (cq->ci >> cq->log_size & 1);
}

bool qmlx5_cq_poll(QMlx5Cq *cq, uint8_t cqe[64])
{
    if (!qmlx5_cq_peek(cq, cqe)) {
        return false;
    }
    cq->ci++;
    qmlx5_put32(cq->d, cq->dbr, cq->ci & 0xffffff);
    return true;
}

void qmlx5_cq_wait(QMlx5Cq *cq, uint8_t cqe[64])
{
    gint64 end = g_get_monotonic_time() + WAIT_US;

    while (!qmlx5_cq_poll(cq, cqe)) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
    }
}

void qmlx5_cq_none(QMlx5Cq *cq)
{
    uint8_t cqe[64];

    qmlx5_settle(cq->d);
    g_assert_false(qmlx5_cq_peek(cq, cqe));
}

void qmlx5_cq_arm(QMlx5Cq *cq, bool solicited)
{
    uint32_t v = (cq->arm_sn & 3) << 28 | (uint32_t)solicited << 24 |
                 (cq->ci & 0xffffff);

    qmlx5_put32(cq->d, cq->dbr + 4, v);
    uar_write64(cq->d, cq->uar, UAR_CQ, v, cq->cqn);
    cq->arm_sn++;
}

uint8_t qmlx5_cq_destroy(QMlx5Cq *cq)
{
    return qmlx5_cmd_simple(cq->d, QMLX5_DESTROY_CQ, 0, cq->cqn, 0, NULL);
}

uint32_t qmlx5_cq_expect(QMlx5Cq *cq, uint8_t opcode)
{
    uint8_t cqe[64];

    qmlx5_cq_wait(cq, cqe);
    if (qmlx5_cqe_op(cqe) >= QMLX5_CQE_REQ_ERR &&
        opcode != qmlx5_cqe_op(cqe)) {
        g_test_message("error completion, syndrome 0x%x",
                       qmlx5_cqe_syndrome(cqe));
    }
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, opcode);
    return qmlx5_be32(cqe + 44);
}

void qmlx5_cq_expect_err(QMlx5Cq *cq, uint8_t opcode, uint8_t syndrome)
{
    uint8_t cqe[64];

    qmlx5_cq_wait(cq, cqe);
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, opcode);
    g_assert_cmphex(qmlx5_cqe_syndrome(cqe), ==, syndrome);
}

/* Memory keys */

uint8_t qmlx5_mkey_cmd(QMlx5 *d, const QMlx5MkeyAttr *a, uint32_t *key)
{
    uint32_t unit = a->mode == 1 ? 8 : 16;
    uint32_t bytes = ROUND_UP(a->nlist * unit, 16);
    uint32_t head = MLX5_AT(create_mkey_in, klm_pas_mtt);
    g_autofree uint8_t *in = g_malloc0(head + bytes);
    uint8_t *mkc = MLX5_ADDR(in, create_mkey_in, memory_key_mkey_entry);
    uint8_t variant = ++d->key_variant;
    uint32_t index;
    uint8_t st;

    qmlx5_cmd_head(in, QMLX5_CREATE_MKEY, 0);
    MLX5_SET(in, create_mkey_in, pg_access, a->pg_access);
    MLX5_SET(in, create_mkey_in, translations_octword_actual_size,
             a->actual ? a->actual : bytes / 16);
    MLX5_SET(mkc, mkc, free, a->free);
    MLX5_SET(mkc, mkc, umr_en, a->umr);
    MLX5_SET(mkc, mkc, en_rinval, a->en_rinval);
    MLX5_SET(mkc, mkc, ma_translation_mode, a->ats);
    MLX5_SET(mkc, mkc, access_mode_1_0, a->mode & 3);
    MLX5_SET(mkc, mkc, access_mode_4_2, a->mode >> 2);
    MLX5_SET(mkc, mkc, lr, !!(a->access & QMLX5_LR));
    MLX5_SET(mkc, mkc, lw, !!(a->access & QMLX5_LW));
    MLX5_SET(mkc, mkc, rr, !!(a->access & QMLX5_RR));
    MLX5_SET(mkc, mkc, rw, !!(a->access & QMLX5_RW));
    MLX5_SET(mkc, mkc, a, !!(a->access & QMLX5_A));
    MLX5_SET(mkc, mkc, qpn, a->qpn ? a->qpn : 0xffffff);
    MLX5_SET(mkc, mkc, mkey_7_0, variant);
    MLX5_SET(mkc, mkc, length64, a->length64);
    MLX5_SET(mkc, mkc, pd, a->pd);
    MLX5_SET64(mkc, mkc, start_addr, a->va);
    MLX5_SET64(mkc, mkc, len, a->len);
    MLX5_SET(mkc, mkc, translations_octword_size,
             DIV_ROUND_UP(a->entries * unit, 16));
    MLX5_SET(mkc, mkc, log_page_size, a->log_page);
    if (a->sig) {
        MLX5_SET(mkc, mkc, bsf_en, 1);
        MLX5_SET(mkc, mkc, bsf_octword_size, 4);
    }
    for (uint32_t i = 0; i < a->nlist * unit / 8; i++) {
        stq_be_p(in + head + i * 8, a->list[i]);
    }
    st = create(d, in, head + bytes, &index);
    *key = index << 8 | variant;
    return st;
}

uint32_t qmlx5_mkey_new(QMlx5 *d, const QMlx5MkeyAttr *a)
{
    uint32_t key;

    g_assert_cmphex(qmlx5_mkey_cmd(d, a, &key), ==, 0);
    return key;
}

uint8_t qmlx5_mkey_destroy(QMlx5 *d, uint32_t key)
{
    return qmlx5_cmd_simple(d, QMLX5_DESTROY_MKEY, 0, key >> 8, 0, NULL);
}

uint32_t qmlx5_mkey_pa(QMlx5 *d, uint32_t pd, uint32_t access)
{
    QMlx5MkeyAttr a = { .pd = pd, .access = access, .length64 = true };

    return qmlx5_mkey_new(d, &a);
}

uint32_t qmlx5_mkey_mtt(QMlx5 *d, uint32_t pd, uint32_t access, uint64_t va,
                        uint64_t pa, uint64_t len)
{
    uint32_t n = DIV_ROUND_UP(len, QMLX5_PAGE);
    g_autofree uint64_t *list = g_new0(uint64_t, n + 1);
    QMlx5MkeyAttr a = {
        .mode = 1, .pd = pd, .access = access, .va = va, .len = len,
        .log_page = 12, .entries = n, .list = list, .nlist = n,
    };

    for (uint32_t i = 0; i < n; i++) {
        list[i] = pa + (uint64_t)i * QMLX5_PAGE;
    }
    return qmlx5_mkey_new(d, &a);
}

uint32_t qmlx5_mkey_odp(QMlx5 *d, uint32_t access, uint64_t va, uint32_t pages)
{
    QMlx5MkeyAttr a = {
        .mode = 1, .pd = d->pd, .free = true, .umr = true, .log_page = 12,
        .entries = pages, .va = va, .len = (uint64_t)pages * QMLX5_PAGE,
    };
    uint32_t key = qmlx5_mkey_new(d, &a);
    QMlx5Umr u = {
        .key = key, .flags = QMLX5_UMR_INLINE,
        .mask = QMLX5_M_LEN | QMLX5_M_PAGE_SIZE | QMLX5_M_START | QMLX5_M_PD |
                QMLX5_M_KEY | QMLX5_M_ACCESS | QMLX5_M_FREE,
        .access = access, .pd = d->pd, .va = va, .len = a.len, .log_page = 12,
        .variant = key, .xlt = DIV_ROUND_UP(pages, 2),
    };

    g_assert_cmphex(qmlx5_umr(d, &u), ==, 0);
    return key;
}

/* Queue pairs */

QMlx5QpAttr qmlx5_qp_attr(QMlx5 *d, uint8_t st)
{
    return (QMlx5QpAttr) {
        .st = st, .log_sq = 6, .log_rq = 4, .log_rq_stride = 2,
        .pd = d->pd, .uar = d->uar, .qkey = 0x11112222,
        .access = QMLX5_RR | QMLX5_RW | QMLX5_A,
        .retry = 7, .rnr_retry = 7, .min_rnr_nak = 1, .ack_timeout = 14,
        .log_msg_max = 30,
    };
}

static uint64_t rq_bytes(const QMlx5Qp *qp)
{
    return qp->a.rq_type ? 0 : (16ull << qp->a.log_rq_stride) << qp->a.log_rq;
}

uint32_t qmlx5_qp_in(QMlx5Qp *qp, uint8_t *in)
{
    const QMlx5QpAttr *a = &qp->a;
    uint8_t *qpc = MLX5_ADDR(in, create_qp_in, qpc);
    uint64_t bytes = rq_bytes(qp) + (64ull << a->log_sq);

    qmlx5_cmd_head(in, QMLX5_CREATE_QP, 0);
    MLX5_SET(qpc, qpc, st, a->st);
    MLX5_SET(qpc, qpc, pm_state, 3);
    MLX5_SET(qpc, qpc, pd, a->pd);
    MLX5_SET(qpc, qpc, uar_page, qp->uar);
    MLX5_SET(qpc, qpc, user_index, 0xabc000 + a->st);
    MLX5_SET(qpc, qpc, log_sq_size, a->log_sq);
    MLX5_SET(qpc, qpc, rq_type, a->rq_type);
    if (!a->rq_type) {
        MLX5_SET(qpc, qpc, log_rq_size, a->log_rq);
        MLX5_SET(qpc, qpc, log_rq_stride, a->log_rq_stride);
    }
    if (a->srq) {
        MLX5_SET(qpc, qpc, srqn_rmpn_xrqn, a->srq->srqn);
    }
    MLX5_SET(qpc, qpc, cqn_snd, a->scq->cqn);
    MLX5_SET(qpc, qpc, cqn_rcv, a->rcq->cqn);
    MLX5_SET(qpc, qpc, fre, a->fre);
    MLX5_SET(qpc, qpc, block_lb_mc, a->block_lb_mc);
    MLX5_SET64(qpc, qpc, dbr_addr, qp->dbr);
    return MLX5_BYTES(create_qp_in) +
           put_pages(in + MLX5_BYTES(create_qp_in), qp->buf, bytes);
}

QMlx5Qp *qmlx5_qp_new(QMlx5 *d, const QMlx5QpAttr *a)
{
    QMlx5Qp *qp = g_new0(QMlx5Qp, 1);
    g_autofree uint8_t *in = NULL;
    uint64_t bytes;
    uint32_t len;

    g_ptr_array_add(d->objs, qp);
    qp->d = d;
    qp->a = *a;
    qp->uar = a->uar;
    if (!qp->a.scq) {
        qp->a.scq = qmlx5_cq_new(d, 7);
    }
    if (!qp->a.rcq) {
        qp->a.rcq = qmlx5_cq_new(d, 7);
    }
    bytes = rq_bytes(qp) + (64ull << a->log_sq);
    in = g_malloc0(MLX5_BYTES(create_qp_in) + bytes / 512 + 16);
    qp->buf = qp->rq_buf = qmlx5_alloc(d->host, bytes);
    qp->sq_buf = qp->buf + rq_bytes(qp);
    qp->dbr = qmlx5_dbr_new(d);
    len = qmlx5_qp_in(qp, in);
    g_assert_cmphex(create(d, in, len, &qp->qpn), ==, 0);
    qp->remote_qpn = qp->qpn;
    qp->dlid = d->lid;
    return qp;
}

void qmlx5_qp_context(QMlx5Qp *qp, uint16_t op, uint8_t *in)
{
    const QMlx5QpAttr *a = &qp->a;
    uint8_t *qpc = MLX5_ADDR(in, rst2init_qp_in, qpc);
    uint8_t *path = MLX5_ADDR(qpc, qpc, primary_address_path);

    qmlx5_cmd_head(in, op, 0);
    MLX5_SET(in, rst2init_qp_in, qpn, qp->qpn);
    MLX5_SET(qpc, qpc, st, a->st);
    MLX5_SET(qpc, qpc, pm_state, 3);
    MLX5_SET(qpc, qpc, pd, a->pd);
    MLX5_SET(path, ads, vhca_port_num, 1);
    MLX5_SET(qpc, qpc, rre, !!(a->access & QMLX5_RR));
    MLX5_SET(qpc, qpc, rwe, !!(a->access & QMLX5_RW));
    MLX5_SET(qpc, qpc, rae, !!(a->access & QMLX5_A));
    MLX5_SET(qpc, qpc, atomic_mode, 1);
    MLX5_SET(qpc, qpc, q_key, a->qkey);
    MLX5_SET(qpc, qpc, counter_set_id, a->counter_set);
    MLX5_SET(qpc, qpc, mtu, 5);
    MLX5_SET(qpc, qpc, log_msg_max, a->log_msg_max);
    MLX5_SET(qpc, qpc, remote_qpn, qp->remote_qpn);
    MLX5_SET(path, ads, rlid, qp->dlid);
    MLX5_SET(path, ads, ack_timeout, a->ack_timeout);
    MLX5_SET(qpc, qpc, min_rnr_nak, a->min_rnr_nak);
    MLX5_SET(qpc, qpc, log_rra_max, 4);
    MLX5_SET(qpc, qpc, log_sra_max, 4);
    MLX5_SET(qpc, qpc, retry_count, a->retry);
    MLX5_SET(qpc, qpc, rnr_retry, a->rnr_retry);
}

uint8_t qmlx5_qp_modify(QMlx5Qp *qp, uint16_t op)
{
    uint8_t in[MLX5_BYTES(rst2init_qp_in)] = { };

    qmlx5_qp_context(qp, op, in);
    return qmlx5_cmd(qp->d, in, sizeof(in), NULL, 0);
}

void qmlx5_qp_connect(QMlx5Qp *a, QMlx5Qp *b)
{
    a->remote_qpn = b->qpn;
    a->dlid = b->d->lid;
    b->remote_qpn = a->qpn;
    b->dlid = a->d->lid;
}

void qmlx5_qp_rts(QMlx5Qp *qp)
{
    g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_RST2INIT_QP), ==, 0);
    g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_INIT2RTR_QP), ==, 0);
    g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_RTR2RTS_QP), ==, 0);
}

uint8_t qmlx5_qp_state(QMlx5Qp *qp)
{
    uint8_t in[16] = { }, out[MLX5_BYTES(query_qp_out)] = { };

    qmlx5_cmd_head(in, QMLX5_QUERY_QP, 0);
    stl_be_p(in + 8, qp->qpn);
    g_assert_cmphex(qmlx5_cmd(qp->d, in, sizeof(in), out, sizeof(out)), ==, 0);
    return MLX5_GET(MLX5_ADDR(out, query_qp_out, qpc), qpc, state);
}

uint8_t qmlx5_qp_destroy(QMlx5Qp *qp)
{
    return qmlx5_cmd_simple(qp->d, QMLX5_DESTROY_QP, 0, qp->qpn, 0, NULL);
}

QMlx5Qp *qmlx5_qp_self(QMlx5 *d, uint8_t st)
{
    QMlx5QpAttr a = qmlx5_qp_attr(d, st);
    QMlx5Qp *qp = qmlx5_qp_new(d, &a);

    qmlx5_qp_rts(qp);
    return qp;
}

void qmlx5_qp_revive(QMlx5Qp *qp)
{
    g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_2RST_QP), ==, 0);
    qp->sq_pi = qp->rq_pi = 0;
    qmlx5_put32(qp->d, qp->dbr, 0);
    qmlx5_put32(qp->d, qp->dbr + 4, 0);
    qmlx5_qp_rts(qp);
}

/* Shared receive queues: a linked list of WQEs behind an RMP */

QMlx5Srq *qmlx5_srq_new(QMlx5 *d, uint32_t pd, uint8_t log_size, uint16_t lwm)
{
    QMlx5Srq *s = g_new0(QMlx5Srq, 1);
    uint32_t head = MLX5_BYTES(create_rmp_in);
    g_autofree uint8_t *in = NULL;
    uint64_t bytes;
    uint8_t *wq;

    g_ptr_array_add(d->objs, s);
    s->d = d;
    s->log_size = log_size;
    s->log_stride = 6;
    bytes = 1ull << (log_size + s->log_stride);
    s->buf = qmlx5_alloc(d->host, bytes);
    s->dbr = qmlx5_dbr_new(d);
    for (unsigned i = 0; i < 1u << log_size; i++) {
        uint8_t next[16] = { };

        stw_be_p(next + 2, (i + 1) & ((1u << log_size) - 1));
        qmlx5_write(d, s->buf + (i << s->log_stride), next, sizeof(next));
    }
    in = g_malloc0(head + bytes / 512 + 8);
    qmlx5_cmd_head(in, QMLX5_CREATE_RMP, 0);
    MLX5_SET(MLX5_ADDR(in, create_rmp_in, ctx), rmpc, state, 1);
    wq = MLX5_ADDR(in, create_rmp_in, ctx__wq);
    MLX5_SET(wq, wq, wq_type, 0);
    MLX5_SET(wq, wq, lwm, lwm);
    MLX5_SET(wq, wq, pd, pd);
    MLX5_SET64(wq, wq, dbr_addr, s->dbr);
    MLX5_SET(wq, wq, log_wq_stride, s->log_stride);
    MLX5_SET(wq, wq, log_wq_sz, log_size);
    put_pages(MLX5_ADDR(wq, wq, pas), s->buf, bytes);
    g_assert_cmphex(create(d, in, head + 8 * DIV_ROUND_UP(bytes, QMLX5_PAGE),
                           &s->srqn), ==, 0);
    return s;
}

void qmlx5_srq_recv(QMlx5Srq *s, uint32_t lkey, uint64_t va, uint32_t len)
{
    uint64_t at = s->buf + ((uint64_t)s->tail << s->log_stride);
    uint8_t seg[32] = { }, next[4];

    stl_be_p(seg, len);
    stl_be_p(seg + 4, lkey);
    stq_be_p(seg + 8, va);
    stl_be_p(seg + 20, 0x100);    /* ends the list */
    qmlx5_write(s->d, at + 16, seg, sizeof(seg));
    qmlx5_read(s->d, at, next, sizeof(next));
    s->tail = lduw_be_p(next + 2);
    s->pi++;
    qmlx5_put32(s->d, s->dbr, s->pi);
}
