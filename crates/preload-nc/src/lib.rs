//! `libsluice_nc.so`: files that an unmodified program hands to another by PnetCDF, carried without a file.
//!
//! It is loaded into a program by `LD_PRELOAD` where programs are coupled, and stands before the functions of PnetCDF. It links
//! neither MPI nor PnetCDF: both are looked for in the process. Fortran's and C++'s interfaces call the C functions by the PLT,
//! so they arrive here by themselves.
//!
//! A file that one program writes for another:
//!
//! 1. The program calls `ncmpi_create`. [`process`] knows from the launcher's plan that this program writes files of that name
//!    for others; all others are PnetCDF's, from here on with one look into a table ([`files`]).
//! 2. PnetCDF creates a private file on each rank instead ([`header`]), and its number is the program's. Dimensions, variables,
//!    attributes and inquiry stay PnetCDF's own business ([`hooks`] says which calls are let through, and why).
//! 3. `ncmpi_enddef` gives header and variables to the [`exchange`] ([`definition`]).
//! 4. `ncmpi_put_vara_int_all` and some 800 like it are one table ([`families`]). [`place`] checks start, count and stride as
//!    PnetCDF does, [`memory`] looks at MPI's datatypes, [`access`] hands the parts to the exchange, at once or when they are
//!    waited for ([`requests`]).
//! 5. `ncmpi_close` ends the cycle.
//!
//! The reader's `ncmpi_open` waits for that, writes the header into a private file that its own PnetCDF opens, and gets
//! data from the exchange. Before it opens a file it may have asked whether there is one ([`visible`]).
//!
//! What a code of netCDF cannot say, `ncmpi_strerror` says right after the failure ([`failure`]).

mod access;
mod calls;
mod codes;
mod definition;
mod dtf;
mod failure;
mod families;
mod files;
mod group;
mod handed;
mod header;
mod hooks;
mod inside;
mod library;
mod memory;
mod open;
mod place;
mod process;
mod requests;
mod symbol;
mod visible;
