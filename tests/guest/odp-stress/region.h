/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef REGION_H
#define REGION_H

#include "verbs.h"

/*
 * Memory under test, cut into areas of AREA_BYTES; each area belongs to one
 * operation at a time.
 *
 * A FILE region is mapped twice. The device knows one mapping, the processor
 * fills and checks through the other, so that the device's mapping can lose
 * its pages at any time, in mid-transfer too, and every byte is still known.
 * An ANON region has one private mapping: dropping its pages zeroes them, so
 * only an area's owner may do that; forking makes them copy-on-write at any
 * time.
 */
enum mem { MEM_FILE, MEM_ANON };
enum reg { REG_PINNED, REG_ODP, REG_IMPLICIT };

enum { AREA_BYTES = 16384 };

struct region {
    const char *name;
    enum mem mem;
    enum reg reg;
    bool source;            /* the device only reads it */
    uint8_t *dev;           /* the mapping that the device uses */
    uint8_t *cpu;           /* the mapping that we use */
    size_t len;
    int fd;
    struct ibv_mr *mr;
    bool mr_shared;         /* an implicit MR belongs to all */
};

/* implicit: the MR to use for REG_IMPLICIT. */
struct region *region_new(struct vdev *v, enum mem mem, enum reg reg,
                          bool source, unsigned areas,
                          struct ibv_mr *implicit);
void region_free(struct region *r);
/* The device's mapping loses these pages (an ANON one its content too). */
void region_drop(struct region *r, size_t offset, size_t len);
/* A new mapping of the same file pages takes the place of the old one. */
void region_remap(struct region *r, size_t offset, size_t len);
/* Read only and back again; for sources. */
void region_flip(struct region *r, size_t offset, size_t len, bool readonly);

#endif
