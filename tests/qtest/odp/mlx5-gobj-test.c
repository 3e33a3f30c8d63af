/*
 * QTest: mlx5 general objects, scheduling elements, rate table
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum {
    SET_PP_RATE_LIMIT = 0x780,
    CREATE_ELEM = 0x782, DESTROY_ELEM = 0x783, QUERY_ELEM = 0x784,
    MODIFY_ELEM = 0x785,
    CREATE_GOBJ = 0xa00, MODIFY_GOBJ = 0xa01, QUERY_GOBJ = 0xa02,
    DESTROY_GOBJ = 0xa03,
    CREATE_UCTX = 0xa04, DESTROY_UCTX = 0xa06,

    SCHED_ELEM = 0x26, RESERVED_QPN = 0x2c, AV_QP_MAPPING = 0x3a,
    NIC = 3, ESWITCH = 2,
    NODE = 0, QUEUE_GROUP = 4, VPORT = 1,
    SHARE = 1, MAX_BW = 2,
    NOBODY = 0xabcde,
    MSEC = 1000 * 1000,
};

typedef struct Gobj {
    uint8_t in[16 + 128], out[16 + 128];
    uint32_t len;                 /* of the object */
} Gobj;

static Gobj gobj(uint16_t type)
{
    Gobj g = { .len = type == SCHED_ELEM ? 128 : type == AV_QP_MAPPING ? 64
                                                                       : 16 };

    stw_be_p(g.in + 6, type);
    return g;
}

static uint8_t gobj_cmd(QMlx5 *d, Gobj *g, uint16_t op, uint16_t uid)
{
    stw_be_p(g->in, op);
    stw_be_p(g->in + 2, uid);
    memset(g->out, 0, sizeof(g->out));
    return qmlx5_cmd(d, g->in, 16 + g->len, g->out, 16 + g->len);
}

static uint32_t gobj_id(const Gobj *g)
{
    return qmlx5_be32(g->out + 8);
}

/* A command on object @id of @type. */
static uint8_t gobj_on(QMlx5 *d, uint16_t op, uint16_t type, uint16_t uid,
                       uint32_t id)
{
    Gobj g = gobj(type);

    stl_be_p(g.in + 8, id);
    return gobj_cmd(d, &g, op, uid);
}

