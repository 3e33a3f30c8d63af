/*
 * mlx5 command queue: entries, mailboxes, dispatch
 *
 * The driver fills one of 32 entries, gives it to the device by its ownership
 * bit and rings the doorbell of the init segment. A bottom half takes the
 * command's input from the entry and its mailbox chain, runs it, writes the
 * output, gives the entry back and tells the command EQ if there was one when
 * the command began. (Linux: drivers/net/ethernet/mellanox/mlx5/core/cmd.c)
 *
 * What is wrong with an entry itself is its delivery status; what is wrong
 * with a command is the status in its output.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/qdev-core.h"
#include "system/runstate.h"
#include "mlx5-cmd.h"
#include "mlx5-dma.h"
#include "mlx5-eq.h"
#include "mlx5-hca.h"
#include "trace.h"

enum {
    CMD_SLOTS = 1 << MLX5_CMDQ_LOG_SIZE,
    CMD_ENTRY = 1 << MLX5_CMDQ_LOG_STRIDE,
    CMD_INLINE = 16,              /* bytes of input and output in the entry */
    CMD_TYPE = 7,
    CMD_MAX_LEN = 16 * MiB,       /* longest input or output taken */
    CMD_BUDGET = 8,               /* commands in one bottom half */
    CMD_OPCODES = 0x1000,

    MBOX_SIZE = 576,
    MBOX_DATA = 512,
    MBOX_NEXT = 560,
    MBOX_BLOCK = 568,
    MBOX_TOKEN = 573,
};

/* Byte offsets in an entry. */
enum {
    ENT_TYPE = 0,
    ENT_IN_LEN = 4,
    ENT_IN_PTR = 8,
    ENT_IN = 16,
    ENT_OUT = 32,
    ENT_OUT_PTR = 48,
    ENT_OUT_LEN = 56,
    ENT_TOKEN = 60,
    ENT_STATUS_OWN = 63,
};

enum CmdDelivery {
    DELIVERY_OK            = 0x0,
    DELIVERY_TOKEN         = 0x2,
    DELIVERY_BLOCK_NUM     = 0x3,
    DELIVERY_OUT_PTR       = 0x4,
    DELIVERY_IN_PTR        = 0x5,
    DELIVERY_IN_LEN        = 0x7,
    DELIVERY_OUT_LEN       = 0x8,
    DELIVERY_CMD_TYPE      = 0x10,
};

/* Syndromes of this file. */
enum {
    SYND_CMD_OPCODE = 0x500001,
    SYND_CMD_STATE,
    SYND_CMD_SHORT_IN,
    SYND_CMD_SHORT_OUT,
    SYND_CMD_UID,
};

struct Mlx5CmdState {
    Mlx5Hca *hca;
    QEMUBH *bh;
    VMChangeStateEntry *vmstate;
    uint32_t pending;             /* doorbell bits not yet served */
    /* Handlers by opcode. */
    const Mlx5CmdDesc *op[CMD_OPCODES];
};

static const Mlx5CmdDesc *const cmd_modules[] = {
    mlx5_hca_cmds, mlx5_caps_cmds, mlx5_reg_cmds, mlx5_vport_cmds,
    mlx5_mad_cmds, mlx5_res_cmds, mlx5_eq_cmds, mlx5_cq_cmds, mlx5_mkey_cmds,
    mlx5_odp_cmds, mlx5_qp_cmds, mlx5_srq_cmds, mlx5_memic_cmds,
    mlx5_devx_cmds, mlx5_dct_cmds, mlx5_flow_cmds, mlx5_fte_cmds,
    mlx5_gobj_cmds, mlx5_mcast_cmds, mlx5_qos_cmds, mlx5_sig_cmds,
    mlx5_sqobj_cmds,
};

/* Reads the head of mailbox @addr, block @num, and checks that it is ours. */
static enum CmdDelivery mbox_read(Mlx5Hca *h, uint64_t addr, uint32_t num,
                                  uint8_t token, bool is_out,
                                  uint8_t box[MBOX_SIZE])
{
    enum CmdDelivery bad_ptr = is_out ? DELIVERY_OUT_PTR : DELIVERY_IN_PTR;

    if (!addr || addr % MBOX_DATA ||
        mlx5_dma_read(h, addr, box, MBOX_SIZE) != MLX5_DMA_OK) {
        return bad_ptr;
    }
    if (box[MBOX_TOKEN] != token) {
        return DELIVERY_TOKEN;
    }
    if (ldl_be_p(box + MBOX_BLOCK) != num) {
        return DELIVERY_BLOCK_NUM;
    }
    return DELIVERY_OK;
}

