/*
 * mlx5 HCA as a whole: its state, the init segment, firmware pages, health
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "mlx5-caps.h"
#include "mlx5-cq.h"
#include "mlx5-devx.h"
#include "mlx5-eq.h"
#include "mlx5-flow.h"
#include "mlx5-gobj.h"
#include "mlx5-hca.h"
#include "mlx5-health.h"
#include "mlx5-memic.h"
#include "mlx5-mcast.h"
#include "mlx5-mkey.h"
#include "mlx5-odp.h"
#include "mlx5-qos.h"
#include "mlx5-qp.h"
#include "mlx5-res.h"
#include "trace.h"

/* Byte offsets in the init segment (mlx5 driver: struct mlx5_init_seg). */
enum {
    ISEG_FW_REV = 0x0,
    ISEG_CMDIF_REV = 0x4,
    ISEG_CMDQ_H = 0x10,
    ISEG_CMDQ_L = 0x14,
    ISEG_CMD_DOORBELL = 0x18,
    ISEG_INITIALIZING = 0x1fc,
    ISEG_HEALTH = 0x200,
    ISEG_HEALTH_FW_VER = ISEG_HEALTH + 0x30,
    ISEG_HEALTH_HW_ID = ISEG_HEALTH + 0x34,
    ISEG_HEALTH_SEVERITY = ISEG_HEALTH + 0x38,
    ISEG_HEALTH_SYND = ISEG_HEALTH + 0x3c, /* in bits 23:16 */
    ISEG_TIMER_H = 0x1000,
    ISEG_TIMER_L = 0x1004,
    ISEG_HEALTH_COUNTER = 0x1010,
};

enum {
    CMDIF_REV = 5,
    HW_ID = 0x20f,                /* ConnectX-6 */
    INITIALIZING_FW_RESET = 1 << 30, /* driver may ask for a reset */
    SEVERITY_FATAL = 0x8b000000,  /* reset wanted; severity valid: error */
    SEVERITY_WARNING = 0x0c000000, /* severity valid: warning */
    HEALTH_TICK_NS = 10 * 1000 * 1000,
};

/* nic_interface of the init segment. */
enum {
    NIC_FULL_DRIVER = 0,
    NIC_DISABLED = 1,
    NIC_SW_RESET = 7,
};

enum Mlx5HcaPhase {
    HCA_DISABLED,                 /* before ENABLE_HCA */
    HCA_ENABLED,
    HCA_INIT,                     /* between INIT_HCA and TEARDOWN_HCA */
};

/* Firmware pages that QUERY_PAGES asks for, and the most that are taken. */
enum {
    PAGES_BOOT = 4,
    PAGES_INIT = 28,
    PAGES_MAX = 512,
};

/* Syndromes of this file. */
enum {
    SYND_HCA_FUNCTION = 0x510001,
    SYND_HCA_STATE,
    SYND_HCA_ISSI,
    SYND_HCA_PAGES_SHORT,
    SYND_HCA_PAGES_MANY,
    SYND_HCA_PAGES_MOD,
    SYND_HCA_PROFILE,
};

struct Mlx5HcaState {
    uint8_t phase;                /* Mlx5HcaPhase */
    uint8_t nic;                  /* nic_interface */
    uint8_t health;               /* syndrome, 0: well */
    uint16_t issi;
    uint32_t cmdq_h, cmdq_l;      /* address of the command queue */
    uint32_t npages;              /* firmware pages that we were given, ... */
    uint64_t page[PAGES_MAX];     /* ... to be handed back */
    uint8_t driver_version[64];   /* text */
};

uint64_t mlx5_hca_cmdq(Mlx5Hca *h)
{
    struct Mlx5HcaState *s = h->hs;

    return mlx5_hca_broken(h) || s->nic == NIC_DISABLED ? 0 :
           (uint64_t)s->cmdq_h << 32 | s->cmdq_l;
}

