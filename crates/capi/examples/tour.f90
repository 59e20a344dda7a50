! Writes an array of reals to a file of a service and reads a part of it again.
program tour
  use, intrinsic :: iso_c_binding
  use sluice
  implicit none
  character(1024) :: directory
  character(:), allocatable :: name
  type(c_ptr) :: file
  type(sluice_stat_t) :: stat
  real(c_double), target :: values(1000), some(3)
  integer :: i

  call get_command_argument(1, directory)
  name = c_str(trim(directory) // '/from-fortran.dat')
  values = [(i * 0.125d0, i = 1, 1000)]

  file = sluice_open(name, ior(ior(sluice_rdwr, sluice_creat), sluice_trunc), int(o'644', c_int32_t))
  if (.not. c_associated(file)) call give_up('open')
  if (sluice_pwrite(file, c_loc(values), 8000_c_size_t, 0_c_int64_t) /= 8000) call give_up('pwrite')
  if (sluice_pread(file, c_loc(some), 24_c_size_t, 4000_c_int64_t) /= 24) call give_up('pread')
  print '(a, 3f9.3)', 'values 501 to 503:', some
  print '(a, i0)', 'bytes: ', sluice_size(file)
  if (sluice_close(file) /= 0) call give_up('close')

  if (sluice_stat(name, stat) /= 0) call give_up('stat')
  print '(a, i0)', 'stat: ', stat%size
  if (sluice_remove(name) /= 0) call give_up('remove')
  file = sluice_open(name, sluice_rdonly, 0_c_int32_t)
  if (c_associated(file)) call give_up('open of what is gone')
  print '(a, l1)', 'says why: ', index(sluice_message(), 'from-fortran.dat') > 0

contains

  subroutine give_up(what)
    character(*), intent(in) :: what
    print '(3a)', what, ': ', sluice_message()
    error stop 1
  end subroutine
end program