static enum CmdDelivery cmd_read_input(Mlx5Hca *h, const uint8_t *ent,
                                       uint8_t *in, uint32_t len)
{
    uint64_t addr = ldq_be_p(ent + ENT_IN_PTR);
    uint32_t done = MIN(len, CMD_INLINE), num;
    uint8_t box[MBOX_SIZE];

    memcpy(in, ent + ENT_IN, done);
    for (num = 0; done < len; num++) {
        uint32_t n = MIN(len - done, MBOX_DATA);
        enum CmdDelivery st = mbox_read(h, addr, num, ent[ENT_TOKEN], false,
                                        box);

        if (st) {
            return st;
        }
        memcpy(in + done, box, n);
        done += n;
        addr = ldq_be_p(box + MBOX_NEXT);
    }
    return DELIVERY_OK;
}

/*
 * Finds the mailboxes for @len bytes of output before anything is executed,
 * so that a bad chain costs no side effect.
 */
static enum CmdDelivery cmd_find_output(Mlx5Hca *h, const uint8_t *ent,
                                        uint32_t len, GArray *where)
{
    uint64_t addr = ldq_be_p(ent + ENT_OUT_PTR);
    uint32_t done, num;
    uint8_t box[MBOX_SIZE];

    for (done = CMD_INLINE, num = 0; done < len; done += MBOX_DATA, num++) {
        enum CmdDelivery st = mbox_read(h, addr, num, ent[ENT_TOKEN], true,
                                        box);

        if (st) {
            return st;
        }
        g_array_append_val(where, addr);
        addr = ldq_be_p(box + MBOX_NEXT);
    }
    return DELIVERY_OK;
}

static enum CmdDelivery cmd_write_output(Mlx5Hca *h, uint64_t ent_addr,
                                         const uint8_t *out, uint32_t len,
                                         const GArray *where)
{
    uint32_t done = MIN(len, CMD_INLINE), i;

    for (i = 0; i < where->len; i++) {
        uint32_t n = MIN(len - done, MBOX_DATA);

        if (mlx5_dma_write(h, g_array_index(where, uint64_t, i), out + done,
                           n) != MLX5_DMA_OK) {
            return DELIVERY_OUT_PTR;
        }
        done += n;
    }
    if (mlx5_dma_write(h, ent_addr + ENT_OUT, out, MIN(len, CMD_INLINE)) !=
        MLX5_DMA_OK) {
        return DELIVERY_OUT_PTR;
    }
    return DELIVERY_OK;
}

static enum Mlx5CmdStatus cmd_dispatch(Mlx5Hca *h, Mlx5Cmd *c)
{
    const Mlx5CmdDesc *d = c->opcode < CMD_OPCODES ? h->cmd->op[c->opcode]
                                                   : NULL;

    if (!d) {
        c->syndrome = SYND_CMD_OPCODE;
        mlx5_unimp(h, "command 0x%x: bad opcode", c->opcode);
        return MLX5_CMD_BAD_OP;
    }
    if (!mlx5_hca_allows(h, d->flags)) {
        c->syndrome = SYND_CMD_STATE;
        mlx5_guest_error(h, "%s: not in this state of the HCA", d->name);
        return MLX5_CMD_BAD_SYS_STATE;
    }
    if (c->in_len < d->in_min) {
        c->syndrome = SYND_CMD_SHORT_IN;
        mlx5_guest_error(h, "%s: %u bytes of input, needs %u", d->name,
                         c->in_len, d->in_min);
        return MLX5_CMD_BAD_INP_LEN;
    }
    if (c->out_len < d->out_min) {
        c->syndrome = SYND_CMD_SHORT_OUT;
        mlx5_guest_error(h, "%s: %u bytes for output, needs %u", d->name,
                         c->out_len, d->out_min);
        return MLX5_CMD_BAD_OUTP_LEN;
    }
    if (c->uid && !mlx5_table_get(&h->uctxs, c->uid)) {
        c->syndrome = SYND_CMD_UID;
        mlx5_guest_error(h, "%s: no user context %u", d->name, c->uid);
        return MLX5_CMD_BAD_RES;
    }
    return d->fn(h, c);
}

