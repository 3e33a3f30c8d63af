/*
 * mlx5 flow steering: tables, groups, entries, counters
 *
 * Tables of types RDMA receive and RDMA transmit see the packets of queue
 * pairs: receive those that come to one, transmit those that leave one. A
 * packet begins at the root table of the type, if there is one, and takes
 * the first entry (lowest index) that matches. It may be dropped, let
 * through, counted, or go on in a table of a higher level; without an entry
 * it goes where the table's miss action says, by default through.
 *
 * Of a packet only bth_dst_qp can be matched: the rest of what Linux can
 * name is of Ethernet and IP. (Linux: drivers/.../mlx5/core/fs_cmd.c)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "mlx5-flow.h"
#include "mlx5-res.h"
#include "mlx5-vport.h"
#include "trace.h"

/* Syndromes of this file. */
enum {
    SYND_FT_TYPE = 0x5c0001,
    SYND_FT_VPORT,
    SYND_FT_CONTEXT,
    SYND_FT_LEVEL,
    SYND_FT_FULL,
    SYND_FT_UNKNOWN,
    SYND_FT_IN_USE,
    SYND_FT_ROOT,
    SYND_FC_BULK,
    SYND_FC_FULL,
    SYND_FC_UNKNOWN,
    SYND_FC_IN_USE,
    SYND_FC_NUMBER,
};

enum {
    MISS_DEFAULT = 0,
    MISS_FORWARD = 1,

    SELECT_MISS = 1 << 0,         /* MODIFY_FLOW_TABLE */
};

static Mlx5FlowTable *ft_find(Mlx5Hca *h, uint32_t id)
{
    return (Mlx5FlowTable *)mlx5_table_get(&h->fts, id);
}

/* What these commands have in common: type and (no) vport. */
static enum Mlx5CmdStatus ft_head(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t type = MLX5_GET(c->in, destroy_flow_table_in, table_type);

    if (MLX5_GET(c->in, destroy_flow_table_in, other_vport) ||
        MLX5_GET(c->in, destroy_flow_table_in, other_eswitch)) {
        c->syndrome = SYND_FT_VPORT;
        return MLX5_CMD_BAD_PARAM;
    }
    if (type != MLX5_FT_RDMA_RX && type != MLX5_FT_RDMA_TX) {
        mlx5_unimp(h, "flow table of type %u", type);
        c->syndrome = SYND_FT_TYPE;
        return MLX5_CMD_BAD_PARAM;
    }
    return MLX5_CMD_OK;
}

Mlx5FlowTable *mlx5_ft_of_cmd(Mlx5Hca *h, Mlx5Cmd *c,
                              enum Mlx5CmdStatus *status)
{
    uint32_t id = MLX5_GET(c->in, destroy_flow_table_in, table_id);
    Mlx5FlowTable *t;

    *status = ft_head(h, c);
    if (*status) {
        return NULL;
    }
    t = (Mlx5FlowTable *)mlx5_res_get(c, &h->fts, id);
    if (!t || t->type != MLX5_GET(c->in, destroy_flow_table_in, table_type)) {
        c->syndrome = SYND_FT_UNKNOWN;
        *status = MLX5_CMD_BAD_RES;
        return NULL;
    }
    return t;
}

/*
 * Where a miss of a table of @type and @level goes on by context @ctx: a
 * table of a higher level, so that no packet comes by twice.
 */