static uint16_t uctx_new(QMlx5 *d)
{
    uint8_t in[32] = { }, out[16] = { };

    qmlx5_cmd_head(in, CREATE_UCTX, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    return MLX5_GET(out, create_uctx_out, uid);
}

static uint8_t uctx_destroy(QMlx5 *d, uint16_t uid)
{
    uint8_t in[16] = { }, out[16];

    qmlx5_cmd_head(in, DESTROY_UCTX, 0);
    MLX5_SET(in, destroy_uctx_in, uid, uid);
    return qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
}

/* What is common to all types. */
static void test_common(void)
{
    QMlx5 *d = qmlx5_start("");
    Gobj g = gobj(RESERVED_QPN);
    uint8_t cap[4096], out[16];

    qmlx5_query_cap(d, 0, true, cap);
    g_assert_cmphex(MLX5_GET64(cap, cmd_hca_cap, general_obj_types), ==,
                    1ull << SCHED_ELEM | 1ull << RESERVED_QPN |
                    1ull << AV_QP_MAPPING);
    for (uint16_t op = CREATE_GOBJ; op <= DESTROY_GOBJ; op++) {
        g = gobj(0x7);
        g_assert_cmphex(gobj_cmd(d, &g, op, 0), ==, QMLX5_BAD_PARAM);
    }
    for (uint16_t op = MODIFY_GOBJ; op <= DESTROY_GOBJ; op++) {
        g_assert_cmphex(gobj_on(d, op, SCHED_ELEM, 0, NOBODY), ==,
                        QMLX5_BAD_RES);
        g_assert_cmphex(gobj_on(d, op, RESERVED_QPN, 0, NOBODY), ==,
                        QMLX5_BAD_RES);
        g_assert_cmphex(gobj_on(d, op, AV_QP_MAPPING, 0, 0), ==,
                        QMLX5_BAD_RES);
    }
    /* Short ones. */
    g = gobj(AV_QP_MAPPING);
    stw_be_p(g.in, CREATE_GOBJ);
    g_assert_cmphex(qmlx5_cmd(d, g.in, 16 + 60, out, 16), ==,
                    QMLX5_BAD_INP_LEN);
    stw_be_p(g.in, MODIFY_GOBJ);
    g_assert_cmphex(qmlx5_cmd(d, g.in, 16 + 60, out, 16), ==,
                    QMLX5_BAD_INP_LEN);
    stw_be_p(g.in, QUERY_GOBJ);
    g_assert_cmphex(qmlx5_cmd(d, g.in, 16 + 64, out, 16), ==,
                    QMLX5_BAD_OUTP_LEN);
    /* An alias of another function's object. */
    g = gobj(RESERVED_QPN);
    g.in[12] = 0x80 | 3;
    g_assert_cmphex(gobj_cmd(d, &g, CREATE_GOBJ, 0), ==, QMLX5_BAD_PARAM);
    qmlx5_stop(d);
}

static void test_reserved_qpn(void)
{
    QMlx5 *d = qmlx5_start("");
    uint16_t uid = uctx_new(d), other = uctx_new(d);
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    Gobj g = gobj(RESERVED_QPN);
    uint32_t first = 0, second;
    uint8_t cap[4096];
    QMlx5Qp *qp;

    qmlx5_query_cap(d, 0x20, true, cap);
    g_assert_cmpint(mlx5_field_get(cap, 0x93, 5), ==, 3);
    /* A range of exactly what the capability says. */
    for (int log = 0; log < 32; log++) {
        g.in[12] = log;
        g_assert_cmphex(gobj_cmd(d, &g, CREATE_GOBJ, uid), ==,
                        log == 3 ? 0 : QMLX5_BAD_PARAM);
        if (log == 3) {
            first = gobj_id(&g);
        }
    }
    g.in[12] = 3;
    g_assert_cmphex(gobj_cmd(d, &g, CREATE_GOBJ, uid), ==, 0);
    second = gobj_id(&g);
    g_assert_cmphex(first & 7, ==, 0);
    g_assert_cmphex(second & 7, ==, 0);
    g_assert_cmphex(second, !=, first);
    g_assert_cmphex(first, <, 1 << 24);
    /* No queue pair gets one of them. */
    for (int i = 0; i < 100; i++) {
        qp = qmlx5_qp_new(d, &a);
        g_assert_cmphex(qp->qpn & ~7, !=, first);
        g_assert_cmphex(qp->qpn & ~7, !=, second);
    }
    /* Nobody is there: like any number without a queue pair. */
    qp->remote_qpn = first;
    qmlx5_qp_rts(qp);
    qmlx5_post_send(qp, QMLX5_OP_SEND, d->lkey, d->vectors, 8);
    qmlx5_cq_none(qp->a.scq);

    g_assert_cmphex(gobj_on(d, QUERY_GOBJ, RESERVED_QPN, uid, first), ==, 0);
    g_assert_cmphex(gobj_on(d, QUERY_GOBJ, RESERVED_QPN, uid, first + 1), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(gobj_on(d, MODIFY_GOBJ, RESERVED_QPN, uid, first), ==,
                    QMLX5_BAD_PARAM);
    for (uint16_t op = MODIFY_GOBJ; op <= DESTROY_GOBJ; op++) {
        g_assert_cmphex(gobj_on(d, op, RESERVED_QPN, other, first), ==,
                        QMLX5_BAD_RES);
    }
    g_assert_cmphex(uctx_destroy(d, uid), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(gobj_on(d, DESTROY_GOBJ, RESERVED_QPN, uid, first), ==, 0);
    g_assert_cmphex(gobj_on(d, DESTROY_GOBJ, RESERVED_QPN, uid, first), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(gobj_on(d, DESTROY_GOBJ, RESERVED_QPN, uid, second), ==,
                    0);
    g_assert_cmphex(uctx_destroy(d, uid), ==, 0);
    qmlx5_stop(d);
}

static void test_av_map(void)
{
    QMlx5 *d = qmlx5_start("");
    uint16_t uid = uctx_new(d);
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_UD);
    QMlx5Qp *qp = qmlx5_qp_new(d, &a);
    Gobj g = gobj(AV_QP_MAPPING);
    uint32_t id;

    stl_be_p(g.in + 16 + 12, qp->qpn);
    g.in[16 + 0x1c] = 5;
    stl_be_p(g.in + 16 + 0x2c, 2 << 20);
    memset(g.in + 16 + 0x30, 0xfe, 16);
    stl_be_p(g.in + 16 + 0x2c, 99 << 20);
    g_assert_cmphex(gobj_cmd(d, &g, CREATE_GOBJ, 0), ==, QMLX5_BAD_INDEX);
    stl_be_p(g.in + 16 + 0x2c, 2 << 20);
    g_assert_cmphex(gobj_cmd(d, &g, CREATE_GOBJ, 0), ==, 0);
    id = gobj_id(&g);
    stl_be_p(g.in + 8, id);
    g_assert_cmphex(gobj_cmd(d, &g, QUERY_GOBJ, 0), ==, 0);
    g_assert_cmphex(qmlx5_be32(g.out + 16 + 12), ==, qp->qpn);
    g_assert_cmphex(g.out[16 + 0x1c], ==, 5);
    g_assert_cmphex(qmlx5_be32(g.out + 16 + 0x2c), ==, 2 << 20);
    g_assert_cmphex(g.out[16 + 0x30], ==, 0xfe);
    g_assert_cmphex(g.out[16 + 0x3f], ==, 0xfe);
    g_assert_cmphex(gobj_cmd(d, &g, MODIFY_GOBJ, 0), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(gobj_cmd(d, &g, QUERY_GOBJ, uid), ==, QMLX5_BAD_RES);
    /* It does not hold the queue pair. */
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    g_assert_cmphex(gobj_on(d, DESTROY_GOBJ, AV_QP_MAPPING, 0, id), ==, 0);
    stl_be_p(g.in + 8, 0);
    g_assert_cmphex(gobj_cmd(d, &g, CREATE_GOBJ, 0), ==, QMLX5_BAD_RES);
    qmlx5_stop(d);
}

/* Scheduling elements. */

static void *elem_ctx(Gobj *g)
{
    return g->in + 16 + 0x20;
}

static uint8_t elem_try(QMlx5 *d, uint16_t uid, uint8_t type, uint32_t parent,
                        uint32_t share, uint32_t max, uint32_t *id)
{
    Gobj g = gobj(SCHED_ELEM);
    uint8_t *c = elem_ctx(&g), status;

    g.in[16 + 8] = NIC;
    MLX5_SET(c, scheduling_context, element_type, type);
    MLX5_SET(c, scheduling_context, parent_element_id, parent);
    MLX5_SET(c, scheduling_context, bw_share, share);
    MLX5_SET(c, scheduling_context, max_average_bw, max);
    status = gobj_cmd(d, &g, CREATE_GOBJ, uid);
    *id = gobj_id(&g);
    return status;
}

static uint32_t elem_new(QMlx5 *d, uint8_t type, uint32_t parent,
                         uint32_t share, uint32_t max)
{
    uint32_t id;

    g_assert_cmphex(elem_try(d, 0, type, parent, share, max, &id), ==, 0);
    return id;
}

static uint8_t elem_modify(QMlx5 *d, uint32_t id, uint8_t type,
                           uint64_t select, uint32_t share, uint32_t max)
{
    Gobj g = gobj(SCHED_ELEM);
    uint8_t *c = elem_ctx(&g);

    stl_be_p(g.in + 8, id);
    stq_be_p(g.in + 16, select);
    g.in[16 + 8] = NIC;
    MLX5_SET(c, scheduling_context, element_type, type);
    MLX5_SET(c, scheduling_context, bw_share, share);
    MLX5_SET(c, scheduling_context, max_average_bw, max);
    return gobj_cmd(d, &g, MODIFY_GOBJ, 0);
}

static uint8_t elem_destroy(QMlx5 *d, uint32_t id)
{
    return gobj_on(d, DESTROY_GOBJ, SCHED_ELEM, 0, id);
}

/* RTS2RTS or INIT2INIT with groups for requests and answers. */
static uint8_t set_groups(QMlx5Qp *qp, uint16_t op, uint32_t req,
                          uint32_t resp)
{
    uint8_t in[0x1d0] = { }, out[16];

    qmlx5_qp_context(qp, op, in);
    in[8] |= 0x80;
    stq_be_p(in + 0x108, 2);
    stl_be_p(in + 0x114, req);
    stl_be_p(in + 0x118, resp);
    return qmlx5_cmd(qp->d, in, sizeof(in), out, sizeof(out));
}

static void test_elements(void)
{
    QMlx5 *d = qmlx5_start("");
    uint16_t uid = uctx_new(d), other = uctx_new(d);
    uint32_t root = elem_new(d, NODE, 0, 0, 0), node, leaf, id, deep;
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC), u = qmlx5_qp_attr(d, QMLX5_UD);
    QMlx5Qp *qp = qmlx5_qp_new(d, &a), *ud = qmlx5_qp_new(d, &u);
    uint8_t cap[4096];
    Gobj g;

    qmlx5_query_cap(d, 0xc, true, cap);
    g_assert_cmphex(MLX5_GET(cap, qos_cap, nic_element_type), ==,
                    1 << NODE | 1 << QUEUE_GROUP);
    /* Refusals of CREATE. */
    g_assert_cmphex(elem_try(d, 0, QUEUE_GROUP, 0, 0, 0, &id), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(elem_try(d, 0, NODE, NOBODY, 0, 0, &id), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(elem_try(d, 0, VPORT, root, 0, 0, &id), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(elem_try(d, 0, NODE, root, 101, 0, &id), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(elem_try(d, uid, NODE, root, 0, 0, &id), ==,
                    QMLX5_BAD_RES);
    g = gobj(SCHED_ELEM);
    g.in[16 + 8] = ESWITCH;
    g_assert_cmphex(gobj_cmd(d, &g, CREATE_GOBJ, 0), ==, QMLX5_BAD_PARAM);
    g.in[16 + 8] = NIC;
    MLX5_SET(elem_ctx(&g), scheduling_context,
             element_attributes__tsar__tsar_type, 1);
    g_assert_cmphex(gobj_cmd(d, &g, CREATE_GOBJ, 0), ==, QMLX5_BAD_PARAM);
    deep = root;
    for (int i = 1; i < 8; i++) {
        deep = elem_new(d, NODE, deep, 1, 0);
    }
    g_assert_cmphex(elem_try(d, 0, NODE, deep, 0, 0, &id), ==, QMLX5_LIM);

    node = elem_new(d, NODE, root, 10, 0);
    leaf = elem_new(d, QUEUE_GROUP, node, 0, 0);
    g_assert_cmphex(elem_try(d, 0, NODE, leaf, 0, 0, &id), ==, QMLX5_BAD_RES);
    /* What has children stays. */
    g_assert_cmphex(elem_destroy(d, root), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(elem_destroy(d, node), ==, QMLX5_BAD_RES_STATE);

    /* MODIFY takes what is selected. */
    g_assert_cmphex(elem_modify(d, leaf, QUEUE_GROUP, SHARE, 7, 99), ==, 0);
    g_assert_cmphex(elem_modify(d, leaf, QUEUE_GROUP, MAX_BW, 1, 33), ==, 0);
    g_assert_cmphex(elem_modify(d, leaf, NODE, SHARE, 1, 1), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(elem_modify(d, leaf, QUEUE_GROUP, 4, 1, 1), ==,
                    QMLX5_BAD_PARAM);
    g_assert_cmphex(elem_modify(d, leaf, QUEUE_GROUP, SHARE, 101, 1), ==,
                    QMLX5_BAD_PARAM);
    g = gobj(SCHED_ELEM);
    stl_be_p(g.in + 8, leaf);
    g_assert_cmphex(gobj_cmd(d, &g, QUERY_GOBJ, 0), ==, 0);
    g_assert_cmphex(g.out[16 + 8], ==, NIC);
    g_assert_cmpint(MLX5_GET(g.out + 48, scheduling_context, element_type),
                    ==, QUEUE_GROUP);
    g_assert_cmpint(MLX5_GET(g.out + 48, scheduling_context,
                             parent_element_id), ==, node);
    g_assert_cmpint(MLX5_GET(g.out + 48, scheduling_context, bw_share), ==, 7);
    g_assert_cmpint(MLX5_GET(g.out + 48, scheduling_context, max_average_bw),
                    ==, 33);

    /* Queue pairs: groups only, those of the user, answers where any are. */
    qmlx5_qp_rts(qp);
    qmlx5_qp_modify(ud, QMLX5_RST2INIT_QP);
    g_assert_cmphex(set_groups(qp, QMLX5_RTS2RTS_QP, node, 0), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(set_groups(qp, QMLX5_RTS2RTS_QP, 0, NOBODY), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(set_groups(ud, QMLX5_INIT2INIT_QP, 0, leaf), ==,
                    QMLX5_BAD_RES);
    g_assert_cmphex(set_groups(ud, QMLX5_INIT2INIT_QP, leaf, 0), ==, 0);
    g_assert_cmphex(set_groups(qp, QMLX5_RTS2RTS_QP, leaf, leaf), ==, 0);
    g_assert_cmphex(elem_destroy(d, leaf), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_qp_modify(ud, QMLX5_2RST_QP), ==, 0);
    g_assert_cmphex(set_groups(qp, QMLX5_RTS2RTS_QP, 0, leaf), ==, 0);
    g_assert_cmphex(elem_destroy(d, leaf), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(qmlx5_qp_destroy(qp), ==, 0);
    g_assert_cmphex(elem_destroy(d, leaf), ==, 0);
    g_assert_cmphex(elem_destroy(d, node), ==, 0);

    /* Of a user context: not for others, and it cannot end before them. */
    g_assert_cmphex(elem_try(d, uid, NODE, 0, 0, 0, &id), ==, 0);
    for (uint16_t op = MODIFY_GOBJ; op <= DESTROY_GOBJ; op++) {
        g_assert_cmphex(gobj_on(d, op, SCHED_ELEM, other, id), ==,
                        QMLX5_BAD_RES);
    }
    g_assert_cmphex(uctx_destroy(d, uid), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(gobj_on(d, DESTROY_GOBJ, SCHED_ELEM, uid, id), ==, 0);
    g_assert_cmphex(uctx_destroy(d, uid), ==, 0);
    qmlx5_stop(d);
}

/* The same elements by their own commands. */
static void test_element_commands(void)
{
    QMlx5 *d = qmlx5_start("");
    uint8_t in[MLX5_BYTES(create_scheduling_element_in)] = { };
    uint8_t out[MLX5_BYTES(query_scheduling_element_out)] = { };
    uint8_t *c = MLX5_ADDR(in, create_scheduling_element_in,
                           scheduling_context);
    uint32_t id;

    qmlx5_cmd_head(in, CREATE_ELEM, 0);
    MLX5_SET(in, create_scheduling_element_in, scheduling_hierarchy, NIC);
    MLX5_SET(c, scheduling_context, max_average_bw, 5);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in) - 4, out, sizeof(out)), ==,
                    QMLX5_BAD_INP_LEN);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    id = MLX5_GET(out, create_scheduling_element_out, scheduling_element_id);
    MLX5_SET(in, create_scheduling_element_in, scheduling_hierarchy, ESWITCH);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==,
                    QMLX5_BAD_PARAM);

    for (uint16_t op = DESTROY_ELEM; op <= MODIFY_ELEM; op++) {
        memset(in, 0, sizeof(in));
        qmlx5_cmd_head(in, op, 0);
        MLX5_SET(in, query_scheduling_element_in, scheduling_element_id,
                 NOBODY);
        g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==,
                        QMLX5_BAD_RES);
    }
    MLX5_SET(in, modify_scheduling_element_in, scheduling_element_id, id);
    MLX5_SET(in, modify_scheduling_element_in, scheduling_hierarchy, NIC);
    MLX5_SET(in, modify_scheduling_element_in, modify_bitmask, MAX_BW);
    MLX5_SET(c, scheduling_context, max_average_bw, 6);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    qmlx5_cmd_head(in, QUERY_ELEM, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    c = MLX5_ADDR(out, query_scheduling_element_out, scheduling_context);
    g_assert_cmpint(MLX5_GET(c, scheduling_context, max_average_bw), ==, 6);
    qmlx5_cmd_head(in, DESTROY_ELEM, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==,
                    QMLX5_BAD_RES);
    qmlx5_stop(d);
}

/* Posts @n writes of 1000 bytes. */
static void post_writes(QMlx5Qp *qp, uint32_t key, uint64_t data, int n)
{
    QMlx5Wqe w;

    for (int i = 0; i < n; i++) {
        qmlx5_wqe(&w, QMLX5_OP_WRITE, QMLX5_F_SIGNALED, 0);
        qmlx5_wqe_raddr(&w, data + 2048, key);
        qmlx5_wqe_data(&w, qp->d->lkey, data, 1000);
        qmlx5_queue(qp, &w);
    }
    qmlx5_ring(qp);
}

static int completions(QMlx5Cq *cq)
{
    uint8_t cqe[64];
    int n = 0;

    while (qmlx5_cq_poll(cq, cqe)) {
        g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
        n++;
    }
    return n;
}

/* @ms of virtual time, in steps that are short against a request's time. */
static void pass_ms(QMlx5 *d, int ms)
{
    for (int i = 0; i < 4 * ms; i++) {
        qmlx5_clock(d, MSEC / 4);
    }
}

static QMlx5Qp *self_in(QMlx5 *d, uint32_t req, uint32_t resp)
{
    QMlx5QpAttr a = qmlx5_qp_attr(d, QMLX5_RC);
    QMlx5Qp *qp;

    a.scq = qmlx5_cq_new(d, 6);
    a.log_sq = 6;
    qp = qmlx5_qp_new(d, &a);
    qmlx5_qp_rts(qp);
    g_assert_cmphex(set_groups(qp, QMLX5_RTS2RTS_QP, req, resp), ==, 0);
    return qp;
}

/* 1000 bytes at 8 Mbit/s are 1 ms; up to 4 ms are made up for. */
static void test_limit(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    uint64_t data = qmlx5_alloc(d->host, QMLX5_PAGE);
    uint32_t root = elem_new(d, NODE, 0, 0, 0);
    uint32_t leaf = elem_new(d, QUEUE_GROUP, root, 0, 8);
    QMlx5Qp *qp = self_in(d, leaf, 0), *reader;
    QMlx5Qp *victim = self_in(d, leaf, 0);
    int n;

    pass_ms(d, 5);
    post_writes(qp, all, data, 30);
    n = completions(qp->a.scq);
    g_assert_cmpint(n, >=, 4);
    g_assert_cmpint(n, <=, 5);
    pass_ms(d, 10);
    n += completions(qp->a.scq);
    g_assert_cmpint(n, >=, 13);
    g_assert_cmpint(n, <=, 15);
    /* Without limit from the next request on. */
    g_assert_cmphex(elem_modify(d, leaf, QUEUE_GROUP, MAX_BW, 0, 0), ==, 0);
    pass_ms(d, 2);
    g_assert_cmpint(n + completions(qp->a.scq), ==, 30);

    /* Reads are the responder's. */
    g_assert_cmphex(elem_modify(d, leaf, QUEUE_GROUP, MAX_BW, 0, 8), ==, 0);
    reader = self_in(d, 0, leaf);
    pass_ms(d, 10);
    for (int i = 0; i < 20; i++) {
        qmlx5_post_rdma(reader, QMLX5_OP_READ, d->lkey, data + 1024, 1000,
                        all, data);
    }
    n = completions(reader->a.scq);
    g_assert_cmpint(n, >=, 4);
    g_assert_cmpint(n, <=, 5);
    pass_ms(d, 20);
    g_assert_cmpint(n + completions(reader->a.scq), ==, 20);
    /* ... its writes nobody's. */
    post_writes(reader, all, data, 20);
    g_assert_cmpint(completions(reader->a.scq), ==, 20);

    /* One that waits for its turn may be destroyed. */
    post_writes(victim, all, data, 20);
    g_assert_cmphex(qmlx5_qp_destroy(victim), ==, 0);
    pass_ms(d, 5);
    qmlx5_stop(d);
}

/* Two siblings below a limit, shares 3 to 1. */
static void test_shares(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t all = qmlx5_mkey_pa(d, d->pd, QMLX5_ALL);
    uint64_t data = qmlx5_alloc(d->host, QMLX5_PAGE);
    uint32_t root = elem_new(d, NODE, 0, 0, 0);
    uint32_t node = elem_new(d, NODE, root, 0, 8);
    uint32_t big = elem_new(d, QUEUE_GROUP, node, 30, 0);
    uint32_t small = elem_new(d, QUEUE_GROUP, node, 10, 0);
    QMlx5Qp *a = self_in(d, big, 0), *b = self_in(d, small, 0);
    int na, nb;

    post_writes(a, all, data, 60);
    post_writes(b, all, data, 60);
    pass_ms(d, 20);
    completions(a->a.scq);
    completions(b->a.scq);
    pass_ms(d, 30);
    na = completions(a->a.scq);
    nb = completions(b->a.scq);
    g_test_message("shares 3 to 1: %d and %d of %d", na, nb, na + nb);
    g_assert_cmpint(na + nb, >=, 26);
    g_assert_cmpint(na + nb, <=, 34);
    g_assert_cmpint(na, >=, 2 * nb);
    g_assert_cmpint(na, <=, 4 * nb);
    /* What one leaves is the other's. */
    g_assert_cmphex(qmlx5_qp_destroy(a), ==, 0);
    completions(b->a.scq);
    pass_ms(d, 20);
    nb = completions(b->a.scq);
    g_assert_cmpint(nb, >=, 10); /* a quarter would be 5 */
    qmlx5_stop(d);
}

/* The rate table. */

static uint8_t set_rate(QMlx5 *d, uint16_t uid, uint32_t index, uint32_t kbps,
                        uint32_t burst, uint32_t typical)
{
    uint8_t in[MLX5_BYTES(set_pp_rate_limit_in)] = { }, out[16];
    uint8_t *c = MLX5_ADDR(in, set_pp_rate_limit_in, ctx);

    qmlx5_cmd_head(in, SET_PP_RATE_LIMIT, 0);
    stw_be_p(in + 2, uid);
    MLX5_SET(in, set_pp_rate_limit_in, rate_limit_index, index);
    MLX5_SET(c, set_pp_rate_limit_context, rate_limit, kbps);
    MLX5_SET(c, set_pp_rate_limit_context, burst_upper_bound, burst);
    MLX5_SET(c, set_pp_rate_limit_context, typical_packet_size, typical);
    return qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void test_rates(void)
{
    QMlx5 *d = qmlx5_start("");
    uint16_t uid = uctx_new(d), other = uctx_new(d);
    uint32_t size, max;
    uint8_t cap[4096], in[16] = { }, out[16];

    qmlx5_query_cap(d, 0xc, true, cap);
    size = MLX5_GET(cap, qos_cap, packet_pacing_rate_table_size);
    max = MLX5_GET(cap, qos_cap, packet_pacing_max_rate);
    g_assert_cmphex(set_rate(d, 0, 0, 100, 0, 0), ==, QMLX5_BAD_INDEX);
    g_assert_cmphex(set_rate(d, 0, size, 100, 0, 0), ==, QMLX5_BAD_INDEX);
    g_assert_cmphex(set_rate(d, 0, 1, max + 1, 0, 0), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(set_rate(d, 0, 1, 100, 1, 0), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(set_rate(d, 0, 1, 100, 0, 1), ==, QMLX5_BAD_PARAM);
    qmlx5_cmd_head(in, SET_PP_RATE_LIMIT, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==,
                    QMLX5_BAD_INP_LEN);
    for (uint32_t i = 1; i < size; i++) {
        g_assert_cmphex(set_rate(d, uid, i, max, 0, 0), ==, 0);
    }
    g_assert_cmphex(set_rate(d, other, 1, 5, 0, 0), ==, QMLX5_BAD_RES);
    g_assert_cmphex(set_rate(d, other, 1, 0, 0, 0), ==, QMLX5_BAD_RES);
    g_assert_cmphex(uctx_destroy(d, uid), ==, QMLX5_BAD_RES_STATE);
    for (uint32_t i = 1; i < size; i++) {
        g_assert_cmphex(set_rate(d, uid, i, 0, 0, 0), ==, 0);
        g_assert_cmphex(set_rate(d, uid, i, 0, 0, 0), ==, 0);
    }
    g_assert_cmphex(uctx_destroy(d, uid), ==, 0);
    g_assert_cmphex(set_rate(d, other, 1, 5, 0, 0), ==, 0);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/gobj/common", test_common);
    qtest_add_func("/mlx5/gobj/reserved-qpn", test_reserved_qpn);
    qtest_add_func("/mlx5/gobj/av-map", test_av_map);
    qtest_add_func("/mlx5/gobj/elements", test_elements);
    qtest_add_func("/mlx5/gobj/element-commands", test_element_commands);
    qtest_add_func("/mlx5/gobj/limit", test_limit);
    qtest_add_func("/mlx5/gobj/shares", test_shares);
    qtest_add_func("/mlx5/gobj/rates", test_rates);
    return g_test_run();
}