static const char *cmd_name(Mlx5Hca *h, uint16_t opcode)
{
    return opcode < CMD_OPCODES && h->cmd->op[opcode] ?
           h->cmd->op[opcode]->name : "?";
}

static void cmd_execute(Mlx5Hca *h, uint8_t *in, uint32_t in_len, uint8_t *out,
                        uint32_t out_len)
{
    Mlx5Cmd c = {
        .opcode = lduw_be_p(in), .uid = lduw_be_p(in + 2),
        .op_mod = lduw_be_p(in + 6),
        .in = in, .in_len = in_len, .out = out, .out_len = out_len,
    };
    enum Mlx5CmdStatus st;

    if (c.uid == MLX5_SHARED_UID) {
        c.uid = 0;
    }
    st = cmd_dispatch(h, &c);
    if (st != MLX5_CMD_OK) {
        /* A refusal has no other output. */
        memset(out, 0, out_len);
    }
    out[0] = st;
    stl_be_p(out + 4, st == MLX5_CMD_OK ? 0 : c.syndrome);
    trace_mlx5_cmd(h->name, cmd_name(h, c.opcode), c.opcode, c.op_mod, c.uid,
                   in_len, out_len, st, c.syndrome);
}

static enum CmdDelivery cmd_run_entry(Mlx5Hca *h, uint64_t ent_addr,
                                      uint8_t *ent)
{
    uint32_t in_len = ldl_be_p(ent + ENT_IN_LEN);
    uint32_t out_len = ldl_be_p(ent + ENT_OUT_LEN);
    g_autoptr(GArray) where = g_array_new(false, false, sizeof(uint64_t));
    g_autofree uint8_t *in = NULL, *out = NULL;
    enum CmdDelivery st;

    if (ent[ENT_TYPE] != CMD_TYPE) {
        return DELIVERY_CMD_TYPE;
    }
    if (in_len < CMD_INLINE || in_len > CMD_MAX_LEN) {
        return DELIVERY_IN_LEN;
    }
    if (out_len < CMD_INLINE / 2 || out_len > CMD_MAX_LEN) {
        return DELIVERY_OUT_LEN;
    }
    in = g_try_malloc(in_len);
    if (!in) {
        return DELIVERY_IN_LEN;
    }
    st = cmd_read_input(h, ent, in, in_len);
    if (st) {
        return st;
    }
    st = cmd_find_output(h, ent, out_len, where);
    if (st) {
        return st;
    }
    out = g_try_malloc0(MAX(out_len, CMD_INLINE));
    if (!out) {
        return DELIVERY_OUT_LEN;
    }
    cmd_execute(h, in, in_len, out, out_len);
    return cmd_write_output(h, ent_addr, out, out_len, where);
}

static void cmd_run_slot(Mlx5Hca *h, unsigned slot)
{
    uint64_t ent_addr = mlx5_hca_cmdq(h) + slot * CMD_ENTRY;
    bool tell = mlx5_event_room(h, MLX5_EVENT_CMD) > 0;
    uint8_t ent[CMD_ENTRY], status_own;
    enum CmdDelivery st;

    if (mlx5_dma_read(h, ent_addr, ent, sizeof(ent)) != MLX5_DMA_OK) {
        mlx5_guest_error(h, "command entry %u at 0x%" PRIx64 " is not "
                         "readable", slot, ent_addr);
        return;
    }
    if (!(ent[ENT_STATUS_OWN] & 1)) {
        mlx5_guest_error(h, "command entry %u rung but not handed over", slot);
        return;
    }
    st = cmd_run_entry(h, ent_addr, ent);
    if (st) {
        mlx5_guest_error(h, "command entry %u: delivery status 0x%x", slot, st);
        trace_mlx5_cmd_delivery(h->name, slot, st);
    }
    status_own = st << 1;
    mlx5_dma_write(h, ent_addr + ENT_STATUS_OWN, &status_own, 1);
    if (tell) {
        uint8_t data[4];

        stl_be_p(data, 1u << slot);
        mlx5_event(h, MLX5_EVENT_CMD, 0, data, sizeof(data));
    }
}

static void cmd_bh(void *opaque)
{
    Mlx5Hca *h = opaque;
    struct Mlx5CmdState *s = h->cmd;
    int budget;

    for (budget = CMD_BUDGET; s->pending && budget; budget--) {
        unsigned slot = ctz32(s->pending);

        s->pending &= ~(1u << slot);
        cmd_run_slot(h, slot);
    }
    if (s->pending) {
        qemu_bh_schedule(s->bh);
    }
}

