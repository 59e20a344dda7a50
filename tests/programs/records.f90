! Fortran I/O in its four forms: formatted, stream, direct, unformatted sequential.
program records
  implicit none
  character(len=4096) :: d
  character(len=32) :: part
  call get_command_argument(1, part)
  call get_command_argument(2, d)
  select case (trim(part))
  case ('formatted'); call formatted
  case ('stream'); call streamed
  case ('direct'); call direct
  case ('unformatted'); call unformatted
  case ('inquire'); call inquiring
  case default; stop 2
  end select
contains
  subroutine formatted
    integer :: u, i, n, total, status
    real(8) :: x, sum
    character(len=200) :: line
    open (newunit=u, file=trim(d)//'/formatted.txt', status='replace', action='write')
    do i = 1, 20000
      write (u, '(i8, 1x, f14.6)') i, sqrt(real(i, 8))
    end do
    close (u)
    open (newunit=u, file=trim(d)//'/formatted.txt', status='old', action='read')
    total = 0
    sum = 0
    do
      read (u, *, iostat=status) n, x
      if (status /= 0) exit
      total = total + 1
      sum = sum + x
    end do
    print '(i0, 1x, f16.4, 1x, l1)', total, sum, is_iostat_end(status)
    rewind (u)
    read (u, '(a)') line
    print '(a)', trim(line)
    backspace (u)
    read (u, '(a)') line
    print '(a)', trim(line)
    close (u)
    open (newunit=u, file=trim(d)//'/text.txt', position='append', action='write')
    write (u, '(a)') 'appended by Fortran'
    close (u)
    open (newunit=u, file=trim(d)//'/numbers.txt', action='readwrite')
    do i = 1, 100
      read (u, *) n
    end do
    endfile (u)
    close (u)
  end subroutine formatted

  subroutine streamed
    integer :: u, i, place
    real(8) :: values(1000), back(1000)
    character(len=5) :: word
    values = [(real(i, 8)**2, i=1, 1000)]
    open (newunit=u, file=trim(d)//'/stream.bin', access='stream', form='unformatted', status='replace')
    write (u) 'HEAD!', values
    inquire (u, pos=place)
    print '(i0)', place
    write (u, pos=100000) 'FAR..'
    read (u, pos=6) back
    print '(l1)', all(back == values)
    read (u, pos=1) word
    print '(a)', word
    write (u, pos=6 + 8*10) -1.0d0
    read (u, pos=6 + 8*9) back(1:3)
    print '(3f8.1)', back(1:3)
    close (u)
    open (newunit=u, file=trim(d)//'/stream.txt', access='stream', form='formatted', status='replace')
    write (u, '(a)') 'first', 'second'
    close (u)
  end subroutine streamed

  subroutine direct
    integer :: u, i, length
    real(8) :: row(50)
    inquire (iolength=length) row
    open (newunit=u, file=trim(d)//'/direct.bin', access='direct', form='unformatted', recl=length, status='replace')
    do i = 200, 1, -1
      row = i
      write (u, rec=i) row
    end do
    do i = 1, 200, 33
      read (u, rec=i) row
      print '(i0, f8.1)', i, row(50)
    end do
    row = -7
    write (u, rec=100) row
    read (u, rec=500, iostat=i) row
    print '(l1)', i /= 0
    close (u)
  end subroutine direct

  subroutine unformatted
    integer :: u, i, n, status
    real(4), allocatable :: block(:)
    open (newunit=u, file=trim(d)//'/sequential.bin', form='unformatted', status='replace')
    do i = 1, 50
      allocate (block(i*100))
      block = i
      write (u) i*100, block
      deallocate (block)
    end do
    close (u)
    open (newunit=u, file=trim(d)//'/sequential.bin', form='unformatted', status='old')
    do
      read (u, iostat=status) n
      if (status /= 0) exit
      backspace (u)
      allocate (block(n))
      read (u) n, block
      if (mod(n, 1000) == 0) print '(i0, f8.1)', n, block(n)
      deallocate (block)
    end do
    backspace (u)
    backspace (u)
    read (u) n
    print '(i0)', n
    close (u, status='delete')
  end subroutine unformatted

  subroutine inquiring
    logical :: there
    integer :: bytes, u, status
    character(len=100) :: message
    inquire (file=trim(d)//'/text.txt', exist=there, size=bytes)
    print '(l1, 1x, i0)', there, bytes
    inquire (file=trim(d)//'/absent', exist=there, size=bytes)
    print '(l1, 1x, i0)', there, bytes
    open (newunit=u, file=trim(d)//'/absent', status='old', iostat=status, iomsg=message)
    print '(l1)', status /= 0
    open (newunit=u, file=trim(d)//'/text.txt', status='new', iostat=status)
    print '(l1)', status /= 0
    open (newunit=u, file=trim(d)//'/empty', status='old')
    close (u, status='delete')
    open (newunit=u, status='scratch')
    write (u, *) 'scratch'
    rewind (u)
    read (u, '(a)') message
    print '(a)', trim(adjustl(message))
    close (u)
  end subroutine inquiring
end program records
