//! Random definitions.
//!
//! Each is made from a row of numbers, each of which decides one thing; where the row ends, the
//! simplest is chosen. A shorter row with smaller numbers is a simpler definition, so proptest can
//! simplify a failing one.

use std::collections::HashMap;
use std::sync::Arc;

use drepl::Definition;
use drepl::definition::{
    Array, ByteOrder, Field, Index, Length, Marker, Order, Part, PartField, Placing, Record,
    Replica, ReplicaView, Scalar, Slice, Storage, Type, Update, Variable, View, ViewVariable,
};

/// The decisions that are left.
pub(super) struct Choices<'a>(std::slice::Iter<'a, u16>);

impl<'a> Choices<'a> {
    pub(super) fn new(row: &'a [u16]) -> Self {
        Self(row.iter())
    }

    /// 0 to `n - 1`; 0 is the simplest.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        u64::from(self.0.next().copied().unwrap_or(0)) % n.max(1)
    }

    /// One time in `n`.
    fn rarely(&mut self, n: u64) -> bool {
        self.below(n) == n - 1
    }
}

/// A definition, and what its stored lengths are.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) definition: Definition,
    pub(super) lengths: HashMap<usize, u64>,
    /// The view that has everything.
    pub(super) all: usize,
}

pub(super) fn definition(choices: &mut Choices<'_>) -> Made {
    let mut variables: Vec<Variable> = Vec::new();
    let mut lengths = HashMap::new();
    for _ in 0..=choices.below(3) {
        let mut kind = kind(choices, 3);
        if choices.rarely(4) {
            let stored = variables.len();
            variables.push(variable(stored, Type::Scalar(Scalar::Int32)));
            lengths.insert(stored, choices.below(6));
            let mut shape = vec![Length::Stored(stored)];
            if choices.rarely(2) {
                shape.insert(choices.below(2) as usize, Length::Fixed(choices.below(3) + 1));
            }
            kind = Type::Array(Arc::new(Array { lengths: shape, element: kind }));
        }
        variables.push(variable(variables.len(), kind));
    }
    let mut views: Vec<View> =
        (0..=choices.below(3)).map(|number| view(choices, number as usize, &variables)).collect();
    let all = views.len();
    views.push(View {
        variables: (variables.iter().enumerate())
            .map(|(source, variable)| ViewVariable {
                name: variable.name.clone(),
                source,
                part: Part::Whole,
                placing: Placing::default(),
                record: None,
            })
            .collect(),
        ..view(choices, all, &[])
    });
    let replicas = (0..=choices.below(2)).map(|number| replica(choices, number, views.len()));
    let replicas = replicas.collect();
    Made { definition: Definition { variables, views, replicas }, lengths, all }
}

fn variable(number: usize, kind: Type) -> Variable {
    Variable { name: format!("v{number}"), kind }
}

const SCALARS: [Scalar; 10] = [
    Scalar::Float32,
    Scalar::Int8,
    Scalar::Int16,
    Scalar::Int32,
    Scalar::Int64,
    Scalar::Uint8,
    Scalar::Uint16,
    Scalar::Uint32,
    Scalar::Uint64,
    Scalar::Float64,
];

fn kind(choices: &mut Choices<'_>, depth: u64) -> Type {
    match choices.below(if depth == 0 { 5 } else { 10 }) {
        0..=3 => Type::Scalar(SCALARS[choices.below(10) as usize]),
        4 => Type::Text { capacity: choices.below(5) as u16 },
        5..=7 => {
            let rank = if choices.rarely(3) { 2 } else { 1 };
            let lengths = (0..rank).map(|_| {
                if choices.rarely(30) {
                    Length::Fixed(0)
                } else {
                    Length::Fixed(choices.below(if depth == 3 { 9 } else { 4 }) + 1)
                }
            });
            let lengths = lengths.collect();
            Type::Array(Arc::new(Array { lengths, element: kind(choices, depth - 1) }))
        }
        _ => {
            let fields = (0..choices.below(3) + u64::from(!choices.rarely(40)))
                .map(|number| Field { name: format!("f{number}"), kind: kind(choices, depth - 1) })
                .collect();
            Type::Struct(fields)
        }
    }
}

fn view(choices: &mut Choices<'_>, number: usize, variables: &[Variable]) -> View {
    let packed = choices.rarely(4);
    let count = if variables.is_empty() { 0 } else { choices.below(4) + 1 };
    let mut record: Option<Record> = None;
    let mut records = 0;
    let parts = (0..count).map(|index| {
        let source = choices.below(variables.len() as u64) as usize;
        let part = part(choices, &variables[source].kind, &variables[source].kind, 0);
        if record.is_none() || choices.rarely(2) {
            record = choices.rarely(4).then(|| {
                records += 1;
                Record { number: records, marker: marker(choices) }
            });
        }
        ViewVariable { name: format!("w{index}"), source, part, placing: placing(choices), record }
    });
    let parts = parts.collect();
    View {
        name: format!("view{number}"),
        read_only: false,
        order: if choices.rarely(3) { Order::RowMinor } else { Order::RowMajor },
        byte_order: if choices.rarely(3) { ByteOrder::Big } else { ByteOrder::Little },
        packed,
        header: if choices.rarely(5) { choices.below(20) } else { 0 },
        variables: parts,
    }
}