void mlx5_cmd_doorbell(Mlx5Hca *h, uint32_t bitmap)
{
    struct Mlx5CmdState *s = h->cmd;

    trace_mlx5_cmd_doorbell(h->name, bitmap);
    if (!mlx5_hca_cmdq(h)) {
        mlx5_guest_error(h, "command doorbell without a command queue");
        return;
    }
    s->pending |= bitmap;
    if (s->pending) {
        qemu_bh_schedule(s->bh);
    }
}

/*
 * Commands that came with the migration stream wait until the machine runs:
 * the interrupt controller is loaded then, and operations have found their
 * peers and faults again.
 */
static void cmd_vm_state(void *opaque, bool running, RunState state)
{
    struct Mlx5CmdState *s = opaque;

    if (running && s->pending) {
        qemu_bh_schedule(s->bh);
    }
}

/* The property "commands": what there is, and the least that each takes. */
static void cmd_get_table(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    Mlx5Hca *h = opaque;

    if (!visit_start_list(v, name, NULL, 0, errp)) {
        return;
    }
    for (unsigned i = 0; i < CMD_OPCODES; i++) {
        const Mlx5CmdDesc *d = h->cmd->op[i];
        uint32_t opcode = i, in, out;
        char *text, *when;

        if (!d) {
            continue;
        }
        in = d->in_min;
        out = d->out_min;
        text = (char *)d->name;
        when = (char *)(d->flags & MLX5_CMDF_DISABLED ? "always" :
                        d->flags & MLX5_CMDF_NOT_INIT ? "before-init" :
                        d->flags & MLX5_CMDF_ANY_STATE ? "enabled" :
                        "after-init");
        visit_start_struct(v, NULL, NULL, 0, &error_abort);
        visit_type_uint32(v, "opcode", &opcode, &error_abort);
        visit_type_str(v, "name", &text, &error_abort);
        visit_type_uint32(v, "input", &in, &error_abort);
        visit_type_uint32(v, "output", &out, &error_abort);
        visit_type_str(v, "when", &when, &error_abort);
        visit_check_struct(v, &error_abort);
        visit_end_struct(v, NULL);
    }
    visit_check_list(v, &error_abort);
    visit_end_list(v, NULL);
}

void mlx5_cmd_init(Mlx5Hca *h)
{
    struct Mlx5CmdState *s = g_new0(struct Mlx5CmdState, 1);
    const Mlx5CmdDesc *d;
    int i;

    QEMU_BUILD_BUG_ON(CMD_SLOTS > 32);
    s->hca = h;
    s->bh = aio_bh_new_guarded(qemu_get_aio_context(), cmd_bh, h, h->guard);
    for (i = 0; i < ARRAY_SIZE(cmd_modules); i++) {
        for (d = cmd_modules[i]; d->fn; d++) {
            assert(d->opcode < CMD_OPCODES && !s->op[d->opcode]);
            s->op[d->opcode] = d;
        }
    }
    s->vmstate = qemu_add_vm_change_state_handler(cmd_vm_state, s);
    h->cmd = s;
    object_property_add(OBJECT(h->dev), "commands", "Mlx5Commands",
                        cmd_get_table, NULL, NULL, h);
}

void mlx5_cmd_reset(Mlx5Hca *h)
{
    h->cmd->pending = 0;
    qemu_bh_cancel(h->cmd->bh);
}

void mlx5_cmd_fini(Mlx5Hca *h)
{
    object_property_del(OBJECT(h->dev), "commands");
    qemu_del_vm_change_state_handler(h->cmd->vmstate);
    qemu_bh_delete(h->cmd->bh);
    g_free(h->cmd);
    h->cmd = NULL;
}

static const VMStateDescription vmstate_cmd_state = {
    .name = "mlx5-hca/cmd/state",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(pending, struct Mlx5CmdState),
        VMSTATE_END_OF_LIST()
    },
};

const VMStateDescription vmstate_mlx5_cmd = {
    .name = "mlx5-hca/cmd",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(cmd, Mlx5Hca, vmstate_cmd_state,
                               struct Mlx5CmdState),
        VMSTATE_END_OF_LIST()
    },
};