bool mlx5_hca_allows(Mlx5Hca *h, uint32_t flags)
{
    switch (h->hs->phase) {
    case HCA_DISABLED:
        return flags & MLX5_CMDF_DISABLED;
    case HCA_ENABLED:
        return flags & (MLX5_CMDF_ANY_STATE | MLX5_CMDF_DISABLED);
    default:
        return !(flags & MLX5_CMDF_NOT_INIT);
    }
}

static void hca_phase(Mlx5Hca *h, enum Mlx5HcaPhase phase)
{
    trace_mlx5_hca_phase(h->name, h->hs->phase, phase);
    h->hs->phase = phase;
}

void mlx5_hca_destroy_all(Mlx5Hca *h)
{
    trace_mlx5_hca_destroy_all(h->name, h->qps.count, h->cqs.count,
                               h->mkeys.count, h->eqs.count);
    mlx5_mcast_destroy_all(h);
    mlx5_qp_destroy_all(h);
    mlx5_srq_destroy_all(h);
    mlx5_cq_destroy_all(h);
    mlx5_odp_destroy_all(h);
    mlx5_mkey_destroy_all(h);
    mlx5_memic_destroy_all(h);
    mlx5_eq_destroy_all(h);
    mlx5_flow_destroy_all(h);
    mlx5_gobj_destroy_all(h);
    mlx5_qos_destroy_all(h);
    mlx5_devx_destroy_all(h);
    mlx5_res_destroy_all(h);
}

/* As after power-up, but for the command queue's address. */
static void hca_restart(Mlx5Hca *h)
{
    struct Mlx5HcaState *s = h->hs;

    mlx5_hca_destroy_all(h);
    mlx5_caps_reset(h);
    hca_phase(h, HCA_DISABLED);
    s->issi = 0;
    s->npages = 0;
    s->health = MLX5_HEALTH_OK;
    memset(s->driver_version, 0, sizeof(s->driver_version));
}

void mlx5_hca_reset(Mlx5Hca *h)
{
    struct Mlx5HcaState *s = h->hs;

    mlx5_cmd_reset(h);
    hca_restart(h);
    /* Tells a driver that slept through the reset; a new one clears it. */
    s->nic = NIC_DISABLED;
    s->cmdq_h = 0;
    s->cmdq_l = 0;
}

void mlx5_hca_set_health(Mlx5Hca *h, uint8_t syndrome)
{
    trace_mlx5_hca_health(h->name, syndrome, mlx5_health_is_fatal(syndrome));
    if (mlx5_health_is_fatal(syndrome)) {
        mlx5_cmd_reset(h);
        mlx5_hca_destroy_all(h);
    }
    h->hs->health = syndrome;
}

uint8_t mlx5_hca_health(Mlx5Hca *h)
{
    return h->hs->health;
}

bool mlx5_hca_broken(Mlx5Hca *h)
{
    return mlx5_health_is_fatal(h->hs->health);
}

/* Init segment. */

uint32_t mlx5_iseg_read(Mlx5Hca *h, uint32_t off)
{
    struct Mlx5HcaState *s = h->hs;

    switch (off) {
    case ISEG_FW_REV:
        return MLX5_FW_MINOR << 16 | MLX5_FW_MAJOR;
    case ISEG_CMDIF_REV:
        return CMDIF_REV << 16 | MLX5_FW_SUB;
    case ISEG_CMDQ_H:
        return s->cmdq_h;
    case ISEG_CMDQ_L:
        return s->cmdq_l | s->nic << 8 | MLX5_CMDQ_LOG_SIZE << 4 |
               MLX5_CMDQ_LOG_STRIDE;
    case ISEG_INITIALIZING:
        return INITIALIZING_FW_RESET;
    case ISEG_HEALTH_FW_VER:
        return MLX5_FW_MAJOR << 24 | MLX5_FW_MINOR << 16 | MLX5_FW_SUB;
    case ISEG_HEALTH_HW_ID:
        return HW_ID;
    case ISEG_HEALTH_SEVERITY:
        return mlx5_hca_broken(h) ? SEVERITY_FATAL :
               s->health ? SEVERITY_WARNING : 0;
    case ISEG_HEALTH_SYND:
        return s->health << 16;
    case ISEG_TIMER_H:
        return mlx5_timestamp() >> 32;
    case ISEG_TIMER_L:
        return mlx5_timestamp();
    case ISEG_HEALTH_COUNTER:
        /* Stands still while the device is broken. */
        return mlx5_hca_broken(h) ? 0 :
               qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) / HEALTH_TICK_NS;
    default:
        return 0;
    }
}

