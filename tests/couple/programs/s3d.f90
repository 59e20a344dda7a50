! s3d write|read NX NY NZ PX PY PZ METHOD FILE DIRECTORY: the pattern of S3D-IO. Four variables of doubles on one grid that is divided
! in blocks: mass (11 species), velocity (3 components), pressure, temperature; the fourth dimension is not divided.
! METHOD 0: blocking calls, 1: nonblocking ones and one wait. The reader does nothing if the file does not exist.
! With -DWITH_DTF it calls the functions of DTF as a program does that was written for it.
program s3d
   use mpi
   use pnetcdf
   implicit none

   integer, parameter :: variables = 4
   character(11), parameter :: names(variables) = [character(11) :: 'yspecies', 'u', 'pressure', 'temp']
   integer, parameter :: lengths(variables) = [11, 3, 1, 1]
   character(4096) :: file, directory, word
   character(5) :: verb
   integer :: grid(3), ranks(3), method, error, rank, ranks_all, at(3), d
   integer(MPI_OFFSET_KIND) :: start(4), count(4)
   double precision, allocatable :: mass(:, :, :, :), velocity(:, :, :, :), pressure(:, :, :, :), temperature(:, :, :, :)
   logical :: exists

   call MPI_Init(error)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks_all, error)
   call get_command_argument(1, verb)
   do d = 1, 3
      call get_command_argument(1 + d, word)
      read (word, *) grid(d)
      call get_command_argument(4 + d, word)
      read (word, *) ranks(d)
   end do
   call get_command_argument(8, word)
   read (word, *) method
   call get_command_argument(9, file)
   call get_command_argument(10, directory)
   if (product(ranks) /= ranks_all) stop 'as many ranks as PX * PY * PZ'
