// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A page-fault handler for a DMA master behind an MMU-500, in the manner of
 * ExaNeSt's: the master's addresses are those of a process, nothing is pinned,
 * and a page is mapped when the master faults on it.
 *
 * The driver binds a PCI function (the PCIe exerciser), puts it in an
 * unmanaged domain and turns stalling on (SCTLR.CFCFG) in the context bank,
 * which Linux's arm-smmu leaves off. Whoever opens /dev/odp-stall and writes
 * "ADDRESS LENGTH" to it lends that range of its memory to the master. An MMU
 * interval notifier takes pages back when the process's mapping changes.
 *
 * A fault: arm-smmu's interrupt handler calls fault_handler(), which masks the
 * bank's interrupt (FSR.SS holds the line up until RESUME) and leaves the rest
 * to a worker, that may sleep: so one CPU is enough. The worker gets the page,
 * maps it, writes RESUME and unmasks. Each stall is one interrupt and one
 * turn of the worker.
 *
 * Reading /dev/odp-stall gives the counters.
 */
#include <linux/io.h>
#include <linux/iommu.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

/* SMMUv2 (Arm IHI 0062), with pages of 4 KiB */
#define IDR0_NUMSMRG(v)	((v) & 0xff)
#define SMR(n)		(0x800 + 4 * (n))
#define SMR_VALID	BIT(31)
#define S2CR(n)		(0xc00 + 4 * (n))
#define SCTLR		0x00
#define SCTLR_CFIE	BIT(6)
#define SCTLR_CFCFG	BIT(7)
#define RESUME		0x08
#define RESUME_RETRY	0
#define RESUME_TERMINATE 1
#define FSR		0x58
#define FSR_SS		BIT(30)
#define FSR_BITS	0x800001feu
#define FAR		0x60
#define FSYNR0		0x68
#define FSYNR0_WNR	BIT(4)

struct stall {
	struct pci_dev *pdev;
	struct iommu_domain *domain;
	void __iomem *cb;		/* the bank's registers */
	int bank;
	struct work_struct work;
	struct miscdevice misc;
	atomic_t opened;

	/* held while a fault is served, and while the process changes */
	struct mutex serving;
	/* what follows; the innermost: the notifier takes it */
	struct mutex lock;
	struct mmu_interval_notifier notifier;
	struct mm_struct *mm;		/* NULL: nothing is lent */
	unsigned long start, end;

	unsigned long faults;		/* calls of the fault handler */
	unsigned long mapped, upgraded, refused, again, taken_back;
};

/* Takes the range's pages from the master. Under s->lock. */
static void take_back(struct stall *s, unsigned long start, unsigned long end)
{
	unsigned long addr;

	for (addr = start & PAGE_MASK; addr < end; addr += PAGE_SIZE) {
		if (iommu_iova_to_phys(s->domain, addr)) {
			iommu_unmap(s->domain, addr, PAGE_SIZE);
			s->taken_back++;
		}
	}
}

