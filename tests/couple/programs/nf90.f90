! nf90 write|read FILE DIRECTORY: PnetCDF's interface for Fortran 90, with records, one in each cycle if there is DTF (-DWITH_DTF).
program nf90
   use mpi
   use pnetcdf
   implicit none
   integer, parameter :: width = 30, records = 4
   character(4096) :: verb, file, directory, word
   integer :: rank, ranks, error, ncid, x, time, id, unit, record, cycles
   integer(MPI_OFFSET_KIND) :: start(2), count(2), length
   real, allocatable :: row(:, :)

   call MPI_Init(error)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
   call get_command_argument(1, verb)
   call get_command_argument(2, file)
   call get_command_argument(3, directory)
#ifdef WITH_DTF
   call get_environment_variable('S3D_DTF', word)
   call dtf_init(trim(word)//char(0), trim(merge('wrt', 'rdr', verb == 'write'))//char(0), error)
   if (error /= 0) stop 'dtf_init'
#endif
   start(1) = int(width, 8)*rank/ranks + 1
   count(1) = int(width, 8)*(rank + 1)/ranks - start(1) + 1
   count(2) = 1
   allocate (row(count(1), records))
   length = width
   if (verb == 'write') then
      call check(nf90mpi_create(MPI_COMM_WORLD, trim(file), NF90_CLOBBER, MPI_INFO_NULL, ncid))
      call check(nf90mpi_def_dim(ncid, 'x', length, x))
      length = NF90_UNLIMITED
      call check(nf90mpi_def_dim(ncid, 'time', length, time))
      call check(nf90mpi_def_var(ncid, 'series', NF90_REAL, [x, time], id))
      call check(nf90mpi_put_att(ncid, id, 'units', 'm/s'))
      call check(nf90mpi_enddef(ncid))
   else
      call check(nf90mpi_open(MPI_COMM_WORLD, trim(file), NF90_NOWRITE, MPI_INFO_NULL, ncid))
      call check(nf90mpi_inq_varid(ncid, 'series', id))
      call check(nf90mpi_get_att(ncid, id, 'units', word))
   end if
   do record = 1, records
      start(2) = record
      if (verb == 'write') then
         row(:, record) = [(record*1000 + start(1) + x, x=1, int(count(1)))]
         call check(nf90mpi_put_var_all(ncid, id, row(:, record:record), start, count))
      else
         call check(nf90mpi_get_var_all(ncid, id, row(:, record:record), start, count))
      end if
#ifdef WITH_DTF
      call dtf_transfer(trim(file)//char(0), ncid, error)
      call check(error)
#endif
   end do
   call check(nf90mpi_close(ncid))
   if (verb /= 'write') then
      write (word, '(2a, i0)') trim(directory), '/told.', rank
      open (newunit=unit, file=trim(word), form='unformatted', access='stream', status='replace')
      write (unit) row
      close (unit)
   end if
#ifdef WITH_DTF
   call dtf_finalize(error)
#endif
   call MPI_Finalize(error)

contains

   subroutine check(code)
      integer, intent(in) :: code
      integer :: ignored
      if (code == NF90_NOERR) return
      write (*, '(a, i0, 2a)') 'rank ', rank, ': ', trim(nf90mpi_strerror(code))
      call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
   end subroutine
end program
