! Writes one record of so many bytes and a short one behind it, or reads them back. A record of more than 2^31 - 9 bytes is
! split by libgfortran into subrecords, whose markers tell by their sign that there is more.
program large_record
  use iso_fortran_env, only: int64
  implicit none
  integer(int64), allocatable :: a(:)
  integer(int64) :: n, i, tail
  character(4096) :: name, what
  call get_command_argument(1, what)
  call get_command_argument(2, name)
  read(what(2:), *) n
  allocate(a(n))
  open(10, file=trim(name), form='unformatted', access='sequential')
  if (what(1:1) == 'w') then
    do i = 1, n
      a(i) = i * 2654435761_int64
    end do
    write(10) a
    write(10) n
  else
    read(10) a
    read(10) tail
    do i = 1, n
      if (a(i) /= i * 2654435761_int64) stop 1
    end do
    if (tail /= n) stop 2
    print '(a)', 'equal'
  end if
  close(10)
end program
