! Strided reading and writing through the module mpi_f08.
! usage: f08 DIRECTORY; each rank writes what it sees to DIRECTORY/told.RANK.
program f08
  use mpi_f08
  implicit none
  integer :: rank, ranks, ierr, amount, i, unit
  type(MPI_File) :: file
  type(MPI_Datatype) :: filetype
  type(MPI_Status) :: status
  integer(kind=MPI_OFFSET_KIND) :: displacement, position
  integer :: values(60), seen(60)
  character(len=1000) :: directory, path

  call MPI_INIT(ierr)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
  call get_command_argument(1, directory)
  write (path, '(a,"/told.",i0)') trim(directory), rank
  open (newunit=unit, file=trim(path), action='write')

  call MPI_FILE_OPEN(MPI_COMM_WORLD, trim(directory)//'/f08.dat', MPI_MODE_RDWR + MPI_MODE_CREATE, &
                     MPI_INFO_NULL, file, ierr)
  write (unit, *) 'open', ierr
  call MPI_TYPE_VECTOR(20, 3, 3*ranks, MPI_INTEGER, filetype, ierr)
  call MPI_TYPE_COMMIT(filetype, ierr)
  displacement = 12*rank
  call MPI_FILE_SET_VIEW(file, displacement, MPI_INTEGER, filetype, 'native', MPI_INFO_NULL, ierr)
  write (unit, *) 'set_view', ierr
  values = [(1000*rank + i, i = 1, 60)]
  call MPI_FILE_WRITE(file, values, 30, MPI_INTEGER, status, ierr)
  call MPI_GET_COUNT(status, MPI_INTEGER, amount, ierr)
  write (unit, *) 'write', ierr, amount
  position = 30
  call MPI_FILE_WRITE_AT(file, position, values(31), 30, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
  write (unit, *) 'write_at', ierr
  call MPI_FILE_SYNC(file, ierr)
  call MPI_BARRIER(MPI_COMM_WORLD, ierr)
  seen = 0
  position = 7
  call MPI_FILE_READ_AT(file, position, seen, 20, MPI_INTEGER, status, ierr)
  call MPI_GET_COUNT(status, MPI_INTEGER, amount, ierr)
  write (unit, *) 'read_at', ierr, amount, seen(1:20)
  call MPI_FILE_READ(file, seen, 10, MPI_INTEGER, status, ierr)
  call MPI_FILE_GET_POSITION(file, position, ierr)
  write (unit, *) 'read', ierr, position, seen(1:10)
  call MPI_FILE_CLOSE(file, ierr)
  write (unit, *) 'close', ierr
  call MPI_TYPE_FREE(filetype, ierr)
  close (unit)
  call MPI_FINALIZE(ierr)
end program
