/*
 * mlx5 flow steering: groups and entries of a table
 *
 * A group is a range of a table's indices whose entries look at the same bits
 * of a packet; an entry says which values they have, and what happens then.
 * (Linux: drivers/.../mlx5/core/fs_cmd.c)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "mlx5-flow.h"
#include "mlx5-res.h"
#include "trace.h"

/* Syndromes of this file. */
enum {
    SYND_FG_RANGE = 0x5e0001,
    SYND_FG_CRITERIA,
    SYND_FG_FULL,
    SYND_FG_UNKNOWN,
    SYND_FG_IN_USE,
    SYND_FTE_INDEX,
    SYND_FTE_TAKEN,
    SYND_FTE_VALUE,
    SYND_FTE_ACTION,
    SYND_FTE_DEST,
    SYND_FTE_COUNTER,
    SYND_FTE_FULL,
    SYND_FTE_UNKNOWN,
    SYND_FTE_ROOM,
};

enum {
    ACTION_ALL = MLX5_FLOW_ALLOW | MLX5_FLOW_DROP | MLX5_FLOW_FORWARD |
                 MLX5_FLOW_COUNT,

    DEST_TABLE = 1,
    DEST_BYTES = 8,               /* of an entry of the destination list */

    CRITERIA_MISC = 1 << 1,       /* match_criteria_enable */
    FTE_MASK_ACTION = 1 << 0,     /* modify_enable_mask */
    FTE_MASK_TAG = 1 << 1,
    FTE_MASK_DEST = 1 << 2,
    FTE_MASK_COUNTER = 1 << 3,
    FTE_MASK_ALL = 0xf,
};

/* Whether @len bytes at @p are zero but for the 4 at @but. */
static bool zero_but(const uint8_t *p, uint32_t len, uint32_t but)
{
    return buffer_is_zero(p, but) &&
           buffer_is_zero(p + but + 4, len - but - 4);
}

/* bth_dst_qp of match parameters; false: something else is in them, too. */
static bool match_qpn(const uint8_t *param, uint32_t *qpn)
{
    uint32_t at = MLX5_AT(fte_match_param, misc_parameters__bth_dst_qp) & ~3;

    *qpn = MLX5_GET(param, fte_match_param, misc_parameters__bth_dst_qp);
    return !param[at] && zero_but(param, MLX5_BYTES(fte_match_param), at);
}

static enum Mlx5CmdStatus cmd_create_fg(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t start = MLX5_GET(c->in, create_flow_group_in, start_flow_index);
    uint32_t end = MLX5_GET(c->in, create_flow_group_in, end_flow_index);
    uint32_t how = MLX5_GET(c->in, create_flow_group_in,
                            match_criteria_enable), mask;
    enum Mlx5CmdStatus status;
    Mlx5FlowTable *t = mlx5_ft_of_cmd(h, c, &status);
    Mlx5FlowGroup *g;
    Mlx5Obj *o;

    if (!t) {
        return status;
    }
    if (start > end || end >> t->log_size) {
        c->syndrome = SYND_FG_RANGE;
        return MLX5_CMD_BAD_PARAM;
    }
    QTAILQ_FOREACH(o, &h->fgs.all, next) {
        g = (Mlx5FlowGroup *)o;
        if (g->table == t->obj.id && start <= g->end && g->start <= end) {
            c->syndrome = SYND_FG_RANGE;
            return MLX5_CMD_BAD_PARAM;
        }
    }
    if (!match_qpn(MLX5_ADDR(c->in, create_flow_group_in, match_criteria),
                   &mask) || how & ~CRITERIA_MISC ||
        (mask && !(how & CRITERIA_MISC)) ||
        MLX5_GET(c->in, create_flow_group_in, group_type)) {
        c->syndrome = SYND_FG_CRITERIA;
        return MLX5_CMD_BAD_PARAM;
    }
    g = g_new0(Mlx5FlowGroup, 1);
    g->obj.uid = c->uid;
    g->table = t->obj.id;
    g->start = start;
    g->end = end;
    g->qpn_mask = mask;
    if (!mlx5_table_add(&h->fgs, &g->obj)) {
        g_free(g);
        c->syndrome = SYND_FG_FULL;
        return MLX5_CMD_NO_RES;
    }
    t->obj.refs++;
    trace_mlx5_flow_group(h->name, g->obj.id, t->obj.id, start, end, mask);
    MLX5_SET(c->out, create_flow_group_out, group_id, g->obj.id);
    return MLX5_CMD_OK;
}