#ifdef WITH_DTF
   call get_environment_variable('S3D_DTF', word)
   call dtf_init(trim(word)//char(0), trim(merge('wrt', 'rdr', verb == 'write'))//char(0), error)
   if (error /= 0) stop 'dtf_init'
   call dtf_time_start()
#endif

   ! My block; the first dimension is the fastest, of the ranks as well.
   at = [mod(rank, ranks(1)), mod(rank/ranks(1), ranks(2)), rank/(ranks(1)*ranks(2))]
   do d = 1, 3
      start(d) = int(grid(d), 8)*at(d)/ranks(d) + 1
      count(d) = int(grid(d), 8)*(at(d) + 1)/ranks(d) - start(d) + 1
   end do
   allocate (mass(count(1), count(2), count(3), 11), velocity(count(1), count(2), count(3), 3))
   allocate (pressure(count(1), count(2), count(3), 1), temperature(count(1), count(2), count(3), 1))

   if (verb == 'write') then
      call fill(mass, 1)
      call fill(velocity, 2)
      call fill(pressure, 3)
      call fill(temperature, 4)
      call write_file
   else
      inquire (file=trim(file), exist=exists)
      if (exists) then
         mass = -1
         velocity = -1
         pressure = -1
         temperature = -1
         call read_file
      else if (rank == 0) then
         print *, 'restart file does not exist ', trim(file)
      end if
      call tell
   end if
#ifdef WITH_DTF
   call dtf_time_end()
   call dtf_finalize(error)
#endif
   call MPI_Finalize(error)

contains

   ! What belongs at a place: no two places have the same.
   subroutine fill(array, number)
      double precision, intent(out) :: array(:, :, :, :)
      integer, intent(in) :: number
      integer :: i, j, k, l
      do l = 1, size(array, 4)
         do k = 1, size(array, 3)
            do j = 1, size(array, 2)
               do i = 1, size(array, 1)
                  array(i, j, k, l) = number + 8d0*(l + 16d0*((start(1) + i) + grid(1)*((start(2) + j) + grid(2)*(start(3) + k))))
               end do
            end do
         end do
      end do
   end subroutine

   subroutine check(code, what)
      integer, intent(in) :: code
      character(*), intent(in) :: what
      integer :: ignored
      if (code == NF_NOERR) return
      write (*, '(a, i0, 4a)') 'rank ', rank, ': ', what, ': ', trim(nfmpi_strerror(code))
      call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
   end subroutine

   subroutine write_file
      integer :: ncid, dims(4), ids(variables), v, requests(variables), statuses(variables), dim_of(4)
      integer(MPI_OFFSET_KIND) :: length
      call check(nfmpi_create(MPI_COMM_WORLD, trim(file), ior(NF_CLOBBER, NF_64BIT_DATA), MPI_INFO_NULL, ncid), 'create')
      do d = 1, 3
         length = grid(d)
         call check(nfmpi_def_dim(ncid, achar(ichar('w') + d), length, dims(d)), 'def_dim')
      end do
      do v = 1, variables
         dim_of = dims
         if (lengths(v) > 1) then
            length = lengths(v)
            call check(nfmpi_def_dim(ncid, trim(names(v))//'_length', length, dim_of(4)), 'def_dim')
            call check(nfmpi_def_var(ncid, trim(names(v)), NF_DOUBLE, 4, dim_of, ids(v)), 'def_var')
         else
            call check(nfmpi_def_var(ncid, trim(names(v)), NF_DOUBLE, 3, dim_of, ids(v)), 'def_var')
         end if
      end do
      length = 3
      call check(nfmpi_put_att_int(ncid, NF_GLOBAL, 'number_of_ranks', NF_INT, length, ranks), 'put_att')
      call check(nfmpi_enddef(ncid), 'enddef')
      start(4) = 1
      call put(ncid, ids(1), mass, 11, requests(1))
      call put(ncid, ids(2), velocity, 3, requests(2))
      call put(ncid, ids(3), pressure, 1, requests(3))
      call put(ncid, ids(4), temperature, 1, requests(4))
      if (method == 1) call check(nfmpi_wait_all(ncid, variables, requests, statuses), 'wait_all')
#ifdef WITH_DTF
      call dtf_transfer(trim(file)//char(0), ncid, error)
      call check(error, 'dtf_transfer')
#endif
      call check(nfmpi_close(ncid), 'close')
   end subroutine

   subroutine put(ncid, id, array, length, request)
      integer, intent(in) :: ncid, id, length
      double precision, contiguous, intent(inout) :: array(:, :, :, :)
      integer, intent(out) :: request
      count(4) = length
      if (method == 1) then
         call check(nfmpi_iput_vara_double(ncid, id, start, count, array, request), 'iput')
      else
         call check(nfmpi_put_vara_double_all(ncid, id, start, count, array), 'put')
      end if
   end subroutine

   subroutine read_file
      integer :: ncid, ids(variables), v, requests(variables), statuses(variables), written_by(3)
      call check(nfmpi_open(MPI_COMM_WORLD, trim(file), NF_NOWRITE, MPI_INFO_NULL, ncid), 'open')
      do v = 1, variables
         call check(nfmpi_inq_varid(ncid, trim(names(v)), ids(v)), 'inq_varid')
      end do
      call check(nfmpi_get_att_int(ncid, NF_GLOBAL, 'number_of_ranks', written_by), 'get_att')
      start(4) = 1
      call get(ncid, ids(1), mass, 11, requests(1))
      call get(ncid, ids(2), velocity, 3, requests(2))
      call get(ncid, ids(3), pressure, 1, requests(3))
      call get(ncid, ids(4), temperature, 1, requests(4))
      if (method == 1) call check(nfmpi_wait_all(ncid, variables, requests, statuses), 'wait_all')
#ifdef WITH_DTF
      call dtf_transfer(trim(file)//char(0), ncid, error)
      call check(error, 'dtf_transfer')
#endif
      call check(nfmpi_close(ncid), 'close')
   end subroutine

   subroutine get(ncid, id, array, length, request)
      integer, intent(in) :: ncid, id, length
      double precision, contiguous, intent(inout) :: array(:, :, :, :)
      integer, intent(out) :: request
      count(4) = length
      if (method == 1) then
         call check(nfmpi_iget_vara_double(ncid, id, start, count, array, request), 'iget')
      else
         call check(nfmpi_get_vara_double_all(ncid, id, start, count, array), 'get')
      end if
   end subroutine

   ! What this rank has got.
   subroutine tell
      integer :: unit
      write (word, '(2a, i0)') trim(directory), '/told.', rank
      open (newunit=unit, file=trim(word), form='unformatted', access='stream', status='replace')
      write (unit) mass, velocity, pressure, temperature
      close (unit)
   end subroutine
end program