static void iseg_write_cmdq_l(Mlx5Hca *h, uint32_t value)
{
    struct Mlx5HcaState *s = h->hs;
    uint8_t nic = extract32(value, 8, 3);

    s->cmdq_l = value & 0xfffff000;
    trace_mlx5_iseg_cmdq(h->name, (uint64_t)s->cmdq_h << 32 | s->cmdq_l, nic);
    switch (nic) {
    case NIC_FULL_DRIVER:
        s->nic = nic;
        break;
    case NIC_DISABLED:
    case NIC_SW_RESET:
        /* Fast teardown and the driver's reset: nothing keeps running. */
        mlx5_cmd_reset(h);
        hca_restart(h);
        s->nic = NIC_DISABLED;
        break;
    default:
        mlx5_guest_error(h, "nic_interface %u is not known", nic);
        break;
    }
}

void mlx5_iseg_write(Mlx5Hca *h, uint32_t off, uint32_t value)
{
    switch (off) {
    case ISEG_CMDQ_H:
        h->hs->cmdq_h = value;
        break;
    case ISEG_CMDQ_L:
        iseg_write_cmdq_l(h, value);
        break;
    case ISEG_CMD_DOORBELL:
        mlx5_cmd_doorbell(h, value);
        break;
    default:
        mlx5_guest_error(h, "write of 0x%x to 0x%x of the init segment",
                         value, off);
        break;
    }
}

/* Commands. */

