/*
 * mlx5 device memory (MEMIC): RAM on the HCA, seen through BAR0
 *
 * The driver picks a range of pages in the BAR, the device a place in it.
 * Processes map the pages and make memory keys of access mode MEMIC, whose
 * addresses count from 0 and whose start is the offset in BAR0. For an
 * allocation the driver can ask for the address of an atomic operation: a
 * window in the BAR in which an access is that operation.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "qapi/error.h"
#include "migration/vmstate.h"
#include "mlx5-cmd.h"
#include "mlx5-memic.h"
#include "trace.h"

enum {
    MLX5_MEMIC_UNITS = MLX5_MEMIC_BYTES >> MLX5_MEMIC_LOG_MIN,
};

void *mlx5_memic_ptr(Mlx5Hca *h, uint64_t offset, uint64_t len)
{
    if (!h->memic || offset > MLX5_MEMIC_BYTES ||
        len > MLX5_MEMIC_BYTES - offset) {
        return NULL;
    }
    return (uint8_t *)memory_region_get_ram_ptr(&h->memic_ram) + offset;
}

/* The operation's window; values are in the order of bytes of the access. */
static bool mlx5_memic_may(Mlx5Hca *h, unsigned op, hwaddr at, unsigned size)
{
    if (!(at & (size - 1)) &&
        test_bit(at >> MLX5_MEMIC_LOG_MIN, h->memic->op[op])) {
        return true;
    }
    mlx5_guest_error(h, "device memory: operation %u on %u bytes at 0x%"
                     HWADDR_PRIx, op, size, at);
    return false;
}

static void mlx5_memic_store(Mlx5Hca *h, hwaddr at, unsigned size, uint64_t v)
{
    stn_le_p(mlx5_memic_ptr(h, at, size), size, v);
    memory_region_set_dirty(&h->memic_ram, at, size);
}

static uint64_t mlx5_memic_no_read(void *opaque, hwaddr at, unsigned size)
{
    mlx5_guest_error((Mlx5Hca *)opaque, "device memory: the window at "
                     "0x%" HWADDR_PRIx " is for writing", at);
    return 0;
}

static void mlx5_memic_no_write(void *opaque, hwaddr at, uint64_t value,
                                unsigned size)
{
    mlx5_guest_error((Mlx5Hca *)opaque, "device memory: the window at "
                     "0x%" HWADDR_PRIx " is for reading", at);
}

static void mlx5_memic_increment(void *opaque, hwaddr at, uint64_t value,
                                 unsigned size)
{
    Mlx5Hca *h = opaque;

    if (mlx5_memic_may(h, MLX5_MEMIC_INCREMENT, at, size)) {
        uint64_t old = ldn_le_p(mlx5_memic_ptr(h, at, size), size);

        trace_mlx5_memic_op(h->name, MLX5_MEMIC_INCREMENT, at, size, old);
        mlx5_memic_store(h, at, size, old + value);
    }
}

static uint64_t mlx5_memic_test_and_set(void *opaque, hwaddr at, unsigned size)
{
    Mlx5Hca *h = opaque;
    uint64_t old = 0;

    if (mlx5_memic_may(h, MLX5_MEMIC_TEST_AND_SET, at, size)) {
        old = ldn_le_p(mlx5_memic_ptr(h, at, size), size);
        trace_mlx5_memic_op(h->name, MLX5_MEMIC_TEST_AND_SET, at, size, old);
        mlx5_memic_store(h, at, size, 1);
    }
    return old;
}

static const MemoryRegionOps memic_op_regions[MLX5_MEMIC_OPS] = {
    [MLX5_MEMIC_INCREMENT] = {
        .read = mlx5_memic_no_read,
        .write = mlx5_memic_increment,
        .endianness = DEVICE_LITTLE_ENDIAN,
        .valid = { .min_access_size = 1, .max_access_size = 8 },
        .impl = { .min_access_size = 1, .max_access_size = 8 },
    },
    [MLX5_MEMIC_TEST_AND_SET] = {
        .read = mlx5_memic_test_and_set,
        .write = mlx5_memic_no_write,
        .endianness = DEVICE_LITTLE_ENDIAN,
        .valid = { .min_access_size = 1, .max_access_size = 8 },
        .impl = { .min_access_size = 1, .max_access_size = 8 },
    },
};

