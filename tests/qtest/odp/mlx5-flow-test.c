/*
 * QTest: mlx5 flow tables, groups, entries and counters
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

enum {
    SET_ROOT = 0x92f, CREATE_FT = 0x930, DESTROY_FT = 0x931, QUERY_FT = 0x932,
    CREATE_FG = 0x933, DESTROY_FG = 0x934, SET_FTE = 0x936, DELETE_FTE = 0x938,
    ALLOC_FC = 0x939, DEALLOC_FC = 0x93a, QUERY_FC = 0x93b, MODIFY_FT = 0x93c,
    CREATE_UCTX = 0xa04, DESTROY_UCTX = 0xa06,

    RX = 7, TX = 8, NIC_RX = 0,
    ALLOW = 1, DROP = 2, FORWARD = 4, COUNT = 8, REFORMAT = 0x10,
    MISC = 2,
    NOBODY = 0xabcdef,
    FTE_BYTES = MLX5_AT(set_fte_in, flow_context) +
                MLX5_AT(flow_context, destination),
    MSEC = 1000 * 1000,
};

static uint16_t uctx_new(QMlx5 *d)
{
    uint8_t in[32] = { }, out[16] = { };

    qmlx5_cmd_head(in, CREATE_UCTX, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    return MLX5_GET(out, create_uctx_out, uid);
}

/* Tables. */

typedef struct Ft {
    uint16_t uid;
    uint8_t type, level, log_size, miss_action;
    uint32_t miss_id;
} Ft;

static uint8_t ft_try(QMlx5 *d, const Ft *f, uint32_t *id)
{
    uint8_t in[MLX5_BYTES(create_flow_table_in)] = { }, out[16] = { }, status;
    uint8_t *c = MLX5_ADDR(in, create_flow_table_in, flow_table_context);

    qmlx5_cmd_head(in, CREATE_FT, 0);
    stw_be_p(in + 2, f->uid);
    MLX5_SET(in, create_flow_table_in, table_type, f->type);
    MLX5_SET(c, flow_table_context, level, f->level);
    MLX5_SET(c, flow_table_context, log_size, f->log_size);
    MLX5_SET(c, flow_table_context, table_miss_action, f->miss_action);
    MLX5_SET(c, flow_table_context, table_miss_id, f->miss_id);
    status = qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
    *id = MLX5_GET(out, create_flow_table_out, table_id);
    return status;
}

static uint32_t ft_new(QMlx5 *d, uint8_t type, uint8_t level, uint32_t miss)
{
    Ft f = { .type = type, .level = level, .log_size = 4,
             .miss_action = miss ? 1 : 0, .miss_id = miss };
    uint32_t id;

    g_assert_cmphex(ft_try(d, &f, &id), ==, 0);
    return id;
}

/* Commands whose input names a table (and an op_mod, dwords of theirs). */
static uint8_t ft_cmd(QMlx5 *d, uint16_t op, uint16_t op_mod, uint8_t type,
                      uint32_t id)
{
    uint8_t in[64] = { }, out[MLX5_BYTES(query_flow_table_out)];

    qmlx5_cmd_head(in, op, op_mod);
    MLX5_SET(in, destroy_flow_table_in, table_type, type);
    MLX5_SET(in, destroy_flow_table_in, table_id, id);
    return qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
}

static uint8_t ft_modify(QMlx5 *d, uint32_t id, uint32_t select,
                         uint8_t action, uint32_t miss)
{
    uint8_t in[MLX5_BYTES(modify_flow_table_in)] = { }, out[16];
    uint8_t *c = MLX5_ADDR(in, modify_flow_table_in, flow_table_context);

    qmlx5_cmd_head(in, MODIFY_FT, 0);
    MLX5_SET(in, destroy_flow_table_in, table_type, RX);
    MLX5_SET(in, destroy_flow_table_in, table_id, id);
    MLX5_SET(in, modify_flow_table_in, modify_field_select, select);
    MLX5_SET(c, flow_table_context, table_miss_action, action);
    MLX5_SET(c, flow_table_context, table_miss_id, miss);
    return qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
}

