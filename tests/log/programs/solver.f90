! A solver as many are: heat in a square, the rows divided among ranks, output every few steps.
!
! usage: solver SIDE DIRECTORY
!
! It writes, by mpi_f08: a checkpoint, overwritten in place and synchronised; a series of fields in one file, by
! a view of each rank's rows; a file of its own for each output; and by Fortran's own means a history (formatted,
! flushed, rank 0) and a trace (unformatted, every rank). At the end everything is read back and compared with what
! one rank computes alone.
program solver
    use mpi_f08
    use iso_fortran_env, only: real64, error_unit
    implicit none
    integer, parameter :: columns = 60, rows_each = 17, steps = 40, every = 8
    character(len=512) :: side, directory
    character(len=600) :: name
    integer :: rank, ranks, rows, first, step, output, told, wrong, error, trace, history
    real(real64), allocatable :: field(:, :), whole(:, :), alone(:, :), copy(:, :)
    type(MPI_File) :: checkpoint, series, single
    type(MPI_Datatype) :: mine
    type(MPI_Status) :: status
    integer(MPI_OFFSET_KIND) :: frame, length

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call get_command_argument(1, side)
    call get_command_argument(2, directory)
    wrong = 0
    write (name, '(a, "/told.", i0)') trim(side), rank
    open (newunit=told, file=name, action='write')

    rows = rows_each * ranks
    first = rows_each * rank
    frame = int(rows, MPI_OFFSET_KIND) * columns * 8
    allocate (field(columns, 0:rows_each + 1), whole(columns, rows), copy(columns, rows_each))
    allocate (alone(columns, 0:rows + 1))
    call begin(alone)
    field = alone(:, first:first + rows_each + 1)

    call MPI_Type_create_subarray(2, [columns, rows], [columns, rows_each], [0, first], MPI_ORDER_FORTRAN, &
                                  MPI_DOUBLE_PRECISION, mine)
    call MPI_Type_commit(mine)
    call MPI_File_open(MPI_COMM_WORLD, trim(directory)//'/checkpoint', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, &
                       checkpoint, error)
    call must('MPI_File_open checkpoint')
    call MPI_File_open(MPI_COMM_WORLD, trim(directory)//'/series', MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, &
                       series, error)
    call must('MPI_File_open series')
    call MPI_File_set_view(series, 0_MPI_OFFSET_KIND, MPI_DOUBLE_PRECISION, mine, 'native', MPI_INFO_NULL, error)
    call must('MPI_File_set_view')
    write (name, '(a, "/trace.", i0)') trim(directory), rank
    open (newunit=trace, file=name, form='unformatted', action='write')
    if (rank == 0) open (newunit=history, file=trim(directory)//'/history', action='write')

    output = 0
    do step = 1, steps
        call exchange()
        call advance(field)
        call advance(alone)
        write (trace) step, sum(field(:, 1:rows_each))
        if (mod(step, every) /= 0) cycle
        output = output + 1
        ! The step's number, then the field: in place.
        if (rank == 0) call MPI_File_write_at(checkpoint, 0_MPI_OFFSET_KIND, step, 1, MPI_INTEGER, status, error)
        call must('MPI_File_write_at')
        call MPI_File_write_at_all(checkpoint, 64 + int(first, MPI_OFFSET_KIND) * columns * 8, field(1, 1), &
                                   columns * rows_each, MPI_DOUBLE_PRECISION, status, error)
        call must('MPI_File_write_at_all')
        call MPI_File_sync(checkpoint, error)
        call must('MPI_File_sync')
        ! The next frame of the series: the view goes on where it was.
        call MPI_File_write_all(series, field(1, 1), columns * rows_each, MPI_DOUBLE_PRECISION, status, error)
        call must('MPI_File_write_all')
        call MPI_File_sync(series, error)
        call must('MPI_File_sync')
        write (name, '(a, "/field.", i4.4)') trim(directory), step
        call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, single, error)
        call must('MPI_File_open')
        call MPI_File_write_ordered(single, field(1, 1), columns * rows_each, MPI_DOUBLE_PRECISION, status, error)
        call must('MPI_File_write_ordered')
        call MPI_File_close(single, error)
        call must('MPI_File_close')
        if (rank == 0) then
            write (history, '("step ", i0, ", mean ", es23.15)') step, sum(alone(:, 1:rows)) / (columns * rows)
            flush (history)
        end if
        call MPI_Barrier(MPI_COMM_WORLD)
        ! Everybody looks at the neighbour's part of what was just closed.
        call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_RDONLY, MPI_INFO_NULL, single, error)
        call must('MPI_File_open for reading')
        call MPI_File_get_size(single, length)
        if (length /= frame) call complain('the size of a field')
        call MPI_File_read_at(single, int(mod(rank + 1, ranks), MPI_OFFSET_KIND) * rows_each * columns * 8, copy, &
                              columns * rows_each, MPI_DOUBLE_PRECISION, status, error)
        call must('MPI_File_read_at')
        if (any(copy /= alone(:, mod(rank + 1, ranks) * rows_each + 1:(mod(rank + 1, ranks) + 1) * rows_each))) &
            call complain('the neighbour''s field')
        call MPI_File_close(single, error)
    end do
    close (trace)
    call check_trace()

    ! The checkpoint as a restart would read it, all of it by each rank.
    call MPI_File_sync(checkpoint, error)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_File_sync(checkpoint, error)
    step = -1
    call MPI_File_read_at(checkpoint, 0_MPI_OFFSET_KIND, step, 1, MPI_INTEGER, status, error)
    if (step /= steps) call complain('the step of the checkpoint')
    call MPI_File_read_at_all(checkpoint, 64_MPI_OFFSET_KIND, whole, columns * rows, MPI_DOUBLE_PRECISION, status, error)
    if (any(whole /= alone(:, 1:rows))) call complain('the checkpoint')
    call MPI_File_close(checkpoint, error)
    call must('MPI_File_close')
    call MPI_File_get_size(series, length)
    if (length /= frame * output) call complain('the size of the series')
    call MPI_File_close(series, error)
    call must('MPI_File_close')
    call MPI_Type_free(mine)
    if (rank == 0) close (history)
    if (wrong == 0) write (told, '(a)') 'solver: good'
    close (told)
    call MPI_Finalize()
    if (wrong /= 0) stop 3