static enum Mlx5CmdStatus mlx5_memic_alloc(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5MemicState *s = h->memic;
    uint64_t from = MLX5_GET64(c->in, alloc_memic_in, range_start_addr);
    uint32_t range = MLX5_GET(c->in, alloc_memic_in, range_size);
    uint32_t size = MLX5_GET(c->in, alloc_memic_in, memic_size);
    uint32_t log_align = MLX5_GET(c->in, alloc_memic_in,
                                  log_memic_addr_alignment);
    unsigned long first, end, units, align;

    if (!s) {
        return MLX5_CMD_BAD_OP;
    }
    from -= s->bar_offset;
    units = DIV_ROUND_UP((uint64_t)size, 1 << MLX5_MEMIC_LOG_MIN);
    if (from >= MLX5_MEMIC_BYTES || from & 63 ||
        range > MLX5_MEMIC_BYTES - from || !size || size > range ||
        log_align > 12) {
        return MLX5_CMD_BAD_PARAM;
    }
    align = 1ul << log_align;     /* in units of 64 bytes */
    first = from >> MLX5_MEMIC_LOG_MIN;
    end = (from + range) >> MLX5_MEMIC_LOG_MIN;
    for (first = ROUND_UP(first, align); first + units <= end;
         first += align) {
        if (find_next_bit(s->used, first + units, first) >= first + units) {
            bitmap_set(s->used, first, units);
            set_bit(first, s->start);
            from = s->bar_offset + ((uint64_t)first << MLX5_MEMIC_LOG_MIN);
            MLX5_SET64(c->out, alloc_memic_out, memic_start_addr, from);
            trace_mlx5_memic_alloc(h->name, from, size);
            return MLX5_CMD_OK;
        }
    }
    return MLX5_CMD_NO_RES;
}

static enum Mlx5CmdStatus mlx5_memic_dealloc(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5MemicState *s = h->memic;
    uint64_t at = MLX5_GET64(c->in, dealloc_memic_in, memic_start_addr);
    uint32_t size = MLX5_GET(c->in, dealloc_memic_in, memic_size);
    unsigned long first, units;

    if (!s) {
        return MLX5_CMD_BAD_OP;
    }
    trace_mlx5_memic_dealloc(h->name, at, size);
    at -= s->bar_offset;
    if (at >= MLX5_MEMIC_BYTES || at & 63 || !size ||
        size > MLX5_MEMIC_BYTES - at) {
        return MLX5_CMD_BAD_PARAM;
    }
    first = at >> MLX5_MEMIC_LOG_MIN;
    units = DIV_ROUND_UP(size, 1 << MLX5_MEMIC_LOG_MIN);
    /* Exactly one allocation, all of it. */
    if (!test_bit(first, s->start) ||
        find_next_zero_bit(s->used, first + units, first) < first + units ||
        find_next_bit(s->start, first + units, first + 1) < first + units ||
        (first + units < MLX5_MEMIC_UNITS && test_bit(first + units, s->used) &&
         !test_bit(first + units, s->start))) {
        return MLX5_CMD_BAD_RES;
    }
    for (unsigned op = 0; op < MLX5_MEMIC_OPS; op++) {
        if (test_bit(first, s->op[op])) {
            return MLX5_CMD_BAD_RES_STATE;
        }
    }
    bitmap_clear(s->used, first, units);
    clear_bit(first, s->start);
    /* The next owner must not read what the last one wrote. */
    memset(mlx5_memic_ptr(h, at, size), 0, size);
    memory_region_set_dirty(&h->memic_ram, at, size);
    return MLX5_CMD_OK;
}

/* op_mod 0: the address of an operation on an allocation; 1: no longer. */
static enum Mlx5CmdStatus mlx5_memic_modify(Mlx5Hca *h, Mlx5Cmd *c)
{
    Mlx5MemicState *s = h->memic;
    uint64_t at = MLX5_GET64(c->in, modify_memic_in, memic_start_addr);
    uint32_t op = MLX5_GET(c->in, modify_memic_in, memic_operation_type);
    unsigned long first, end;

    if (!s) {
        return MLX5_CMD_BAD_OP;
    }
    at -= s->bar_offset;
    if (op >= MLX5_MEMIC_OPS || c->op_mod > 1 || at >= MLX5_MEMIC_BYTES ||
        at & 63) {
        return MLX5_CMD_BAD_PARAM;
    }
    first = at >> MLX5_MEMIC_LOG_MIN;
    if (!test_bit(first, s->start)) {
        return MLX5_CMD_BAD_RES;
    }
    if (test_bit(first, s->op[op]) != c->op_mod) {
        return MLX5_CMD_BAD_RES_STATE;
    }
    end = MIN(find_next_bit(s->start, MLX5_MEMIC_UNITS, first + 1),
              find_next_zero_bit(s->used, MLX5_MEMIC_UNITS, first));
    trace_mlx5_memic_modify(h->name, op, at, c->op_mod);
    if (c->op_mod) {
        bitmap_clear(s->op[op], first, end - first);
        return MLX5_CMD_OK;
    }
    bitmap_set(s->op[op], first, end - first);
    MLX5_SET64(c->out, modify_memic_out, memic_operation_addr,
               s->window_offset + (uint64_t)op * MLX5_MEMIC_BYTES + at);
    return MLX5_CMD_OK;
}