static void test_tables(void)
{
    QMlx5 *d = qmlx5_start("");
    uint16_t uid = uctx_new(d);
    uint32_t low = ft_new(d, RX, 10, 0), high = ft_new(d, RX, 20, 0), id;
    uint32_t tx = ft_new(d, TX, 30, 0);
    uint8_t in[64] = { }, out[MLX5_BYTES(query_flow_table_out)], *c;
    Ft f;

    /* Types of Ethernet, other ports, sizes, actions and levels. */
    f = (Ft) { .type = NIC_RX };
    g_assert_cmphex(ft_try(d, &f, &id), ==, QMLX5_BAD_PARAM);
    f = (Ft) { .type = RX, .log_size = 17 };
    g_assert_cmphex(ft_try(d, &f, &id), ==, QMLX5_BAD_PARAM);
    f = (Ft) { .type = RX, .miss_action = 2 };
    g_assert_cmphex(ft_try(d, &f, &id), ==, QMLX5_BAD_PARAM);
    f = (Ft) { .type = RX, .level = 20, .miss_action = 1, .miss_id = high };
    g_assert_cmphex(ft_try(d, &f, &id), ==, QMLX5_BAD_PARAM);
    f = (Ft) { .type = RX, .miss_action = 1, .miss_id = tx };
    g_assert_cmphex(ft_try(d, &f, &id), ==, QMLX5_BAD_RES);
    f = (Ft) { .type = RX, .miss_action = 1, .miss_id = NOBODY };
    g_assert_cmphex(ft_try(d, &f, &id), ==, QMLX5_BAD_RES);
    f = (Ft) { .type = RX, .uid = uid, .miss_action = 1, .miss_id = high };
    g_assert_cmphex(ft_try(d, &f, &id), ==, QMLX5_BAD_RES);
    qmlx5_cmd_head(in, CREATE_FT, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, 60, out, 16), ==, QMLX5_BAD_INP_LEN);

    /* A miss that goes on holds where it goes. */
    g_assert_cmphex(ft_modify(d, low, 1, 1, high), ==, 0);
    g_assert_cmphex(ft_cmd(d, DESTROY_FT, 0, RX, high), ==,
                    QMLX5_BAD_RES_STATE);
    qmlx5_cmd_head(in, QUERY_FT, 0);
    MLX5_SET(in, destroy_flow_table_in, table_type, RX);
    MLX5_SET(in, destroy_flow_table_in, table_id, low);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    c = MLX5_ADDR(out, query_flow_table_out, flow_table_context);
    g_assert_cmpint(MLX5_GET(c, flow_table_context, level), ==, 10);
    g_assert_cmpint(MLX5_GET(c, flow_table_context, log_size), ==, 4);
    g_assert_cmpint(MLX5_GET(c, flow_table_context, table_miss_id), ==, high);
    g_assert_cmphex(ft_modify(d, high, 1, 1, low), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(ft_modify(d, low, 1, 1, NOBODY), ==, QMLX5_BAD_RES);
    g_assert_cmphex(ft_modify(d, low, 2, 0, 0), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(ft_modify(d, low, 1, 0, 0), ==, 0);
    g_assert_cmphex(ft_cmd(d, DESTROY_FT, 0, RX, high), ==, 0);

    /* Names: unknown, of another type, of another owner. */
    for (uint16_t op = SET_ROOT; op <= QUERY_FT; op++) {
        if (op == CREATE_FT) {
            continue;
        }
        g_assert_cmphex(ft_cmd(d, op, 0, RX, NOBODY), ==, QMLX5_BAD_RES);
        g_assert_cmphex(ft_cmd(d, op, 0, TX, low), ==, QMLX5_BAD_RES);
        g_assert_cmphex(ft_cmd(d, op, 0, NIC_RX, low), ==, QMLX5_BAD_PARAM);
    }
    f = (Ft) { .type = TX, .uid = uid, .level = 1 };
    g_assert_cmphex(ft_try(d, &f, &id), ==, 0);
    memset(in, 0, sizeof(in));
    qmlx5_cmd_head(in, DESTROY_UCTX, 0);
    MLX5_SET(in, destroy_uctx_in, uid, uid);
    g_assert_cmphex(qmlx5_cmd(d, in, 16, out, 16), ==, QMLX5_BAD_RES_STATE);
    memset(in, 0, sizeof(in));
    qmlx5_cmd_head(in, DESTROY_FT, 0);
    MLX5_SET(in, destroy_flow_table_in, table_type, RX);
    MLX5_SET(in, destroy_flow_table_in, table_id, low);
    stw_be_p(in + 2, uid);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, 16), ==, QMLX5_BAD_RES);
    MLX5_SET(in, destroy_flow_table_in, other_vport, 1);
    stw_be_p(in + 2, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, 16), ==,
                    QMLX5_BAD_PARAM);

    /* The root: one of them, none, and gone with its table. */
    g_assert_cmphex(ft_cmd(d, SET_ROOT, 2, RX, low), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(ft_cmd(d, SET_ROOT, 0, RX, low), ==, 0);
    g_assert_cmphex(ft_cmd(d, SET_ROOT, 1, RX, 0), ==, 0);
    g_assert_cmphex(ft_cmd(d, SET_ROOT, 0, RX, low), ==, 0);
    g_assert_cmphex(ft_cmd(d, DESTROY_FT, 0, RX, low), ==, 0);
    memset(in, 0, sizeof(in));
    qmlx5_cmd_head(in, SET_ROOT, 0);
    MLX5_SET(in, destroy_flow_table_in, table_type, TX);
    MLX5_SET(in, destroy_flow_table_in, table_id, tx);
    MLX5_SET(in, set_flow_table_root_in, underlay_qpn, 5);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, 16), ==,
                    QMLX5_BAD_PARAM);
    qmlx5_stop(d);
}

