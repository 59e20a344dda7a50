//! Walking through a shape.

use super::Shape;

/// The blocks of a shape, in order. Offsets are computed without checks: a shape whose furthest byte has
/// no offset cannot be made.
#[derive(Debug, Clone)]
pub struct Blocks<'a> {
    stack: Vec<Level<'a>>,
    /// A block that has been reached but not handed out: the next may touch it.
    held: Option<(i64, u64)>,
}

#[derive(Debug, Clone)]
enum Level<'a> {
    Once { base: i64, shape: &'a Shape },
    Repeat { base: i64, left: u64, stride: i64, each: &'a Shape },
    Blocks { base: i64, left: std::slice::Iter<'a, (i64, u64)> },
    List { base: i64, left: std::slice::Iter<'a, Shape> },
}

impl<'a> Blocks<'a> {
    pub(super) fn new(shape: &'a Shape) -> Self {
        Self { stack: vec![Level::Once { base: 0, shape }], held: None }
    }

    /// The next block as it stands in the shape, not merged with what follows.
    fn raw(&mut self) -> Option<(i64, u64)> {
        loop {
            let (base, shape) = match self.stack.last_mut()? {
                Level::Blocks { base, left } => match left.next() {
                    Some((offset, length)) => return Some((*base + offset, *length)),
                    None => {
                        self.stack.pop();
                        continue;
                    }
                },
                Level::Repeat { base, left, stride, each } => {
                    if *left == 0 {
                        self.stack.pop();
                        continue;
                    }
                    *left -= 1;
                    let here = *base;
                    // Not beyond the last: that offset may not exist.
                    if *left > 0 {
                        *base += *stride;
                    }
                    if let Shape::Block { offset, length } = each {
                        return Some((here + offset, *length));
                    }
                    (here, *each)
                }
                Level::List { base, left } => match left.next() {
                    Some(shape) => (*base, shape),
                    None => {
                        self.stack.pop();
                        continue;
                    }
                },
                Level::Once { base, shape } => {
                    let reached = (*base, *shape);
                    self.stack.pop();
                    reached
                }
            };
            match shape {
                Shape::Nothing => {}
                Shape::Block { offset, length } => return Some((base + offset, *length)),
                Shape::Repeat { offset, count, stride, each } => self.stack.push(Level::Repeat {
                    base: base + offset,
                    left: *count,
                    stride: *stride,
                    each,
                }),
                Shape::Blocks(blocks) => {
                    self.stack.push(Level::Blocks { base, left: blocks.iter() });
                }
                Shape::List(list) => self.stack.push(Level::List { base, left: list.iter() }),
            }
        }
    }
}

impl Iterator for Blocks<'_> {
    type Item = (i64, u64);

    fn next(&mut self) -> Option<(i64, u64)> {
        let (offset, mut length) = match self.held.take() {
            Some(held) => held,
            None => self.raw()?,
        };
        while let Some((next, more)) = self.raw() {
            if offset + length as i64 == next {
                length += more;
            } else {
                self.held = Some((next, more));
                break;
            }
        }
        Some((offset, length))
    }
}
