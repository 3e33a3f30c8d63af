/*
 * mlx5 vendor-specific capability: the gateway in config space
 *
 * An address and a data register give access to several address spaces. Of
 * these only the semaphores are here, which drivers of several functions use
 * to agree on who resets the device; there is no dump of registers. (Linux:
 * drivers/net/ethernet/mellanox/mlx5/core/lib/pci_vsc.c)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-vsc.h"

enum {
    VSC_CTRL = 0x4,
    VSC_COUNTER = 0x8,
    VSC_SEMAPHORE = 0xc,
    VSC_ADDR = 0x10,
    VSC_DATA = 0x14,

    SPACE_SEMAPHORE = 0xa,
    STATUS_SHIFT = 29,            /* of ctrl: not 0, the space is there */
    ADDR_MASK = 0x3fffffff,
};

#define ADDR_FLAG (1u << 31)      /* write: go and write; read done: set */

uint32_t mlx5_vsc_read(Mlx5Vsc *v, uint32_t off)
{
    switch (off) {
    case VSC_CTRL:
        return v->ctrl;
    case VSC_COUNTER:
        v->counter = v->counter == UINT32_MAX ? 1 : v->counter + 1;
        return v->counter;
    case VSC_SEMAPHORE:
        return v->lock;
    case VSC_ADDR:
        return v->addr;
    case VSC_DATA:
        return v->data;
    default:
        return 0;
    }
}

static void vsc_access(Mlx5Vsc *v, uint32_t addr)
{
    bool ok = v->ctrl >> STATUS_SHIFT &&
              (addr & ADDR_MASK) < MLX5_VSC_SEMAPHORES;
    uint32_t *sem = ok ? &v->sem[addr & ADDR_MASK] : NULL;

    if (addr & ADDR_FLAG) {
        /* Taken when free, given back by writing 0. */
        if (sem && (!*sem || !v->data)) {
            *sem = v->data;
        }
        v->addr = addr & ~ADDR_FLAG;
    } else {
        v->data = sem ? *sem : 0;
        v->addr = addr | ADDR_FLAG;
    }
}

void mlx5_vsc_write(Mlx5Vsc *v, uint32_t off, uint32_t value)
{
    switch (off) {
    case VSC_CTRL:
        v->ctrl = value & 0xffff;
        if (v->ctrl == SPACE_SEMAPHORE) {
            v->ctrl |= 1u << STATUS_SHIFT;
        }
        break;
    case VSC_SEMAPHORE:
        if (!v->lock || !value) {
            v->lock = value;
        }
        break;
    case VSC_ADDR:
        vsc_access(v, value);
        break;
    case VSC_DATA:
        v->data = value;
        break;
    }
}

const VMStateDescription vmstate_mlx5_vsc = {
    .name = "mlx5-hca/vsc",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(ctrl, Mlx5Vsc),
        VMSTATE_UINT32(counter, Mlx5Vsc),
        VMSTATE_UINT32(lock, Mlx5Vsc),
        VMSTATE_UINT32(addr, Mlx5Vsc),
        VMSTATE_UINT32(data, Mlx5Vsc),
        VMSTATE_UINT32_ARRAY(sem, Mlx5Vsc, MLX5_VSC_SEMAPHORES),
        VMSTATE_END_OF_LIST()
    },
};