/* The group that a command names, of the table that it names. */
static Mlx5FlowGroup *fg_of_cmd(Mlx5Hca *h, Mlx5Cmd *c,
                                enum Mlx5CmdStatus *status)
{
    Mlx5FlowTable *t = mlx5_ft_of_cmd(h, c, status);
    Mlx5FlowGroup *g;

    if (!t) {
        return NULL;
    }
    g = (Mlx5FlowGroup *)mlx5_res_get(c, &h->fgs,
                                      MLX5_GET(c->in, destroy_flow_group_in,
                                               group_id));
    if (!g || g->table != t->obj.id) {
        c->syndrome = SYND_FG_UNKNOWN;
        *status = MLX5_CMD_BAD_RES;
        return NULL;
    }
    return g;
}

static enum Mlx5CmdStatus cmd_query_fg(Mlx5Hca *h, Mlx5Cmd *c)
{
    enum Mlx5CmdStatus status;
    Mlx5FlowGroup *g = fg_of_cmd(h, c, &status);
    uint8_t *criteria = MLX5_ADDR(c->out, query_flow_group_out,
                                  match_criteria);

    if (!g) {
        return status;
    }
    MLX5_SET(c->out, query_flow_group_out, start_flow_index, g->start);
    MLX5_SET(c->out, query_flow_group_out, end_flow_index, g->end);
    MLX5_SET(c->out, query_flow_group_out, match_criteria_enable,
             g->qpn_mask ? CRITERIA_MISC : 0);
    MLX5_SET(criteria, fte_match_param, misc_parameters__bth_dst_qp,
             g->qpn_mask);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_destroy_fg(Mlx5Hca *h, Mlx5Cmd *c)
{
    enum Mlx5CmdStatus status;
    Mlx5FlowGroup *g = fg_of_cmd(h, c, &status);

    if (!g) {
        return status;
    }
    if (g->obj.refs) {
        c->syndrome = SYND_FG_IN_USE;
        return MLX5_CMD_BAD_RES_STATE;
    }
    trace_mlx5_flow_group_destroy(h->name, g->obj.id);
    mlx5_obj_ref(mlx5_table_get(&h->fts, g->table), -1);
    mlx5_table_del(&h->fgs, &g->obj);
    g_free(g);
    return MLX5_CMD_OK;
}

static Mlx5Fte *fte_find(Mlx5FlowTable *t, uint32_t index)
{
    Mlx5Fte *f;

    QTAILQ_FOREACH(f, &t->entries, in_table) {
        if (f->index >= index) {
            return f->index == index ? f : NULL;
        }
    }
    return NULL;
}

void mlx5_fte_insert(Mlx5FlowTable *t, Mlx5Fte *f)
{
    Mlx5Fte *after;

    QTAILQ_FOREACH_REVERSE(after, &t->entries, in_table) {
        if (after->index < f->index) {
            QTAILQ_INSERT_AFTER(&t->entries, after, f, in_table);
            return;
        }
    }
    QTAILQ_INSERT_HEAD(&t->entries, f, in_table);
}

/* What @f goes to and counts in is held, or no longer. */
static void fte_refs(Mlx5Hca *h, const Mlx5Fte *f, int n)
{
    mlx5_obj_ref(mlx5_table_get(&h->fts, f->dest), n);
    mlx5_obj_ref(mlx5_table_get(&h->fcs, f->counter), n);
}

/*
 * Action, destination and counter of an entry of table @t, from flow context
 * @ctx and the @room bytes of lists behind it, into @f.
 */
static enum Mlx5CmdStatus fte_parse(Mlx5Hca *h, Mlx5Cmd *c,
                                    const Mlx5FlowTable *t, const uint8_t *ctx,
                                    uint32_t room, Mlx5Fte *f)
{
    uint32_t action = MLX5_GET(ctx, flow_context, action);
    uint32_t ndest = MLX5_GET(ctx, flow_context, destination_list_size);
    uint32_t ncount = MLX5_GET(ctx, flow_context, flow_counter_list_size);
    uint32_t end = action & (MLX5_FLOW_ALLOW | MLX5_FLOW_DROP |
                             MLX5_FLOW_FORWARD);
    const uint8_t *list = ctx + MLX5_AT(flow_context, destination);

    if (action & ~ACTION_ALL || (end & (end - 1)) ||
        MLX5_GET(ctx, flow_context, extended_destination)) {
        c->syndrome = SYND_FTE_ACTION;
        return MLX5_CMD_BAD_PARAM;
    }
    if (ndest != !!(action & MLX5_FLOW_FORWARD) ||
        ncount != !!(action & MLX5_FLOW_COUNT)) {
        c->syndrome = SYND_FTE_ACTION;
        return MLX5_CMD_BAD_PARAM;
    }
    if ((ndest + ncount) * DEST_BYTES > room) {
        return MLX5_CMD_BAD_INP_LEN;
    }
    f->action = action;
    f->dest = f->counter = 0;
    if (ndest) {
        Mlx5FlowTable *to = (Mlx5FlowTable *)mlx5_res_get(c, &h->fts,
                                       ldl_be_p(list) & 0xffffff);

        if (list[0] != DEST_TABLE || !to || to->type != t->type ||
            to->level <= t->level) {
            c->syndrome = SYND_FTE_DEST;
            return MLX5_CMD_BAD_PARAM;
        }
        f->dest = to->obj.id;
        list += DEST_BYTES;
    }
    if (ncount) {
        f->counter = ldl_be_p(list);
        if (!mlx5_res_get(c, &h->fcs, f->counter)) {
            c->syndrome = SYND_FTE_COUNTER;
            return MLX5_CMD_BAD_RES;
        }
    }
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus fte_modify(Mlx5Hca *h, Mlx5Cmd *c, Mlx5Fte *f,
                                     const Mlx5Fte *to)
{
    uint32_t mask = MLX5_GET(c->in, set_fte_in, modify_enable_mask);
    Mlx5Fte was;

    if (!f || !mlx5_owns(c, &f->obj)) {
        c->syndrome = SYND_FTE_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    if (mask & ~FTE_MASK_ALL) {
        c->syndrome = SYND_FTE_VALUE;
        return MLX5_CMD_BAD_PARAM;
    }
    was = *f;
    if (mask & FTE_MASK_ACTION) {
        f->action = to->action;
    }
    if (mask & FTE_MASK_TAG) {
        f->tag = to->tag;
    }
    if (mask & FTE_MASK_DEST) {
        f->dest = to->dest;
    }
    if (mask & FTE_MASK_COUNTER) {
        f->counter = to->counter;
    }
    fte_refs(h, f, 1);
    fte_refs(h, &was, -1);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_set_fte(Mlx5Hca *h, Mlx5Cmd *c)
{
    const uint8_t *ctx = MLX5_ADDR(c->in, set_fte_in, flow_context);
    uint32_t head = MLX5_AT(set_fte_in, flow_context) +
                    MLX5_AT(flow_context, destination);
    uint32_t room = c->in_len > head ? c->in_len - head : 0;
    enum Mlx5CmdStatus status;
    Mlx5FlowTable *t = mlx5_ft_of_cmd(h, c, &status);
    Mlx5Fte new = { }, *f;
    Mlx5FlowGroup *g;

    if (!t) {
        return status;
    }
    new.obj.uid = c->uid;
    new.table = t->obj.id;
    new.index = MLX5_GET(c->in, set_fte_in, flow_index);
    new.group = MLX5_GET(ctx, flow_context, group_id);
    new.tag = MLX5_GET(ctx, flow_context, flow_tag);
    g = (Mlx5FlowGroup *)mlx5_res_get(c, &h->fgs, new.group);
    if (!g || g->table != t->obj.id) {
        c->syndrome = SYND_FG_UNKNOWN;
        return MLX5_CMD_BAD_RES;
    }
    if (new.index < g->start || new.index > g->end || c->op_mod > 1) {
        c->syndrome = SYND_FTE_INDEX;
        return MLX5_CMD_BAD_INDEX;
    }
    if (!match_qpn(MLX5_ADDR(ctx, flow_context, match_value), &new.qpn)) {
        c->syndrome = SYND_FTE_VALUE;
        return MLX5_CMD_BAD_PARAM;
    }
    status = fte_parse(h, c, t, ctx, room, &new);
    if (status) {
        return status;
    }
    f = fte_find(t, new.index);
    trace_mlx5_flow_entry(h->name, new.table, new.index, new.qpn, new.action,
                          new.dest, new.counter);
    if (c->op_mod) {
        return fte_modify(h, c, f, &new);
    }
    if (f) {
        c->syndrome = SYND_FTE_TAKEN;
        return MLX5_CMD_BAD_RES_STATE;
    }
    f = g_memdup2(&new, sizeof(new));
    if (!mlx5_table_add(&h->ftes, &f->obj)) {
        g_free(f);
        c->syndrome = SYND_FTE_FULL;
        return MLX5_CMD_NO_RES;
    }
    g->obj.refs++;
    fte_refs(h, f, 1);
    mlx5_fte_insert(t, f);
    return MLX5_CMD_OK;
}

/* The entry that a command names, by its index in @*t. */
static Mlx5Fte *fte_of_cmd(Mlx5Hca *h, Mlx5Cmd *c, Mlx5FlowTable **t,
                           enum Mlx5CmdStatus *status)
{
    Mlx5Fte *f;

    *t = mlx5_ft_of_cmd(h, c, status);
    if (!*t) {
        return NULL;
    }
    f = fte_find(*t, MLX5_GET(c->in, delete_fte_in, flow_index));
    if (!f || !mlx5_owns(c, &f->obj)) {
        c->syndrome = SYND_FTE_UNKNOWN;
        *status = MLX5_CMD_BAD_RES;
        return NULL;
    }
    return f;
}

static enum Mlx5CmdStatus cmd_query_fte(Mlx5Hca *h, Mlx5Cmd *c)
{
    enum Mlx5CmdStatus status;
    Mlx5FlowTable *t;
    Mlx5Fte *f = fte_of_cmd(h, c, &t, &status);
    uint8_t *ctx = MLX5_ADDR(c->out, query_fte_out, flow_context);
    uint8_t *list = MLX5_ADDR(ctx, flow_context, destination);
    uint32_t n;

    if (!f) {
        return status;
    }
    n = !!f->dest + !!f->counter;
    if (c->out_len < list + n * DEST_BYTES - c->out) {
        c->syndrome = SYND_FTE_ROOM;
        return MLX5_CMD_BAD_OUTP_LEN;
    }
    MLX5_SET(ctx, flow_context, group_id, f->group);
    MLX5_SET(ctx, flow_context, flow_tag, f->tag);
    MLX5_SET(ctx, flow_context, action, f->action);
    MLX5_SET(ctx, flow_context, destination_list_size, !!f->dest);
    MLX5_SET(ctx, flow_context, flow_counter_list_size, !!f->counter);
    MLX5_SET(MLX5_ADDR(ctx, flow_context, match_value), fte_match_param,
             misc_parameters__bth_dst_qp, f->qpn);
    if (f->dest) {
        stl_be_p(list, (uint32_t)DEST_TABLE << 24 | f->dest);
        list += DEST_BYTES;
    }
    if (f->counter) {
        stl_be_p(list, f->counter);
    }
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_delete_fte(Mlx5Hca *h, Mlx5Cmd *c)
{
    enum Mlx5CmdStatus status;
    Mlx5FlowTable *t;
    Mlx5Fte *f = fte_of_cmd(h, c, &t, &status);

    if (!f) {
        return status;
    }
    trace_mlx5_flow_entry_delete(h->name, f->table, f->index);
    fte_refs(h, f, -1);
    mlx5_obj_ref(mlx5_table_get(&h->fgs, f->group), -1);
    QTAILQ_REMOVE(&t->entries, f, in_table);
    mlx5_table_del(&h->ftes, &f->obj);
    g_free(f);
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_fte_cmds[] = {
    { 0x933, "CREATE_FLOW_GROUP",
      MLX5_AT(create_flow_group_in, match_criteria) +
      MLX5_BYTES(fte_match_param), 16, cmd_create_fg },
    { 0x934, "DESTROY_FLOW_GROUP", MLX5_BYTES(destroy_flow_group_in), 16,
      cmd_destroy_fg },
    { 0x935, "QUERY_FLOW_GROUP", MLX5_BYTES(query_flow_group_in),
      MLX5_AT(query_flow_group_out, match_criteria) +
      MLX5_BYTES(fte_match_param), cmd_query_fg },
    { 0x936, "SET_FLOW_TABLE_ENTRY", MLX5_AT(set_fte_in, flow_context) +
      MLX5_AT(flow_context, match_value) + MLX5_BYTES(fte_match_param), 16,
      cmd_set_fte },
    { 0x937, "QUERY_FLOW_TABLE_ENTRY", MLX5_BYTES(query_fte_in),
      MLX5_AT(query_fte_out, flow_context) +
      MLX5_AT(flow_context, destination), cmd_query_fte },
    { 0x938, "DELETE_FLOW_TABLE_ENTRY", MLX5_BYTES(delete_fte_in), 16,
      cmd_delete_fte },
    { }
};