contains

    subroutine begin(to)
        real(real64), intent(out) :: to(columns, 0:rows + 1)
        integer :: i, j

        do j = 0, rows + 1
            do i = 1, columns
                to(i, j) = sin(0.37d0 * i) * cos(0.21d0 * j) + mod(i * 7 + j * 13, 11)
            end do
        end do
    end subroutine

    subroutine advance(now)
        real(real64), intent(inout) :: now(:, 0:)
        real(real64), allocatable :: made(:, :)
        integer :: i, j

        allocate (made, source=now)
        do j = 1, ubound(now, 2) - 1
            do i = 2, columns - 1
                made(i, j) = 0.25d0 * ((now(i - 1, j) + now(i + 1, j)) + (now(i, j - 1) + now(i, j + 1)))
            end do
        end do
        now = made
    end subroutine

    subroutine exchange()
        integer :: above, below

        below = merge(MPI_PROC_NULL, rank - 1, rank == 0)
        above = merge(MPI_PROC_NULL, rank + 1, rank == ranks - 1)
        call MPI_Sendrecv(field(1, 1), columns, MPI_DOUBLE_PRECISION, below, 1, field(1, rows_each + 1), columns, &
                          MPI_DOUBLE_PRECISION, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call MPI_Sendrecv(field(1, rows_each), columns, MPI_DOUBLE_PRECISION, above, 2, field(1, 0), columns, &
                          MPI_DOUBLE_PRECISION, below, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    end subroutine

    subroutine check_trace()
        integer :: number, seen
        real(real64) :: total

        write (name, '(a, "/trace.", i0)') trim(directory), rank
        open (newunit=trace, file=name, form='unformatted', action='read', status='old')
        do number = 1, steps
            read (trace, iostat=error) seen, total
            if (error /= 0 .or. seen /= number) call complain('the trace')
        end do
        if (abs(total - sum(field(:, 1:rows_each))) > 0) call complain('the last of the trace')
        close (trace)
    end subroutine

    subroutine must(call)
        character(len=*), intent(in) :: call

        if (error /= MPI_SUCCESS) call complain(call)
    end subroutine

    subroutine complain(what)
        character(len=*), intent(in) :: what

        wrong = wrong + 1
        write (told, '("solver: WRONG: step ", i0, ": ", a)') step, what
        write (error_unit, '("solver: rank ", i0, ": WRONG: step ", i0, ": ", a)') rank, step, what
    end subroutine
end program
