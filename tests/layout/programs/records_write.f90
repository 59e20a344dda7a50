! Writes a sequential unformatted file: a record of sizes, one of text, a record for each row of a field.
program records_write
  use iso_fortran_env, only: int32, real64
  implicit none
  integer(int32), parameter :: n = 40, m = 25
  real(real64) :: u(n, m)
  character(20) :: title = 'a field of gfortran'
  character(4096) :: name
  integer :: i, j
  call get_command_argument(1, name)
  do j = 1, m; do i = 1, n
    u(i, j) = i + j / 64d0
  end do; end do
  open(10, file=trim(name), form='unformatted', access='sequential')
  write(10) n, m
  write(10) title
  do i = 1, n
    write(10) u(i, :)
  end do
  close(10)
end program