static enum Mlx5CmdStatus ft_miss(Mlx5Hca *h, Mlx5Cmd *c, const uint8_t *ctx,
                                  uint8_t type, uint8_t level, uint32_t *id)
{
    Mlx5FlowTable *next;

    *id = 0;
    switch (MLX5_GET(ctx, flow_table_context, table_miss_action)) {
    case MISS_DEFAULT:
        return MLX5_CMD_OK;
    case MISS_FORWARD:
        break;
    default:
        c->syndrome = SYND_FT_CONTEXT;
        return MLX5_CMD_BAD_PARAM;
    }
    *id = MLX5_GET(ctx, flow_table_context, table_miss_id);
    next = (Mlx5FlowTable *)mlx5_res_get(c, &h->fts, *id);
    if (!next || next->type != type) {
        c->syndrome = SYND_FT_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    if (next->level <= level) {
        c->syndrome = SYND_FT_LEVEL;
        return MLX5_CMD_BAD_PARAM;
    }
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_create_ft(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *ctx = MLX5_ADDR(c->in, create_flow_table_in,
                                   flow_table_context);
    enum Mlx5CmdStatus status = ft_head(h, c);
    Mlx5FlowTable *t;
    uint32_t miss;

    if (status) {
        return status;
    }
    if (c->op_mod || MLX5_GET(ctx, flow_table_context, reformat_en) ||
        MLX5_GET(ctx, flow_table_context, decap_en) ||
        MLX5_GET(ctx, flow_table_context, sw_owner) ||
        MLX5_GET(ctx, flow_table_context, rtc_valid) ||
        MLX5_GET(ctx, flow_table_context, termination_table) ||
        MLX5_GET(ctx, flow_table_context, log_size) > MLX5_LOG_MAX_FT_SIZE) {
        c->syndrome = SYND_FT_CONTEXT;
        return MLX5_CMD_BAD_PARAM;
    }
    status = ft_miss(h, c, ctx,
                     MLX5_GET(c->in, create_flow_table_in, table_type),
                     MLX5_GET(ctx, flow_table_context, level), &miss);
    if (status) {
        return status;
    }
    t = g_new0(Mlx5FlowTable, 1);
    t->obj.uid = c->uid;
    t->type = MLX5_GET(c->in, create_flow_table_in, table_type);
    t->level = MLX5_GET(ctx, flow_table_context, level);
    t->log_size = MLX5_GET(ctx, flow_table_context, log_size);
    t->miss_id = miss;
    QTAILQ_INIT(&t->entries);
    if (!mlx5_table_add(&h->fts, &t->obj)) {
        g_free(t);
        c->syndrome = SYND_FT_FULL;
        return MLX5_CMD_NO_RES;
    }
    mlx5_obj_ref(mlx5_table_get(&h->fts, miss), 1);
    trace_mlx5_flow_table(h->name, t->obj.id, t->type, t->level, miss);
    MLX5_SET(c->out, create_flow_table_out, table_id, t->obj.id);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_destroy_ft(Mlx5Hca *h, Mlx5Cmd *c)
{
    enum Mlx5CmdStatus status;
    Mlx5FlowTable *t = mlx5_ft_of_cmd(h, c, &status);

    if (!t) {
        return status;
    }
    if (t->obj.refs) {
        c->syndrome = SYND_FT_IN_USE;
        return MLX5_CMD_BAD_RES_STATE;
    }
    /* Linux does not ask for another root when the last table goes. */
    if (h->flow_root[t->type - MLX5_FT_RDMA_RX] == t->obj.id) {
        h->flow_root[t->type - MLX5_FT_RDMA_RX] = 0;
    }
    trace_mlx5_flow_table_destroy(h->name, t->obj.id);
    mlx5_obj_ref(mlx5_table_get(&h->fts, t->miss_id), -1);
    mlx5_table_del(&h->fts, &t->obj);
    g_free(t);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_ft(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint8_t *ctx = MLX5_ADDR(c->out, query_flow_table_out, flow_table_context);
    enum Mlx5CmdStatus status;
    Mlx5FlowTable *t = mlx5_ft_of_cmd(h, c, &status);

    if (!t) {
        return status;
    }
    MLX5_SET(ctx, flow_table_context, level, t->level);
    MLX5_SET(ctx, flow_table_context, log_size, t->log_size);
    MLX5_SET(ctx, flow_table_context, table_miss_action,
             t->miss_id ? MISS_FORWARD : MISS_DEFAULT);
    MLX5_SET(ctx, flow_table_context, table_miss_id, t->miss_id);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_modify_ft(Mlx5Hca *h, Mlx5Cmd *c)
{
    enum Mlx5CmdStatus status;
    Mlx5FlowTable *t = mlx5_ft_of_cmd(h, c, &status);
    uint32_t miss;

    if (!t) {
        return status;
    }
    if (MLX5_GET(c->in, modify_flow_table_in, modify_field_select) !=
        SELECT_MISS) {
        c->syndrome = SYND_FT_CONTEXT;
        return MLX5_CMD_BAD_PARAM;
    }
    status = ft_miss(h, c, MLX5_ADDR(c->in, modify_flow_table_in,
                                     flow_table_context),
                     t->type, t->level, &miss);
    if (status) {
        return status;
    }
    mlx5_obj_ref(mlx5_table_get(&h->fts, t->miss_id), -1);
    mlx5_obj_ref(mlx5_table_get(&h->fts, miss), 1);
    t->miss_id = miss;
    trace_mlx5_flow_table(h->name, t->obj.id, t->type, t->level, miss);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_set_root(Mlx5Hca *h, Mlx5Cmd *c)
{
    enum Mlx5CmdStatus status = ft_head(h, c);
    uint32_t type = MLX5_GET(c->in, destroy_flow_table_in, table_type);
    uint32_t id = 0;

    if (status) {
        return status;
    }
    if (c->op_mod > 1 ||
        MLX5_GET(c->in, set_flow_table_root_in, underlay_qpn)) {
        c->syndrome = SYND_FT_ROOT;
        return MLX5_CMD_BAD_PARAM;
    }
    if (!c->op_mod) {             /* 1: none any more */
        Mlx5FlowTable *t = mlx5_ft_of_cmd(h, c, &status);

        if (!t) {
            return status;
        }
        id = t->obj.id;
    }
    h->flow_root[type - MLX5_FT_RDMA_RX] = id;
    trace_mlx5_flow_root(h->name, type, id);
    return MLX5_CMD_OK;
}

/* Counters. */

static enum Mlx5CmdStatus cmd_alloc_fc(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5FlowCounter *fc;

    if (MLX5_GET(c->in, alloc_flow_counter_in, flow_counter_bulk)) {
        c->syndrome = SYND_FC_BULK;
        return MLX5_CMD_BAD_PARAM;
    }
    fc = g_new0(Mlx5FlowCounter, 1);
    fc->obj.uid = c->uid;
    if (!mlx5_table_add(&h->fcs, &fc->obj)) {
        g_free(fc);
        c->syndrome = SYND_FC_FULL;
        return MLX5_CMD_NO_RES;
    }
    trace_mlx5_res_alloc(h->name, "flow_counter", fc->obj.id, c->uid);
    MLX5_SET(c->out, alloc_flow_counter_out, flow_counter_id, fc->obj.id);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_dealloc_fc(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5Obj *o = mlx5_res_get(c, &h->fcs,
                              MLX5_GET(c->in, dealloc_flow_counter_in,
                                       flow_counter_id));

    if (!o) {
        c->syndrome = SYND_FC_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    if (o->refs) {
        c->syndrome = SYND_FC_IN_USE;
        return MLX5_CMD_BAD_RES_STATE;
    }
    trace_mlx5_res_dealloc(h->name, "flow_counter", o->id);
    mlx5_table_del(&h->fcs, o);
    g_free(o);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_fc(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5FlowCounter *fc = (Mlx5FlowCounter *)mlx5_res_get(c, &h->fcs,
        MLX5_GET(c->in, query_flow_counter_in, flow_counter_id));
    uint8_t *out = MLX5_ADDR(c->out, query_flow_counter_out, flow_statistics);

    if (MLX5_GET(c->in, query_flow_counter_in, num_of_counters) > 1) {
        c->syndrome = SYND_FC_NUMBER;
        return MLX5_CMD_BAD_PARAM;
    }
    if (!fc) {
        c->syndrome = SYND_FC_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    MLX5_SET64(out, traffic_counter, packets, fc->packets);
    MLX5_SET64(out, traffic_counter, octets, fc->octets);
    if (MLX5_GET(c->in, query_flow_counter_in, clear)) {
        fc->packets = fc->octets = 0;
    }
    return MLX5_CMD_OK;
}

/* Packets. */

/* The entry of @t with the lowest index that matches @qpn. */
static Mlx5Fte *ft_match(Mlx5Hca *h, Mlx5FlowTable *t, uint32_t qpn)
{
    Mlx5Fte *f;

    QTAILQ_FOREACH(f, &t->entries, in_table) {
        Mlx5FlowGroup *g = (Mlx5FlowGroup *)mlx5_table_get(&h->fgs, f->group);

        if (g && !((f->qpn ^ qpn) & g->qpn_mask)) {
            return f;
        }
    }
    return NULL;
}

bool mlx5_flow_pass_slow(Mlx5Hca *h, enum Mlx5FtType type, uint32_t qpn,
                         uint64_t bytes)
{
    uint32_t id = h->flow_root[type - MLX5_FT_RDMA_RX];

    /* Levels only rise, so that there are no more steps than those. */
    for (int step = 0; id && step <= MLX5_MAX_FT_LEVEL; step++) {
        Mlx5FlowTable *t = ft_find(h, id);
        Mlx5Fte *f = t ? ft_match(h, t, qpn) : NULL;
        Mlx5FlowCounter *fc;

        if (!f) {
            id = t ? t->miss_id : 0;
            continue;
        }
        fc = (Mlx5FlowCounter *)mlx5_table_get(&h->fcs, f->counter);
        if (f->action & MLX5_FLOW_COUNT && fc) {
            fc->packets += MAX(DIV_ROUND_UP(bytes, MLX5_IB_MTU_BYTES), 1);
            fc->octets += bytes;
        }
        if (f->action & MLX5_FLOW_DROP) {
            trace_mlx5_flow_drop(h->name, type, id, f->index, qpn);
            return false;
        }
        id = f->action & MLX5_FLOW_FORWARD ? f->dest : 0;
    }
    return true;
}

const Mlx5CmdDesc mlx5_flow_cmds[] = {
    { 0x92f, "SET_FLOW_TABLE_ROOT", MLX5_BYTES(set_flow_table_root_in), 16,
      cmd_set_root },
    { 0x930, "CREATE_FLOW_TABLE", MLX5_BYTES(create_flow_table_in), 16,
      cmd_create_ft },
    { 0x931, "DESTROY_FLOW_TABLE", MLX5_BYTES(destroy_flow_table_in), 16,
      cmd_destroy_ft },
    { 0x932, "QUERY_FLOW_TABLE", MLX5_BYTES(query_flow_table_in),
      MLX5_BYTES(query_flow_table_out), cmd_query_ft },
    { 0x939, "ALLOC_FLOW_COUNTER", 16, 16, cmd_alloc_fc },
    { 0x93a, "DEALLOC_FLOW_COUNTER", 16, 16, cmd_dealloc_fc },
    { 0x93b, "QUERY_FLOW_COUNTER", MLX5_BYTES(query_flow_counter_in),
      MLX5_AT(query_flow_counter_out, flow_statistics) +
      MLX5_BYTES(traffic_counter), cmd_query_fc },
    { 0x93c, "MODIFY_FLOW_TABLE", MLX5_BYTES(modify_flow_table_in), 16,
      cmd_modify_ft },
    { }
};

void mlx5_flow_init(Mlx5Hca *h)
{
    mlx5_table_init(h, &h->fts, "flow-table", 1, (1u << MLX5_LOG_MAX_FT) - 1);
    mlx5_table_init(h, &h->fgs, "flow-group", 1, MLX5_MAX_FLOW_GROUPS);
    mlx5_table_init(h, &h->ftes, "flow-entry", 1, 1u << MLX5_LOG_MAX_FLOW);
    mlx5_table_init(h, &h->fcs, "flow-counter", 1, MLX5_MAX_FLOW_COUNTERS);
}

void mlx5_flow_destroy_all(Mlx5Hca *h)
{
    memset(h->flow_root, 0, sizeof(h->flow_root));
    mlx5_table_free_all(&h->ftes);
    mlx5_table_free_all(&h->fgs);
    mlx5_table_free_all(&h->fts);
    mlx5_table_free_all(&h->fcs);
}

void mlx5_flow_fini(Mlx5Hca *h)
{
    mlx5_flow_destroy_all(h);
    mlx5_table_fini(&h->ftes);
    mlx5_table_fini(&h->fgs);
    mlx5_table_fini(&h->fts);
    mlx5_table_fini(&h->fcs);
}

static const VMStateDescription vmstate_mlx5_ft = {
    .name = "mlx5-hca/flow-table",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5FlowTable),
        VMSTATE_UINT8(type, Mlx5FlowTable),
        VMSTATE_UINT8(level, Mlx5FlowTable),
        VMSTATE_UINT8(log_size, Mlx5FlowTable),
        VMSTATE_UINT32(miss_id, Mlx5FlowTable),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_mlx5_fg = {
    .name = "mlx5-hca/flow-group",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5FlowGroup),
        VMSTATE_UINT32(table, Mlx5FlowGroup),
        VMSTATE_UINT32(start, Mlx5FlowGroup),
        VMSTATE_UINT32(end, Mlx5FlowGroup),
        VMSTATE_UINT32(qpn_mask, Mlx5FlowGroup),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_mlx5_fte = {
    .name = "mlx5-hca/flow-entry",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5Fte),
        VMSTATE_UINT32(table, Mlx5Fte),
        VMSTATE_UINT32(group, Mlx5Fte),
        VMSTATE_UINT32(index, Mlx5Fte),
        VMSTATE_UINT32(qpn, Mlx5Fte),
        VMSTATE_UINT32(action, Mlx5Fte),
        VMSTATE_UINT32(tag, Mlx5Fte),
        VMSTATE_UINT32(dest, Mlx5Fte),
        VMSTATE_UINT32(counter, Mlx5Fte),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_mlx5_fc = {
    .name = "mlx5-hca/flow-counter",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_MLX5_OBJ(obj, Mlx5FlowCounter),
        VMSTATE_UINT64(packets, Mlx5FlowCounter),
        VMSTATE_UINT64(octets, Mlx5FlowCounter),
        VMSTATE_END_OF_LIST()
    },
};

static int flow_pre_load(void *opaque)
{
    mlx5_flow_destroy_all(opaque);
    return 0;
}

static int flow_post_load(void *opaque, int version_id)
{
    Mlx5Hca *h = opaque;
    Mlx5Obj *o;

    if (!mlx5_table_post_load(&h->fts) || !mlx5_table_post_load(&h->fgs) ||
        !mlx5_table_post_load(&h->ftes) || !mlx5_table_post_load(&h->fcs)) {
        return -EINVAL;
    }
    QTAILQ_FOREACH(o, &h->fts.all, next) {
        Mlx5FlowTable *t = (Mlx5FlowTable *)o;

        if (t->type != MLX5_FT_RDMA_RX && t->type != MLX5_FT_RDMA_TX) {
            return -EINVAL;
        }
        QTAILQ_INIT(&t->entries);
    }
    QTAILQ_FOREACH(o, &h->ftes.all, next) {
        Mlx5FlowTable *t = ft_find(h, ((Mlx5Fte *)o)->table);

        if (!t) {
            return -EINVAL;
        }
        mlx5_fte_insert(t, (Mlx5Fte *)o);
    }
    return 0;
}

const VMStateDescription vmstate_mlx5_flow = {
    .name = "mlx5-hca/flow",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = flow_pre_load,
    .post_load = flow_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32_ARRAY(flow_root, Mlx5Hca, MLX5_FLOW_ROOTS),
        VMSTATE_MLX5_TABLE(fts, Mlx5Hca, vmstate_mlx5_ft, Mlx5FlowTable),
        VMSTATE_MLX5_TABLE(fgs, Mlx5Hca, vmstate_mlx5_fg, Mlx5FlowGroup),
        VMSTATE_MLX5_TABLE(ftes, Mlx5Hca, vmstate_mlx5_fte, Mlx5Fte),
        VMSTATE_MLX5_TABLE(fcs, Mlx5Hca, vmstate_mlx5_fc, Mlx5FlowCounter),
        VMSTATE_END_OF_LIST()
    },
};