static bool invalidate(struct mmu_interval_notifier *mni,
		       const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct stall *s = container_of(mni, struct stall, notifier);

	if (mmu_notifier_range_blockable(range))
		mutex_lock(&s->lock);
	else if (!mutex_trylock(&s->lock))
		return false;
	mmu_interval_set_seq(mni, seq);
	take_back(s, max(range->start, s->start), min(range->end, s->end));
	mutex_unlock(&s->lock);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

/* Maps the page at @addr; 0: try again, else the access is refused. */
static int serve(struct stall *s, unsigned long addr, bool write)
{
	int prot = IOMMU_READ | (write ? IOMMU_WRITE : 0);
	struct mm_struct *mm = s->mm;
	struct page *page;
	unsigned long seq;
	long n;
	int ret;

	if (!mm || addr < s->start || addr >= s->end)
		return -EFAULT;
	if (!mmget_not_zero(mm))
		return -ESRCH;
	for (;;) {
		seq = mmu_interval_read_begin(&s->notifier);
		mmap_read_lock(mm);
		n = get_user_pages_remote(mm, addr, 1,
					  write ? FOLL_WRITE : 0, &page, NULL);
		mmap_read_unlock(mm);
		if (n != 1) {
			ret = n < 0 ? n : -EFAULT;
			break;
		}
		mutex_lock(&s->lock);
		if (mmu_interval_read_retry(&s->notifier, seq)) {
			s->again++;
			mutex_unlock(&s->lock);
			put_page(page);
			continue;
		}
		if (iommu_iova_to_phys(s->domain, addr)) {
			/* read-only until now */
			iommu_unmap(s->domain, addr, PAGE_SIZE);
			s->upgraded++;
		}
		ret = iommu_map(s->domain, addr, page_to_phys(page),
				PAGE_SIZE, prot, GFP_KERNEL);
		s->mapped += !ret;
		mutex_unlock(&s->lock);
		/* Not pinned: the notifier tells us when it goes. */
		put_page(page);
		break;
	}
	mmput_async(mm);
	return ret;
}

static void work(struct work_struct *work)
{
	struct stall *s = container_of(work, struct stall, work);
	u32 fsr = readl(s->cb + FSR);

	if (fsr & FSR_SS) {
		unsigned long addr = readq(s->cb + FAR) & PAGE_MASK;
		bool write = readl(s->cb + FSYNR0) & FSYNR0_WNR;
		int ret;

		mutex_lock(&s->serving);
		ret = serve(s, addr, write);
		mutex_unlock(&s->serving);
		s->refused += !!ret;
		writel(FSR_BITS, s->cb + FSR);
		writel(ret ? RESUME_TERMINATE : RESUME_RETRY, s->cb + RESUME);
	}
	writel(readl(s->cb + SCTLR) | SCTLR_CFIE, s->cb + SCTLR);
}

/*
 * In arm-smmu's interrupt handler. Newer kernels write RESUME themselves and
 * try again on -EAGAIN: what faults then is found by the worker.
 */
static int fault_handler(struct iommu_domain *domain, struct device *dev,
			 unsigned long iova, int flags, void *token)
{
	struct stall *s = token;

	s->faults++;
	writel(readl(s->cb + SCTLR) & ~SCTLR_CFIE, s->cb + SCTLR);
	schedule_work(&s->work);
	return -EAGAIN;
}

/* Under s->serving. */
static void give_back(struct stall *s)
{
	struct mm_struct *mm = s->mm;

	if (!mm)
		return;
	mmu_interval_notifier_remove(&s->notifier);
	mutex_lock(&s->lock);
	s->mm = NULL;
	take_back(s, s->start, s->end);
	mutex_unlock(&s->lock);
	mmdrop(mm);
}

static struct stall *of_file(struct file *file)
{
	return container_of(file->private_data, struct stall, misc);
}

static int stall_open(struct inode *inode, struct file *file)
{
	return atomic_cmpxchg(&of_file(file)->opened, 0, 1) ? -EBUSY : 0;
}

static int stall_release(struct inode *inode, struct file *file)
{
	struct stall *s = of_file(file);

	mutex_lock(&s->serving);
	give_back(s);
	mutex_unlock(&s->serving);
	atomic_set(&s->opened, 0);
	return 0;
}

static ssize_t stall_write(struct file *file, const char __user *buf,
			   size_t len, loff_t *pos)
{
	struct stall *s = of_file(file);
	unsigned long start, size;
	char text[64];
	int ret;

	if (len >= sizeof(text) || copy_from_user(text, buf, len))
		return -EFAULT;
	text[len] = 0;
	if (sscanf(text, "%lx %lx", &start, &size) != 2 || !size ||
	    !PAGE_ALIGNED(start) || !PAGE_ALIGNED(size) ||
	    start + size <= start)
		return -EINVAL;

	mutex_lock(&s->serving);
	give_back(s);
	s->start = start;
	s->end = start + size;
	ret = mmu_interval_notifier_insert(&s->notifier, current->mm, start,
					   size, &notifier_ops);
	if (!ret) {
		mmgrab(current->mm);
		s->mm = current->mm;
	}
	mutex_unlock(&s->serving);
	return ret ?: len;
}

static ssize_t stall_read(struct file *file, char __user *buf, size_t len,
			  loff_t *pos)
{
	struct stall *s = of_file(file);
	char text[256];
	int n = scnprintf(text, sizeof(text),
			  "bank %d faults %lu mapped %lu upgraded %lu "
			  "refused %lu again %lu taken-back %lu\n",
			  s->bank, s->faults, s->mapped, s->upgraded,
			  s->refused, s->again, s->taken_back);

	return simple_read_from_buffer(buf, len, pos, text, n);
}

static const struct file_operations stall_fops = {
	.owner = THIS_MODULE,
	.open = stall_open,
	.release = stall_release,
	.read = stall_read,
	.write = stall_write,
};

/* Finds the bank that the function's StreamID is mapped to. */
static int find_bank(struct stall *s)
{
	struct iommu_fwspec *fwspec = dev_iommu_fwspec_get(&s->pdev->dev);
	struct device *smmu = NULL;
	struct resource *res;
	void __iomem *gr0;
	u32 i, sid;
	int ret = -ENODEV;

	if (fwspec && fwspec->num_ids)
		smmu = bus_find_device_by_fwnode(&platform_bus_type,
						 fwspec->iommu_fwnode);
	if (!smmu)
		return -ENODEV;
	res = platform_get_resource(to_platform_device(smmu), IORESOURCE_MEM,
				    0);
	gr0 = res ? ioremap(res->start, 0x1000) : NULL;
	if (!gr0)
		goto out;
	sid = fwspec->ids[0] & 0x7fff;
	for (i = 0; i < IDR0_NUMSMRG(readl(gr0 + 0x20)); i++) {
		u32 smr = readl(gr0 + SMR(i));

		if ((smr & SMR_VALID) &&
		    !((smr ^ sid) & 0x7fff & ~(smr >> 16))) {
			s->bank = readl(gr0 + S2CR(i)) & 0xff;
			s->cb = ioremap(res->start + resource_size(res) / 2 +
					s->bank * 0x1000, 0x1000);
			ret = s->cb ? 0 : -ENOMEM;
			break;
		}
	}
	iounmap(gr0);
out:
	put_device(smmu);
	return ret;
}

static int stall_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct stall *s = devm_kzalloc(&pdev->dev, sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	s->pdev = pdev;
	mutex_init(&s->serving);
	mutex_init(&s->lock);
	INIT_WORK(&s->work, work);
	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;

	s->domain = iommu_paging_domain_alloc(&pdev->dev);
	if (IS_ERR(s->domain))
		return PTR_ERR(s->domain);
	iommu_set_fault_handler(s->domain, fault_handler, s);
	ret = iommu_attach_device(s->domain, &pdev->dev);
	if (ret)
		goto free;
	ret = find_bank(s);
	if (ret)
		goto detach;
	writel(readl(s->cb + SCTLR) | SCTLR_CFCFG, s->cb + SCTLR);

	s->misc.minor = MISC_DYNAMIC_MINOR;
	s->misc.name = "odp-stall";
	s->misc.fops = &stall_fops;
	s->misc.parent = &pdev->dev;
	ret = misc_register(&s->misc);
	if (ret)
		goto unmap;
	pci_set_master(pdev);
	pci_set_drvdata(pdev, s);
	pci_info(pdev, "faults of bank %d are served\n", s->bank);
	return 0;

unmap:
	iounmap(s->cb);
detach:
	iommu_detach_device(s->domain, &pdev->dev);
free:
	iommu_domain_free(s->domain);
	return ret;
}

static void stall_remove(struct pci_dev *pdev)
{
	struct stall *s = pci_get_drvdata(pdev);

	misc_deregister(&s->misc);
	pci_clear_master(pdev);
	/* Nobody is served any more: what is stalled ends with an error. */
	writel(readl(s->cb + SCTLR) & ~(SCTLR_CFCFG | SCTLR_CFIE),
	       s->cb + SCTLR);
	cancel_work_sync(&s->work);
	if (readl(s->cb + FSR) & FSR_SS) {
		writel(FSR_BITS, s->cb + FSR);
		writel(RESUME_TERMINATE, s->cb + RESUME);
	}
	iounmap(s->cb);
	iommu_detach_device(s->domain, &pdev->dev);
	iommu_domain_free(s->domain);
}

static const struct pci_device_id stall_ids[] = {
	{ PCI_DEVICE(0x13b5, 0xed01) },
	{ }
};
MODULE_DEVICE_TABLE(pci, stall_ids);

static struct pci_driver stall_driver = {
	.name = "odp-stall",
	.id_table = stall_ids,
	.probe = stall_probe,
	.remove = stall_remove,
	.driver_managed_dma = true,
};
module_pci_driver(stall_driver);

MODULE_DESCRIPTION("Serves stalled DMA of a PCIe exerciser behind an MMU-500");
MODULE_LICENSE("GPL");