/* Groups and entries. */

typedef struct Fg {
    uint32_t table, start, end, enable, qpn_mask;
    bool other;                   /* looks at something else, too */
} Fg;

static uint8_t fg_try(QMlx5 *d, uint8_t type, const Fg *g, uint32_t *id)
{
    uint8_t in[1024] = { }, out[16] = { }, status;
    uint8_t *m = MLX5_ADDR(in, create_flow_group_in, match_criteria);

    qmlx5_cmd_head(in, CREATE_FG, 0);
    MLX5_SET(in, destroy_flow_table_in, table_type, type);
    MLX5_SET(in, destroy_flow_table_in, table_id, g->table);
    MLX5_SET(in, create_flow_group_in, start_flow_index, g->start);
    MLX5_SET(in, create_flow_group_in, end_flow_index, g->end);
    MLX5_SET(in, create_flow_group_in, match_criteria_enable, g->enable);
    MLX5_SET(m, fte_match_param, misc_parameters__bth_dst_qp, g->qpn_mask);
    m[3] = g->other;
    status = qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
    *id = MLX5_GET(out, create_flow_group_out, group_id);
    return status;
}

static uint32_t fg_new(QMlx5 *d, uint8_t type, uint32_t table, uint32_t start,
                       uint32_t end, uint32_t mask)
{
    Fg g = { table, start, end, mask ? MISC : 0, mask };
    uint32_t id;

    g_assert_cmphex(fg_try(d, type, &g, &id), ==, 0);
    return id;
}

static uint8_t fg_destroy(QMlx5 *d, uint8_t type, uint32_t table, uint32_t id)
{
    uint8_t in[MLX5_BYTES(destroy_flow_group_in)] = { }, out[16];

    qmlx5_cmd_head(in, DESTROY_FG, 0);
    MLX5_SET(in, destroy_flow_table_in, table_type, type);
    MLX5_SET(in, destroy_flow_table_in, table_id, table);
    MLX5_SET(in, destroy_flow_group_in, group_id, id);
    return qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
}

typedef struct Fte {
    uint8_t type;
    uint32_t table, group, index, qpn, action;
    uint32_t dest_type, dest, counter;
    uint32_t ndest, ncounter;     /* as the lists' sizes say */
    uint8_t mask;                 /* MODIFY */
    uint32_t bytes;               /* of lists in the command */
} Fte;

