//! Aggregate functions that are written in C.

use std::ffi::{c_int, c_void};

use sieve::Access;
use sieve::aggregate::{Aggregate, Decision, Step};

/// `nct_step`: what a function is told.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // Said in nct.h, field by field.
pub struct NctStep {
    pub is_write: c_int,
    pub completes_tuple: c_int,
    pub cur_tuple_num: u64,
    pub cur_logical_offset: u64,
    pub cur_view_offset: u64,
    pub view_bytes_to_acc_next: u64,
    pub logical_bytes_to_acc_next: u64,
    pub bytes_max: u64,
    pub delta_offset: u64,
    pub bytes_left: u64,
    pub buffsize: u64,
}

/// `nct_decision`: what it may change.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // Said in nct.h, field by field.
pub struct NctDecision {
    pub bytes_to_acc_on_tuple: u64,
    pub hole_bytes_to_aggr_on_tuple: u64,
    pub hole_bytes_to_aggr_on_next_acc: u64,
}

/// `nct_aggregate`: the function itself.
pub type NctAggregate =
    unsafe extern "C" fn(*const NctStep, *mut NctDecision, *mut c_void) -> c_int;

/// A function of the user's and the pointer that it wants to be handed.
pub(crate) struct Callback {
    function: NctAggregate,
    context: *mut c_void,
}

// SAFETY: the pointer is never followed here, only handed back to the user's function. nct.h says
// that threads which share a view take turns, so the function is never run twice at a time for one
// view; that the context may be used from each of those threads is up to who shares the view.
unsafe impl Send for Callback {}

impl Callback {
    pub(crate) fn new(function: NctAggregate, context: *mut c_void) -> Self {
        Self { function, context }
    }
}

impl Aggregate for Callback {
    fn name(&self) -> &str {
        "user-supplied"
    }

    fn decide(&mut self, step: &Step) -> Decision {
        let told = NctStep {
            is_write: c_int::from(step.access == Access::Write),
            completes_tuple: c_int::from(step.completes_tuple),
            cur_tuple_num: step.tuple,
            cur_logical_offset: step.file,
            cur_view_offset: step.data,
            view_bytes_to_acc_next: step.data_gathered,
            logical_bytes_to_acc_next: step.span,
            bytes_max: step.bytes_max,
            delta_offset: step.hole,
            bytes_left: step.data_left,
            buffsize: step.buffer_bytes,
        };
        let mut decision = NctDecision {
            bytes_to_acc_on_tuple: step.bytes_max,
            hole_bytes_to_aggr_on_tuple: 0,
            hole_bytes_to_aggr_on_next_acc: 0,
        };
        // SAFETY: the user gave a function of this type with nct_set_aggregate, and both pointers
        // lead to locals that outlive the call. An exception of C++ that would leave it ends the
        // process, as it does at every function of C.
        let join = unsafe { (self.function)(&raw const told, &raw mut decision, self.context) };
        Decision {
            join: join != 0,
            bytes: decision.bytes_to_acc_on_tuple,
            hole_after: decision.hole_bytes_to_aggr_on_tuple,
            hole_before_next: decision.hole_bytes_to_aggr_on_next_acc,
        }
    }
}
