! Sluice for programs in Fortran: the functions of sluice.h, which says what they do. Compile this file with the program.
! Names and file contents are passed as C has them; c_str makes a C string of a Fortran one.
module sluice
  use, intrinsic :: iso_c_binding
  implicit none
  private

  ! open(2), as on Linux
  integer(c_int), parameter, public :: sluice_rdonly = 0, sluice_wronly = 1, sluice_rdwr = 2
  integer(c_int), parameter, public :: sluice_creat = 64, sluice_excl = 128, sluice_trunc = 512, sluice_append = 1024

  type, bind(c), public :: sluice_stat_t
    integer(c_int64_t) :: size
    integer(c_int32_t) :: mode, links
    integer(c_int64_t) :: mtime_seconds, mtime_nanoseconds, inode
  end type

  public :: sluice_open, sluice_pread, sluice_pwrite, sluice_size, sluice_truncate, sluice_sync, sluice_close
  public :: sluice_stat, sluice_fstat, sluice_mkdir, sluice_remove, sluice_rename
  public :: sluice_list, sluice_list_next, sluice_list_close, sluice_message, sluice_text, c_str

  interface
    function sluice_open(name, flags, mode) bind(c) result(file)
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: flags
      integer(c_int32_t), value :: mode
      type(c_ptr) :: file
    end function
    function sluice_pread(file, buffer, count, offset) bind(c) result(done)
      import
      type(c_ptr), value :: file, buffer
      integer(c_size_t), value :: count
      integer(c_int64_t), value :: offset
      integer(c_size_t) :: done
    end function
    function sluice_pwrite(file, buffer, count, offset) bind(c) result(done)
      import
      type(c_ptr), value :: file, buffer
      integer(c_size_t), value :: count
      integer(c_int64_t), value :: offset
      integer(c_size_t) :: done
    end function
    function sluice_size(file) bind(c) result(bytes)
      import
      type(c_ptr), value :: file
      integer(c_int64_t) :: bytes
    end function
    function sluice_truncate(file, size) bind(c) result(status)
      import
      type(c_ptr), value :: file
      integer(c_int64_t), value :: size
      integer(c_int) :: status
    end function
    function sluice_sync(file) bind(c) result(status)
      import
      type(c_ptr), value :: file
      integer(c_int) :: status
    end function
    function sluice_close(file) bind(c) result(status)
      import
      type(c_ptr), value :: file
      integer(c_int) :: status
    end function
    function sluice_stat(name, stat) bind(c) result(status)
      import
      character(kind=c_char), intent(in) :: name(*)
      type(sluice_stat_t), intent(out) :: stat
      integer(c_int) :: status
    end function
    function sluice_fstat(file, stat) bind(c) result(status)
      import
      type(c_ptr), value :: file
      type(sluice_stat_t), intent(out) :: stat
      integer(c_int) :: status
    end function
    function sluice_mkdir(name, mode) bind(c) result(status)
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: mode
      integer(c_int) :: status
    end function
    function sluice_remove(name) bind(c) result(status)
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int) :: status
    end function
    function sluice_rename(from, to) bind(c) result(status)
      import
      character(kind=c_char), intent(in) :: from(*), to(*)
      integer(c_int) :: status
    end function
    function sluice_list(name) bind(c) result(listing)
      import
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr) :: listing
    end function
    function sluice_list_next(listing) bind(c) result(name)
      import
      type(c_ptr), value :: listing
      type(c_ptr) :: name
    end function
    function sluice_list_close(listing) bind(c) result(status)
      import
      type(c_ptr), value :: listing
      integer(c_int) :: status
    end function
    function sluice_error() bind(c) result(text)
      import
      type(c_ptr) :: text
    end function
  end interface

contains

  ! A C string of a Fortran one.
  pure function c_str(text) result(string)
    character(*), intent(in) :: text
    character(len(text) + 1, kind=c_char) :: string
    string = text // c_null_char
  end function

  ! The text behind what C returned.
  function sluice_text(from) result(text)
    type(c_ptr), intent(in) :: from
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: length
    if (.not. c_associated(from)) then
      text = ''
      return
    end if
    call c_f_pointer(from, letters, [huge(0)])
    length = 0
    do while (letters(length + 1) /= c_null_char)
      length = length + 1
    end do
    allocate (character(length) :: text)
    block
      integer :: i
      do i = 1, length
        text(i:i) = letters(i)
      end do
    end block
  end function

  ! The last error in words.
  function sluice_message() result(text)
    character(:), allocatable :: text
    text = sluice_text(sluice_error())
  end function
end module