static Fte fte(uint8_t type, uint32_t table, uint32_t group, uint32_t index,
               uint32_t action)
{
    return (Fte) { .type = type, .table = table, .group = group,
                   .index = index, .action = action, .dest_type = 1,
                   .ndest = !!(action & FORWARD),
                   .ncounter = !!(action & COUNT), .bytes = 16 };
}

static uint8_t fte_set(QMlx5 *d, const Fte *f, uint16_t op_mod)
{
    uint8_t in[FTE_BYTES + 16] = { }, out[16];
    uint8_t *c = MLX5_ADDR(in, set_fte_in, flow_context);
    uint8_t *m = MLX5_ADDR(c, flow_context, match_value);
    uint8_t *list = MLX5_ADDR(c, flow_context, destination);

    qmlx5_cmd_head(in, SET_FTE, op_mod);
    MLX5_SET(in, destroy_flow_table_in, table_type, f->type);
    MLX5_SET(in, destroy_flow_table_in, table_id, f->table);
    MLX5_SET(in, set_fte_in, flow_index, f->index);
    MLX5_SET(in, set_fte_in, modify_enable_mask, f->mask);
    MLX5_SET(c, flow_context, group_id, f->group);
    MLX5_SET(c, flow_context, action, f->action);
    MLX5_SET(c, flow_context, destination_list_size, f->ndest);
    MLX5_SET(c, flow_context, flow_counter_list_size, f->ncounter);
    MLX5_SET(m, fte_match_param, misc_parameters__bth_dst_qp, f->qpn);
    if (f->ndest) {
        stl_be_p(list, f->dest_type << 24 | f->dest);
        list += 8;
    }
    stl_be_p(list, f->counter);
    return qmlx5_cmd(d, in, FTE_BYTES + f->bytes, out, sizeof(out));
}

static uint8_t fte_delete(QMlx5 *d, uint8_t type, uint32_t table,
                          uint32_t index)
{
    uint8_t in[MLX5_BYTES(delete_fte_in)] = { }, out[16];

    qmlx5_cmd_head(in, DELETE_FTE, 0);
    MLX5_SET(in, destroy_flow_table_in, table_type, type);
    MLX5_SET(in, destroy_flow_table_in, table_id, table);
    MLX5_SET(in, delete_fte_in, flow_index, index);
    return qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
}

static uint32_t fc_new(QMlx5 *d)
{
    uint8_t in[16] = { }, out[16];

    qmlx5_cmd_head(in, ALLOC_FC, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==, 0);
    return MLX5_GET(out, alloc_flow_counter_out, flow_counter_id);
}

static uint8_t fc_query(QMlx5 *d, uint32_t id, bool clear, uint64_t *packets,
                        uint64_t *octets)
{
    uint8_t in[MLX5_BYTES(query_flow_counter_in)] = { }, out[32], status;

    qmlx5_cmd_head(in, QUERY_FC, 0);
    MLX5_SET(in, query_flow_counter_in, flow_counter_id, id);
    MLX5_SET(in, query_flow_counter_in, clear, clear);
    status = qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
    *packets = MLX5_GET64(out + 16, traffic_counter, packets);
    *octets = MLX5_GET64(out + 16, traffic_counter, octets);
    return status;
}

static uint8_t fc_free(QMlx5 *d, uint32_t id)
{
    return qmlx5_cmd_simple(d, DEALLOC_FC, 0, id, 0, NULL);
}

