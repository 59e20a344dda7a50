! Writes a three-dimensional field in the order of Fortran: the first index runs fastest.
program field_write
  use iso_fortran_env, only: real64
  implicit none
  integer, parameter :: nx = 7, ny = 11, nz = 13
  real(real64) :: u(nx, ny, nz)
  character(4096) :: name
  integer :: i, j, k
  call get_command_argument(1, name)
  do k = 1, nz; do j = 1, ny; do i = 1, nx
    u(i, j, k) = 10000 * (i - 1) + 100 * (j - 1) + (k - 1) + 0.25d0
  end do; end do; end do
  open(10, file=trim(name), form='unformatted', access='stream')
  write(10) u
  close(10)
end program