const Mlx5CmdDesc mlx5_memic_cmds[] = {
    { 0x205, "ALLOC_MEMIC", MLX5_BYTES(alloc_memic_in),
      MLX5_BYTES(alloc_memic_out), mlx5_memic_alloc },
    { 0x206, "DEALLOC_MEMIC", MLX5_BYTES(dealloc_memic_in),
      MLX5_BYTES(dealloc_memic_out), mlx5_memic_dealloc },
    { 0x207, "MODIFY_MEMIC", MLX5_AT(modify_memic_in, memic_start_addr) + 8,
      MLX5_AT(modify_memic_out, memic_operation_addr) + 8, mlx5_memic_modify },
    { }
};

bool mlx5_memic_init(Mlx5Hca *h, MemoryRegion *bar, uint64_t offset,
                     Error **errp)
{
    Mlx5MemicState *s;

    if (!memory_region_init_ram(&h->memic_ram, OBJECT(h->dev), "mlx5-memic",
                                MLX5_MEMIC_BYTES, errp)) {
        return false;
    }
    memory_region_add_subregion(bar, offset, &h->memic_ram);
    s = g_new0(Mlx5MemicState, 1);
    s->bar_offset = offset;
    s->units = MLX5_MEMIC_UNITS;
    s->used = bitmap_new(MLX5_MEMIC_UNITS);
    s->start = bitmap_new(MLX5_MEMIC_UNITS);
    s->window_offset = offset - MLX5_MEMIC_OPS * MLX5_MEMIC_BYTES;
    for (unsigned op = 0; op < MLX5_MEMIC_OPS; op++) {
        s->op[op] = bitmap_new(MLX5_MEMIC_UNITS);
        memory_region_init_io(&h->memic_op[op], OBJECT(h->dev),
                              &memic_op_regions[op], h, "mlx5-memic-op",
                              MLX5_MEMIC_BYTES);
        memory_region_add_subregion(bar, s->window_offset +
                                    op * MLX5_MEMIC_BYTES, &h->memic_op[op]);
    }
    h->memic = s;
    return true;
}

void mlx5_memic_destroy_all(Mlx5Hca *h)
{
    Mlx5MemicState *s = h->memic;

    if (s && !bitmap_empty(s->used, MLX5_MEMIC_UNITS)) {
        bitmap_zero(s->used, MLX5_MEMIC_UNITS);
        bitmap_zero(s->start, MLX5_MEMIC_UNITS);
        for (unsigned op = 0; op < MLX5_MEMIC_OPS; op++) {
            bitmap_zero(s->op[op], MLX5_MEMIC_UNITS);
        }
        memset(mlx5_memic_ptr(h, 0, MLX5_MEMIC_BYTES), 0, MLX5_MEMIC_BYTES);
        memory_region_set_dirty(&h->memic_ram, 0, MLX5_MEMIC_BYTES);
    }
}

void mlx5_memic_fini(Mlx5Hca *h)
{
    Mlx5MemicState *s = h->memic;

    if (s) {
        h->memic = NULL;
        g_free(s->used);
        g_free(s->start);
        for (unsigned op = 0; op < MLX5_MEMIC_OPS; op++) {
            g_free(s->op[op]);
        }
        g_free(s);                /* the RAM goes with the device */
    }
}

static bool mlx5_memic_needed(void *opaque)
{
    return ((Mlx5Hca *)opaque)->memic;
}

static const VMStateDescription vmstate_mlx5_memic_state = {
    .name = "mlx5-memic-state",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_BITMAP(used, Mlx5MemicState, 1, units),
        VMSTATE_BITMAP(start, Mlx5MemicState, 1, units),
        VMSTATE_BITMAP(op[MLX5_MEMIC_INCREMENT], Mlx5MemicState, 1, units),
        VMSTATE_BITMAP(op[MLX5_MEMIC_TEST_AND_SET], Mlx5MemicState, 1, units),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_mlx5_memic = {
    .name = "mlx5-memic",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = mlx5_memic_needed,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(memic, Mlx5Hca, vmstate_mlx5_memic_state,
                               struct Mlx5MemicState),
        VMSTATE_END_OF_LIST()
    }
};
