/*
 * nct.h - non-contiguous access to files through views, without MPI.
 *
 * The interface is that of the NCT library (Zickler 2015, Listing 4.1); what stands below "Beyond
 * the thesis" is new. Link with -lsluice_nct.
 *
 * A view is an initial offset and a list of tuples that repeats without end: size bytes of data,
 * then deltaOffset bytes that do not belong to the view. Offsets and counts that are given to
 * nct_read and nct_write count bytes of data only.
 *
 * On failure functions return NULL, (size_t)-1 or -1 and set errno; nct_last_error() says more:
 *   EINVAL     no tuples, a NULL where none may be, a method that does not exist, a bandwidth that
 *              is none, a sieving buffer of no bytes where the method needs one, an aggregate
 *              function whose answer has no meaning, a descriptor open with O_APPEND
 *   EOVERFLOW  tuples that end beyond the largest file offset, 2^63 - 1. A negative deltaOffset
 *              (tuples that overlap) is one of these
 *   EFBIG      an access that would end beyond that offset
 *   EFAULT     a buffer that is NULL
 *   EDEADLK    a write that has to lock what the process itself has locked with lockf(3) or F_SETLK
 *   ESPIPE, EBADF, EISDIR, ENOSPC, EIO, ...  as pread(2) and pwrite(2)
 */
#ifndef NCT_H
#define NCT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct nct_tuple_t {
    uint32_t size;        /* bytes of data */
    uint32_t deltaOffset; /* bytes between their end and the next tuple */
};

/* What the methods know of the file system. 0 stands for "not known" where it makes no sense. */
struct nct_info_t {
    double latencyFS;      /* seconds that the file system adds to a request */
    int bandwidth;         /* bytes per second */
    int numNodes;          /* number of I/O nodes */
    double latencyNetwork; /* seconds from asking to being answered */
    uint64_t stripeSize;   /* bytes on one I/O node before the next comes */
    uint64_t blocksize;    /* bytes that an I/O node moves at least */
    int dsMethod;          /* one of enum nct_method */
};

typedef struct nct_tuple_t nct_tuple;
typedef struct nct_info_t nct_info;

#ifndef NCT_INTERNAL_HPP
typedef void *nct_view;
#endif

/* Values of dsMethod. */
enum nct_method {
    NCT_NAIVE = 0,     /* every tuple by itself */
    NCT_ROMIO = 1,     /* always fills the buffer */
    NCT_SIMPLE_PM = 2, /* joins where the hole is cheaper than a request; needs bandwidth */
    NCT_EXTENT = 3,    /* the same, without hole bytes at the end; needs bandwidth */
    NCT_SCANFILE = 4,  /* all of the file, in accesses that end at stripes */
    NCT_ADAPTIVE = 5   /* by a cost model that corrects itself while it runs */
};

/*
 * Makes a view. The list and the info are copied; the sieving buffer is not, and has to stay as long
 * as the view does. With a ds_buf of NULL the view has a buffer of its own. With an info of NULL the
 * method is NCT_ADAPTIVE.
 */
nct_view nct_create_view(uint32_t initialOffset, size_t ds_bufsize, void *ds_buf, int tupleCount,
                         nct_tuple *list, nct_info *info);

void nct_destroy_view(nct_view view);

/*
 * As pread(2) and pwrite(2), through a view. The count is smaller than byte_count where the file ends,
 * or where an error came after some bytes: asking again from there says which. Threads may share a
 * view; they take turns.
 */
size_t nct_read(int fd, void *buff, uint64_t offset, size_t byte_count, nct_view view);

size_t nct_write(int fd, const void *buff, uint64_t offset, size_t byte_count, nct_view view);

/* ---- Beyond the thesis ---- */

/* Tuples of 64 bits. */
struct nct_tuple64_t {
    uint64_t size;
    uint64_t deltaOffset;
};
typedef struct nct_tuple64_t nct_tuple64;

nct_view nct_create_view64(uint64_t initialOffset, size_t ds_bufsize, void *ds_buf,
                           uint64_t tupleCount, const nct_tuple64 *list, const nct_info *info);

/* What an aggregate function is told about the tuple at hand (the arguments of Listing 4.4). */
struct nct_step_t {
    int isWrite;                    /* 0 for a read */
    int completesTuple;             /* whether nothing of the tuple is left behind what is on offer */
    uint64_t curTupleNum;           /* number of the tuple in the list */
    uint64_t curLogicalOffset;      /* offset in the file of the first byte on offer */
    uint64_t curViewOffset;         /* offset of that byte in the data of the view */
    uint64_t viewBytesToAccNext;    /* data bytes gathered for this access before this tuple */
    uint64_t logicalBytesToAccNext; /* file bytes that the access spans with what is on offer */
    uint64_t bytesMax;              /* bytes of the tuple on offer */
    uint64_t deltaOffset;           /* the hole behind the tuple */
    uint64_t bytesLeft;             /* data bytes that the call still wants, those on offer included */
    uint64_t buffsize;              /* size of the sieving buffer */
};
typedef struct nct_step_t nct_step;

/* What it may change. All of it matters only if the access ends with this tuple. */
struct nct_decision_t {
    uint64_t bytesToAccOnTuple;       /* at most bytesMax, which it is on entry */
    uint64_t holeBytesToAggrOnTuple;  /* bytes of the hole behind the tuple; 0 on entry */
    uint64_t holeBytesToAggrOnNextAcc; /* bytes of the hole before the next tuple; 0 on entry */
};
typedef struct nct_decision_t nct_decision;

/* Not 0: the hole and the next tuple join this access. The function must not use the view. */
typedef int (*nct_aggregate)(const nct_step *step, nct_decision *decision, void *context);

/* From now on the view asks this function; context is handed to it. 0, or -1 and errno. */
int nct_set_aggregate(nct_view view, nct_aggregate function, void *context);

/*
 * What a write locks while it reads bytes in order to write them back. The lock belongs to the open
 * file (fcntl(2), F_OFD_SETLKW): processes that share a descriptor by fork(2) are one owner, and have
 * to open the file each for itself if they write at the same time. Threads need not.
 */
enum nct_locking {
    NCT_LOCK_WINDOWS = 0,  /* the bytes in question, against all who lock (the default) */
    NCT_LOCK_ALL = 1,      /* also blocks that are written by themselves: needed if others write around
                              holes to the same file at the same time */
    NCT_SINGLE_WRITER = 2  /* nothing: nobody else writes to the file meanwhile */
};

/* 0, or -1 and errno. */
int nct_set_locking(nct_view view, int locking);

/* What went wrong last in this thread; never NULL, and valid until its next call. */
const char *nct_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
