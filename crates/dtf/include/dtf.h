/* The functions of the Data Transfer Framework, for programs that were written for it: link with -ldtf and start the program by
 * `sluice couple run` or `sluice run --couple`. Programs that call none of them are coupled as well (docs/COUPLE.md). */
#ifndef DTF_H_INCLUDED
#define DTF_H_INCLUDED

#ifdef __cplusplus
extern "C" {
#endif

#define DTF_UNDEFINED -1
#define DTF_UNLIMITED 0L

/* Takes the part of component `module_name` of the configuration `filename`. After MPI_Init. 0, or 1 with a message. */
int dtf_init(const char *filename, char *module_name);

/* Waits until what was written is read. Before MPI_Finalize. */
int dtf_finalize(void);

/* Ends a cycle of a file, which is named or given by its number; the other may be NULL, or DTF_UNDEFINED. What was written can be
 * read by the other components from now on, and what is read next is of their next cycle. The program may change its memory.
 * Returns 0, or an error code of netCDF, which ncmpi_strerror explains. */
int dtf_transfer(const char *filename, int ncid);

/* The same for all files that are open. */
int dtf_transfer_all_files(void);

/* Of the writer: the readers may call dtf_transfer several times for this cycle, and end it by dtf_complete_multiple. */
void dtf_transfer_multiple(const char *filename, int ncid);
void dtf_complete_multiple(const char *filename, int ncid);

/* Timers of DTF; nothing is measured here. */
void dtf_time_start(void);
void dtf_time_end(void);

/* Fortran: file names and component names end with CHAR(0). */
void dtf_init_(const char *filename, char *module_name, int *ierr);
void dtf_finalize_(int *ierr);
void dtf_transfer_(const char *filename, int *ncid, int *ierr);
void dtf_transfer_all_files_(void);
void dtf_transfer_multiple_(const char *filename, int *ncid);
void dtf_complete_multiple_(const char *filename, int *ncid);
void dtf_time_start_(void);
void dtf_time_end_(void);

#ifdef __cplusplus
}
#endif

#endif