fn marker(choices: &mut Choices<'_>) -> Marker {
    if choices.rarely(3) { Marker::Eight } else { Marker::Four }
}

fn placing(choices: &mut Choices<'_>) -> Placing {
    Placing {
        at: choices.rarely(12).then(|| choices.below(2) * 600 + choices.below(300)),
        align: choices.rarely(8).then(|| 1 << choices.below(6)),
        pad: if choices.rarely(8) { choices.below(9) } else { 0 },
    }
}

fn part(choices: &mut Choices<'_>, kind: &Type, whole: &Type, depth: u64) -> Part {
    if choices.rarely(12) {
        return Part::Record {
            marker: marker(choices),
            part: Box::new(part(choices, kind, whole, depth + 1)),
        };
    }
    match kind {
        Type::Scalar(_) | Type::Text { .. } => Part::Whole,
        Type::Struct(fields) if !fields.is_empty() => match choices.below(4) {
            0 => Part::Whole,
            1 => {
                let field = choices.below(fields.len() as u64) as usize;
                Part::Member {
                    field,
                    part: Box::new(part(choices, &fields[field].kind, whole, depth + 1)),
                }
            }
            _ => {
                let count = choices.below(fields.len() as u64) + 1;
                let first = choices.below(fields.len() as u64);
                let turn = if choices.rarely(2) { fields.len() as u64 - 1 } else { 1 };
                Part::Fields(
                    (0..count)
                        .map(|i| {
                            let field = ((first + i * turn) % fields.len() as u64) as usize;
                            PartField {
                                field,
                                part: part(choices, &fields[field].kind, whole, depth + 1),
                            }
                        })
                        .collect(),
                )
            }
        },
        Type::Struct(_) => Part::Whole,
        Type::Array(array) => {
            if choices.below(3) == 0 {
                return Part::Whole;
            }
            slice(choices, array, whole, depth)
        }
    }
}

fn slice(choices: &mut Choices<'_>, array: &Array, whole: &Type, depth: u64) -> Part {
    let mut indexes = Vec::new();
    let mut lengths = Vec::new();
    for &length in &array.lengths {
        match length {
            Length::Fixed(0) => {
                indexes.push(Index::Running { dimension: lengths.len(), step: 1, start: 0 });
                lengths.push(length);
            }
            Length::Fixed(n) if choices.rarely(5) => indexes.push(Index::Fixed(choices.below(n))),
            Length::Fixed(n) => {
                let step = (choices.below(3) + 1) as i64;
                let step = if choices.rarely(4) { -step } else { step };
                let start = choices.below(n);
                let start = if step < 0 { n - 1 - start } else { start };
                let most = if step > 0 {
                    (n - start).div_ceil(step as u64)
                } else {
                    start / step.unsigned_abs() + 1
                };
                indexes.push(Index::Running {
                    dimension: lengths.len(),
                    step,
                    start: start as i64,
                });
                let length = if choices.rarely(4) { choices.below(most) + 1 } else { most };
                lengths.push(Length::Fixed(length));
            }
            Length::Stored(_) if choices.rarely(6) => {
                indexes.push(Index::Fixed(choices.below(6)));
            }
            Length::Stored(_) => {
                indexes.push(Index::Running {
                    dimension: lengths.len(),
                    step: (choices.below(3) + 1) as i64,
                    start: choices.below(3) as i64,
                });
                lengths.push(length);
            }
        }
    }
    // Another order of the view's dimensions.
    if choices.rarely(2) && lengths.len() > 1 {
        let turn = choices.below(lengths.len() as u64) as usize;
        let count = lengths.len();
        lengths.rotate_right(turn);
        for index in &mut indexes {
            if let Index::Running { dimension, .. } = index {
                *dimension = (*dimension + turn) % count;
            }
        }
    }
    Part::Slice(Slice {
        lengths,
        indexes,
        element: Box::new(part(choices, &array.element, whole, depth + 1)),
    })
}

fn replica(choices: &mut Choices<'_>, number: u64, views: usize) -> Replica {
    let views = (0..=choices.below(2)).map(|_| ReplicaView {
        view: choices.below(views as u64) as usize,
        group: None,
        split: false,
        chunk: None,
        deflate: None,
    });
    let views = views.collect();
    Replica {
        name: format!("replica{number}"),
        complete: choices.rarely(2),
        update: Update::Sync,
        closeness: 0,
        storage: Storage::Raw,
        views,
    }
}