static void test_groups(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t t = ft_new(d, RX, 10, 0), other = ft_new(d, RX, 10, 0), id;
    uint32_t g = fg_new(d, RX, t, 4, 7, 0xffffff);
    const Fg bad[] = {
        { t, 5, 4 }, { t, 0, 16 }, { t, 7, 9 }, { t, 0, 4 }, { t, 0, 15 },
        { t, 5, 6 }, { t, 0, 0, .qpn_mask = 1 }, { t, 0, 0, .enable = 1 },
        { t, 0, 0, .enable = MISC, .other = true },
    };
    uint8_t in[64] = { }, out[16];

    for (int i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmphex(fg_try(d, RX, &bad[i], &id), ==, QMLX5_BAD_PARAM);
    }
    g_assert_cmphex(fg_try(d, RX, &(Fg) { NOBODY, 0, 0 }, &id), ==,
                    QMLX5_BAD_RES);
    qmlx5_cmd_head(in, CREATE_FG, 0);
    g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==,
                    QMLX5_BAD_INP_LEN);
    g_assert_cmphex(ft_cmd(d, DESTROY_FT, 0, RX, t), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(fg_destroy(d, RX, other, g), ==, QMLX5_BAD_RES);
    g_assert_cmphex(fg_destroy(d, RX, t, NOBODY), ==, QMLX5_BAD_RES);
    g_assert_cmphex(fg_destroy(d, RX, t, g), ==, 0);
    g_assert_cmphex(fg_destroy(d, RX, t, g), ==, QMLX5_BAD_RES);
    fg_new(d, RX, t, 0, 15, 0);
    qmlx5_stop(d);
}

