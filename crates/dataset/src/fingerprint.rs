//! What the bytes of a replica mean, as one number: when it changes, a file that was written
//! before cannot be read any more.
//!
//! Not in it is whatever leaves the bytes alone: names of views, when the replica is updated, other
//! views and replicas. Everything is spelled out here rather than left to `Debug`, so that a
//! release that prints a type in another way does not take every dataset for a changed one.

use std::fmt::Write as _;

use drepl::Definition;
use drepl::definition::{
    ByteOrder, Index, Length, Marker, Order, Part, Replica, Scalar, Storage, Type, View,
};

use crate::hash::fnv1a;

/// The number of one replica.
pub(crate) fn of(definition: &Definition, replica: &Replica) -> u128 {
    let mut text = Text { definition, text: String::new() };
    text.replica(replica);
    fnv1a(text.text.as_bytes())
}

/// The number of each view: when it changes, its bytes mean something else.
pub(crate) fn of_views(definition: &Definition) -> Vec<u128> {
    let number = |view: &View| {
        let mut text = Text { definition, text: String::new() };
        text.view(view);
        fnv1a(text.text.as_bytes())
    };
    definition.views.iter().map(number).collect()
}

/// The number of all variables of the dataset.
pub(crate) fn of_variables(definition: &Definition) -> u128 {
    let mut text = Text { definition, text: String::new() };
    (0..definition.variables.len()).for_each(|variable| text.variable(variable));
    fnv1a(text.text.as_bytes())
}

struct Text<'d> {
    definition: &'d Definition,
    text: String,
}

impl Text<'_> {
    fn say(&mut self, args: std::fmt::Arguments<'_>) {
        self.text.write_fmt(args).expect("text grows");
    }

    fn replica(&mut self, replica: &Replica) {
        self.text.push_str(match replica.storage {
            Storage::Raw => "raw",
            Storage::Hdf5 => "hdf5",
        });
        for stored in &replica.views {
            if replica.storage == Storage::Hdf5 {
                let (group, split) = (&stored.group, stored.split);
                let (chunk, deflate) = (&stored.chunk, stored.deflate);
                self.say(format_args!("[{group:?} {split} {chunk:?} {deflate:?}]"));
            }
            self.view(&self.definition.views[stored.view]);
        }
        if replica.complete {
            for variable in 0..self.definition.variables.len() {
                self.text.push_str("complete ");
                self.variable(variable);
            }
        }
    }

    fn view(&mut self, view: &View) {
        let order = match view.order {
            Order::RowMajor => "major",
            Order::RowMinor => "minor",
        };
        let byte_order = match view.byte_order {
            ByteOrder::Little => "little",
            ByteOrder::Big => "big",
        };
        let (packed, header) = (view.packed, view.header);
        self.say(format_args!("(view {order} {byte_order} {packed} {header}"));
        for variable in &view.variables {
            self.text.push_str(" (");
            self.variable(variable.source);
            self.part(&variable.part);
            let placing = variable.placing;
            self.say(format_args!("{:?} {:?} {}", placing.at, placing.align, placing.pad));
            if let Some(record) = variable.record {
                self.say(format_args!(" record {} ", record.number));
                self.marker(record.marker);
            }
            self.text.push(')');
        }
        self.text.push(')');
    }

    /// Names with their length, so that none can look like something else.
    fn name(&mut self, name: &str) {
        self.say(format_args!("{}:{name}", name.len()));
    }

    fn variable(&mut self, index: usize) {
        let variable = &self.definition.variables[index];
        self.name(&variable.name);
        self.kind(&variable.kind);
    }

    fn kind(&mut self, kind: &Type) {
        match kind {
            Type::Scalar(scalar) => self.text.push_str(match scalar {
                Scalar::Int8 => "i1",
                Scalar::Int16 => "i2",
                Scalar::Int32 => "i4",
                Scalar::Int64 => "i8",
                Scalar::Uint8 => "u1",
                Scalar::Uint16 => "u2",
                Scalar::Uint32 => "u4",
                Scalar::Uint64 => "u8",
                Scalar::Float32 => "f4",
                Scalar::Float64 => "f8",
            }),
            Type::Text { capacity } => self.say(format_args!("text{capacity}")),
            Type::Struct(fields) => {
                self.text.push('{');
                for field in fields.iter() {
                    self.name(&field.name);
                    self.kind(&field.kind);
                }
                self.text.push('}');
            }
            Type::Array(array) => {
                self.lengths(&array.lengths);
                self.kind(&array.element);
            }
        }
    }

    fn lengths(&mut self, lengths: &[Length]) {
        for length in lengths {
            match length {
                Length::Fixed(length) => self.say(format_args!("[{length}]")),
                Length::Stored(variable) => {
                    self.text.push('[');
                    self.name(&self.definition.variables[*variable].name);
                    self.text.push(']');
                }
            }
        }
    }

    fn marker(&mut self, marker: Marker) {
        self.text.push_str(match marker {
            Marker::Four => "marker4",
            Marker::Eight => "marker8",
        });
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Whole => self.text.push_str(" whole "),
            Part::Fields(fields) => {
                self.text.push('{');
                for field in fields {
                    self.say(format_args!(" {}", field.field));
                    self.part(&field.part);
                }
                self.text.push('}');
            }
            Part::Member { field, part } => {
                self.say(format_args!(".{field}"));
                self.part(part);
            }
            Part::Slice(slice) => {
                self.lengths(&slice.lengths);
                for index in &slice.indexes {
                    match index {
                        Index::Running { dimension, step, start } => {
                            self.say(format_args!("<{dimension} {step} {start}>"));
                        }
                        Index::Fixed(index) => self.say(format_args!("<{index}>")),
                    }
                }
                self.part(&slice.element);
            }
            Part::Record { marker, part } => {
                self.text.push('(');
                self.marker(*marker);
                self.part(part);
                self.text.push(')');
            }
        }
    }
}