static enum Mlx5CmdStatus cmd_enable_hca(Mlx5Hca *h, Mlx5Cmd *c)
{
    if (MLX5_GET(c->in, enable_hca_in, function_id)) {
        c->syndrome = SYND_HCA_FUNCTION;
        return MLX5_CMD_BAD_PARAM;
    }
    if (h->hs->phase != HCA_DISABLED) {
        c->syndrome = SYND_HCA_STATE;
        return MLX5_CMD_BAD_SYS_STATE;
    }
    hca_phase(h, HCA_ENABLED);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_disable_hca(Mlx5Hca *h, Mlx5Cmd *c)
{
    if (MLX5_GET(c->in, disable_hca_in, function_id)) {
        c->syndrome = SYND_HCA_FUNCTION;
        return MLX5_CMD_BAD_PARAM;
    }
    hca_restart(h);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_init_hca(Mlx5Hca *h, Mlx5Cmd *c)
{
    hca_phase(h, HCA_INIT);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_teardown_hca(Mlx5Hca *h, Mlx5Cmd *c)
{
    /* 0: graceful, 1: force; both end everything that is left. */
    if (MLX5_GET(c->in, teardown_hca_in, profile) > 1) {
        c->syndrome = SYND_HCA_PROFILE;
        return MLX5_CMD_BAD_PARAM;
    }
    mlx5_hca_destroy_all(h);
    hca_phase(h, HCA_ENABLED);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_query_issi(Mlx5Hca *h, Mlx5Cmd *c)
{
    MLX5_SET(c->out, query_issi_out, current_issi, h->hs->issi);
    MLX5_SET(c->out, query_issi_out, supported_issi_dw0, 1 << 1 | 1 << 0);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_set_issi(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t issi = MLX5_GET(c->in, set_issi_in, current_issi);

    if (issi > 1) {
        c->syndrome = SYND_HCA_ISSI;
        return MLX5_CMD_BAD_PARAM;
    }
    h->hs->issi = issi;
    return MLX5_CMD_OK;
}

enum { QUERY_PAGES_BOOT = 1, QUERY_PAGES_INIT = 2, QUERY_PAGES_REGULAR = 3 };

static enum Mlx5CmdStatus cmd_query_pages(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t need;

    switch (c->op_mod) {
    case QUERY_PAGES_BOOT:
        need = PAGES_BOOT;
        break;
    case QUERY_PAGES_INIT:
        need = PAGES_BOOT + PAGES_INIT;
        break;
    case QUERY_PAGES_REGULAR:
        need = 0;
        break;
    default:
        c->syndrome = SYND_HCA_PAGES_MOD;
        return MLX5_CMD_BAD_PARAM;
    }
    MLX5_SET(c->out, query_pages_out, num_pages,
             need > h->hs->npages ? need - h->hs->npages : 0);
    return MLX5_CMD_OK;
}

enum { PAGES_CANT_GIVE = 0, PAGES_GIVE = 1, PAGES_TAKE = 2 };

static enum Mlx5CmdStatus pages_give(Mlx5Hca *h, Mlx5Cmd *c, uint32_t n)
{
    struct Mlx5HcaState *s = h->hs;
    const uint8_t *pas = MLX5_ADDR(c->in, manage_pages_in, pas);
    uint32_t i;

    if (n > (c->in_len - MLX5_AT(manage_pages_in, pas)) / 8) {
        c->syndrome = SYND_HCA_PAGES_SHORT;
        return MLX5_CMD_BAD_INP_LEN;
    }
    if (n > PAGES_MAX - s->npages) {
        c->syndrome = SYND_HCA_PAGES_MANY;
        return MLX5_CMD_LIM_ERR;
    }
    for (i = 0; i < n; i++) {
        s->page[s->npages++] = ldq_be_p(pas + 8 * i);
    }
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus pages_take(Mlx5Hca *h, Mlx5Cmd *c, uint32_t n)
{
    struct Mlx5HcaState *s = h->hs;
    uint8_t *pas = MLX5_ADDR(c->out, manage_pages_out, pas);
    uint32_t i;

    n = MIN(n, s->npages);
    if (n > (c->out_len - MLX5_AT(manage_pages_out, pas)) / 8) {
        c->syndrome = SYND_HCA_PAGES_SHORT;
        return MLX5_CMD_BAD_OUTP_LEN;
    }
    for (i = 0; i < n; i++) {
        stq_be_p(pas + 8 * i, s->page[--s->npages]);
    }
    MLX5_SET(c->out, manage_pages_out, output_num_entries, n);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_manage_pages(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint32_t n = MLX5_GET(c->in, manage_pages_in, input_num_entries);
    enum Mlx5CmdStatus st;

    if (MLX5_GET(c->in, manage_pages_in, function_id)) {
        c->syndrome = SYND_HCA_FUNCTION;
        return MLX5_CMD_BAD_PARAM;
    }
    switch (c->op_mod) {
    case PAGES_CANT_GIVE:
        return MLX5_CMD_OK;
    case PAGES_GIVE:
        st = pages_give(h, c, n);
        break;
    case PAGES_TAKE:
        st = pages_take(h, c, n);
        break;
    default:
        c->syndrome = SYND_HCA_PAGES_MOD;
        return MLX5_CMD_BAD_PARAM;
    }
    trace_mlx5_hca_pages(h->name, c->op_mod, n, h->hs->npages);
    return st;
}

static enum Mlx5CmdStatus cmd_query_adapter(Mlx5Hca *h, Mlx5Cmd *c)
{
    void *a = MLX5_ADDR(c->out, query_adapter_out, query_adapter_struct);

    MLX5_SET(a, query_adapter_param_block, ieee_vendor_id, 0x02c9);
    MLX5_SET(a, query_adapter_param_block, vsd_vendor_id, 0x15b3);
    strpadcpy(MLX5_ADDR(a, query_adapter_param_block, vsd_contd_psid), 16,
              MLX5_PSID, 0);
    return MLX5_CMD_OK;
}

static enum Mlx5CmdStatus cmd_set_driver_version(Mlx5Hca *h, Mlx5Cmd *c)
{
    uint8_t *v = h->hs->driver_version;

    memcpy(v, MLX5_ADDR(c->in, set_driver_version_in, driver_version),
           sizeof(h->hs->driver_version));
    v[sizeof(h->hs->driver_version) - 1] = 0;
    trace_mlx5_hca_driver_version(h->name, (const char *)v);
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_hca_cmds[] = {
    { 0x101, "QUERY_ADAPTER", 16, MLX5_BYTES(query_adapter_out),
      cmd_query_adapter },
    { 0x102, "INIT_HCA", 16, 8, cmd_init_hca,
      MLX5_CMDF_ANY_STATE | MLX5_CMDF_NOT_INIT },
    { 0x103, "TEARDOWN_HCA", 16, 16, cmd_teardown_hca, MLX5_CMDF_ANY_STATE },
    { 0x104, "ENABLE_HCA", 16, 8, cmd_enable_hca, MLX5_CMDF_DISABLED },
    { 0x105, "DISABLE_HCA", 16, 8, cmd_disable_hca, MLX5_CMDF_DISABLED },
    { 0x107, "QUERY_PAGES", 16, 16, cmd_query_pages, MLX5_CMDF_ANY_STATE },
    { 0x108, "MANAGE_PAGES", MLX5_AT(manage_pages_in, pas), 16,
      cmd_manage_pages, MLX5_CMDF_ANY_STATE },
    { 0x10a, "QUERY_ISSI", 16, MLX5_BYTES(query_issi_out), cmd_query_issi,
      MLX5_CMDF_ANY_STATE },
    { 0x10b, "SET_ISSI", 16, 8, cmd_set_issi,
      MLX5_CMDF_ANY_STATE | MLX5_CMDF_NOT_INIT },
    { 0x10d, "SET_DRIVER_VERSION", MLX5_BYTES(set_driver_version_in), 8,
      cmd_set_driver_version, MLX5_CMDF_ANY_STATE },
    { }
};

void mlx5_hca_init(Mlx5Hca *h)
{
    h->hs = g_new0(struct Mlx5HcaState, 1);
}

void mlx5_hca_fini(Mlx5Hca *h)
{
    g_free(h->hs);
    h->hs = NULL;
}

static int hca_state_post_load(void *opaque, int version_id)
{
    struct Mlx5HcaState *s = opaque;

    s->driver_version[sizeof(s->driver_version) - 1] = 0;
    return s->npages <= PAGES_MAX && s->phase <= HCA_INIT ? 0 : -EINVAL;
}

static const VMStateDescription vmstate_hca_fields = {
    .name = "mlx5-hca/hca/state",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = hca_state_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(phase, struct Mlx5HcaState),
        VMSTATE_UINT8(nic, struct Mlx5HcaState),
        VMSTATE_UINT8(health, struct Mlx5HcaState),
        VMSTATE_UINT16(issi, struct Mlx5HcaState),
        VMSTATE_UINT32(cmdq_h, struct Mlx5HcaState),
        VMSTATE_UINT32(cmdq_l, struct Mlx5HcaState),
        VMSTATE_UINT32(npages, struct Mlx5HcaState),
        VMSTATE_UINT64_ARRAY(page, struct Mlx5HcaState, PAGES_MAX),
        VMSTATE_BUFFER(driver_version, struct Mlx5HcaState),
        VMSTATE_END_OF_LIST()
    },
};

const VMStateDescription vmstate_mlx5_hca_state = {
    .name = "mlx5-hca/hca",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(hs, Mlx5Hca, vmstate_hca_fields,
                               struct Mlx5HcaState),
        VMSTATE_END_OF_LIST()
    },
};