static void test_entries(void)
{
    QMlx5 *d = qmlx5_start("");
    uint32_t t = ft_new(d, RX, 10, 0), high = ft_new(d, RX, 20, 0);
    uint32_t low = ft_new(d, RX, 5, 0), tx = ft_new(d, TX, 30, 0);
    uint32_t g = fg_new(d, RX, t, 2, 5, 0), hg = fg_new(d, RX, high, 0, 0, 0);
    uint32_t fc = fc_new(d);
    uint64_t n;
    Fte f;

    /* Refusals. */
    f = fte(RX, t, hg, 2, DROP);
    g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_RES);
    f = fte(RX, NOBODY, g, 2, DROP);
    g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_RES);
    f = fte(RX, t, g, 1, DROP);
    g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_INDEX);
    f = fte(RX, t, g, 6, DROP);
    g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_INDEX);
    f = fte(RX, t, g, 2, DROP | ALLOW);
    g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_PARAM);
    f = fte(RX, t, g, 2, REFORMAT);
    g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_PARAM);
    f = fte(RX, t, g, 2, FORWARD);
    for (int i = 0; i < 4; i++) {
        const uint32_t to[] = { NOBODY, low, t, tx };

        f.dest = to[i];
        g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_PARAM);
    }
    f.dest = high;
    f.dest_type = 2;
    g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_PARAM);
    f.dest_type = 1;
    f.ndest = 2;
    g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_PARAM);
    f.ndest = 1;
    f.bytes = 0;
    g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_INP_LEN);
    f = fte(RX, t, g, 2, ALLOW | COUNT);
    f.counter = NOBODY;
    g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_RES);
    /* MODIFY of one that is not there. */
    f = fte(RX, t, g, 2, DROP);
    f.mask = 1;
    g_assert_cmphex(fte_set(d, &f, 1), ==, QMLX5_BAD_RES);

    /* What an entry names is held. */
    f = fte(RX, t, g, 2, FORWARD | COUNT);
    f.dest = high;
    f.counter = fc;
    g_assert_cmphex(fte_set(d, &f, 0), ==, 0);
    g_assert_cmphex(fte_set(d, &f, 0), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(fc_free(d, fc), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(fg_destroy(d, RX, t, g), ==, QMLX5_BAD_RES_STATE);
    g_assert_cmphex(fg_destroy(d, RX, high, hg), ==, 0);
    g_assert_cmphex(ft_cmd(d, DESTROY_FT, 0, RX, high), ==,
                    QMLX5_BAD_RES_STATE);
    f = fte(RX, t, g, 2, DROP);
    f.mask = 0x10;
    g_assert_cmphex(fte_set(d, &f, 1), ==, QMLX5_BAD_PARAM);
    f.mask = 0xf;
    g_assert_cmphex(fte_set(d, &f, 1), ==, 0);
    g_assert_cmphex(ft_cmd(d, DESTROY_FT, 0, RX, high), ==, 0);
    g_assert_cmphex(fc_query(d, fc, false, &n, &n), ==, 0);
    g_assert_cmphex(fc_free(d, fc), ==, 0);
    g_assert_cmphex(fc_free(d, fc), ==, QMLX5_BAD_RES);
    g_assert_cmphex(fc_query(d, fc, false, &n, &n), ==, QMLX5_BAD_RES);
    g_assert_cmphex(fte_delete(d, RX, t, 3), ==, QMLX5_BAD_RES);
    g_assert_cmphex(fte_delete(d, RX, t, 2), ==, 0);
    g_assert_cmphex(fte_delete(d, RX, t, 2), ==, QMLX5_BAD_RES);
    g_assert_cmphex(fg_destroy(d, RX, t, g), ==, 0);
    g_assert_cmphex(ft_cmd(d, DESTROY_FT, 0, RX, t), ==, 0);
    {
        uint8_t in[16] = { }, out[16];

        qmlx5_cmd_head(in, ALLOC_FC, 0);
        MLX5_SET(in, alloc_flow_counter_in, flow_counter_bulk, 1);
        g_assert_cmphex(qmlx5_cmd(d, in, sizeof(in), out, sizeof(out)), ==,
                        QMLX5_BAD_PARAM);
    }
    qmlx5_stop(d);
}

/* Packets. */

typedef struct Pair {
    QMlx5Host *h;
    QMlx5 *d[2];
    QMlx5Qp *qp[2];
    uint64_t buf;
} Pair;

static Pair pair(uint8_t st)
{
    Pair p;

    p.h = qmlx5_start_n(p.d, 2, "");
    for (int i = 0; i < 2; i++) {
        QMlx5QpAttr a = qmlx5_qp_attr(p.d[i], st);

        a.retry = 1;
        a.ack_timeout = 1;
        p.qp[i] = qmlx5_qp_new(p.d[i], &a);
    }
    qmlx5_qp_connect(p.qp[0], p.qp[1]);
    qmlx5_qp_rts(p.qp[0]);
    qmlx5_qp_rts(p.qp[1]);
    p.buf = qmlx5_alloc(p.h, QMLX5_PAGE);
    return p;
}

static void unpair(Pair *p)
{
    qmlx5_free(p->d[0]);
    qmlx5_free(p->d[1]);
    qmlx5_host_free(p->h);
}

/* A message of 100 bytes from 0 to 1; whether it arrives. */
static bool arrives(Pair *p)
{
    uint8_t cqe[64];
    bool ok;

    qmlx5_recv(p->qp[1], p->d[1]->lkey, p->buf + 1024, 100);
    qmlx5_post_send(p->qp[0], QMLX5_OP_SEND, p->d[0]->lkey, p->buf, 100);
    for (int i = 0; i < 6; i++) {
        qmlx5_clock(p->d[0], MSEC);
    }
    qmlx5_cq_wait(p->qp[0]->a.scq, cqe);
    ok = qmlx5_cqe_op(cqe) == QMLX5_CQE_REQ;
    if (ok) {
        qmlx5_cq_expect(p->qp[1]->a.rcq, QMLX5_CQE_SEND);
    } else {
        g_assert_cmphex(qmlx5_cqe_syndrome(cqe), ==, QMLX5_SYN_RETRY);
        qmlx5_cq_none(p->qp[1]->a.rcq);
        qmlx5_qp_revive(p->qp[0]);
        qmlx5_qp_revive(p->qp[1]);
    }
    return ok;
}

static void test_drop(void)
{
    Pair p = pair(QMLX5_RC);

    g_assert_true(arrives(&p));
    for (int end = 0; end < 2; end++) {
        for (uint8_t type = RX; type <= TX; type++) {
            QMlx5 *d = p.d[end];
            uint32_t t = ft_new(d, type, 10, 0);
            uint32_t g = fg_new(d, type, t, 0, 0, 0);
            Fte f = fte(type, t, g, 0, DROP);

            g_assert_cmphex(fte_set(d, &f, 0), ==, 0);
            /* Not before it is the root. */
            g_assert_true(arrives(&p));
            g_assert_cmphex(ft_cmd(d, SET_ROOT, 0, type, t), ==, 0);
            g_assert_false(arrives(&p));
            f.action = ALLOW;
            f.mask = 1;
            g_assert_cmphex(fte_set(d, &f, 1), ==, 0);
            g_assert_true(arrives(&p));
            f.action = DROP;
            g_assert_cmphex(fte_set(d, &f, 1), ==, 0);
            g_assert_false(arrives(&p));
            g_assert_cmphex(fte_delete(d, type, t, 0), ==, 0);
            g_assert_true(arrives(&p));
            g_assert_cmphex(fg_destroy(d, type, t, g), ==, 0);
            g_assert_cmphex(ft_cmd(d, DESTROY_FT, 0, type, t), ==, 0);
            g_assert_true(arrives(&p));
        }
    }
    unpair(&p);
}

/* As Linux builds it: a root that forwards to a table which drops. */
static void test_forward(void)
{
    Pair p = pair(QMLX5_RC);
    QMlx5 *d = p.d[1];
    uint32_t high = ft_new(d, RX, 200, 0), root = ft_new(d, RX, 3, 0);
    uint32_t hg = fg_new(d, RX, high, 0, 3, 0xffffff);
    uint32_t g = fg_new(d, RX, root, 0, 0, 0), fc = fc_new(d);
    Fte f = fte(RX, root, g, 0, FORWARD | COUNT);
    uint64_t packets, octets;

    f.dest = high;
    f.counter = fc;
    g_assert_cmphex(fte_set(d, &f, 0), ==, 0);
    f = fte(RX, high, hg, 1, DROP);
    f.qpn = p.qp[1]->qpn + 1;
    g_assert_cmphex(fte_set(d, &f, 0), ==, 0);
    g_assert_cmphex(ft_cmd(d, SET_ROOT, 0, RX, root), ==, 0);
    /* Another queue pair's packets are dropped, not ours. */
    g_assert_true(arrives(&p));
    g_assert_cmphex(fc_query(d, fc, true, &packets, &octets), ==, 0);
    g_assert_cmpint(packets, ==, 1);
    g_assert_cmpint(octets, ==, 100);
    g_assert_cmphex(fc_query(d, fc, false, &packets, &octets), ==, 0);
    g_assert_cmpint(packets, ==, 0);
    f.index = 2;
    f.qpn = p.qp[1]->qpn;
    g_assert_cmphex(fte_set(d, &f, 0), ==, 0);
    g_assert_false(arrives(&p));
    /* An entry before it lets them through. */
    f = fte(RX, high, hg, 0, ALLOW);
    f.qpn = p.qp[1]->qpn;
    g_assert_cmphex(fte_set(d, &f, 0), ==, 0);
    g_assert_true(arrives(&p));
    /* Reset forgets all of it. */
    unpair(&p);
}

/* A miss goes on where the table says. */
static void test_miss(void)
{
    Pair p = pair(QMLX5_RC);
    QMlx5 *d = p.d[1];
    uint32_t end = ft_new(d, RX, 9, 0), root = ft_new(d, RX, 3, end);
    uint32_t g = fg_new(d, RX, end, 0, 0, 0);
    Fte f = fte(RX, end, g, 0, DROP);

    g_assert_cmphex(fte_set(d, &f, 0), ==, 0);
    g_assert_cmphex(ft_cmd(d, SET_ROOT, 0, RX, root), ==, 0);
    g_assert_false(arrives(&p));
    g_assert_cmphex(ft_modify(d, root, 1, 0, 0), ==, 0);
    g_assert_true(arrives(&p));
    g_assert_cmphex(ft_modify(d, root, 1, 1, end), ==, 0);
    g_assert_false(arrives(&p));
    g_assert_cmphex(ft_cmd(d, SET_ROOT, 1, RX, 0), ==, 0);
    g_assert_true(arrives(&p));
    unpair(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/flow/tables", test_tables);
    qtest_add_func("/mlx5/flow/groups", test_groups);
    qtest_add_func("/mlx5/flow/entries", test_entries);
    qtest_add_func("/mlx5/flow/drop", test_drop);
    qtest_add_func("/mlx5/flow/forward", test_forward);
    qtest_add_func("/mlx5/flow/miss", test_miss);
    return g_test_run();
}
