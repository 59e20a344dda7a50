//! A slab: bytes that lie strided on both sides, and go from one to the other.
//!
//! The *near* side is the view that a program reads or writes, the *far* side the replica that
//! serves it. Along each dimension a slab has a number of elements and, for each side, the bytes
//! from one to the next. The element consists of fields: runs of bytes that have a place on both
//! sides. `{a, b, c}` in an array of structs on the near side and in three arrays on the far side
//! is one slab with three fields, so that a kernel writes every struct at once.

use std::collections::HashMap;

/// Where the bytes of a slab come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// A file of one of the placements on the far side.
    Source {
        /// Which of the placements that the conversion was made with.
        source: usize,
        /// Which of its files.
        file: usize,
    },
    /// They are zeros: a header, padding, or an element that no source has.
    Zeros,
    /// They are these: markers of a Fortran record.
    Marker([u8; 8]),
}

/// Bytes that lie strided on both sides.
///
/// Offsets on the near side count from the begin of the view's file, on the far side from the begin
/// of the replica's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slab {
    pub(crate) origin: Origin,
    /// The outermost first, by the stride of the near side. All have more than one element.
    pub(crate) dims: Vec<Dim>,
    /// In ascending order on the near side, where they do not overlap. At least one.
    pub(crate) fields: Vec<Field>,
}

/// One dimension of a slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dim {
    /// How many elements.
    pub count: u64,
    /// Bytes from one element to the next on the near side; positive.
    pub near: i64,
    /// Bytes from one element to the next on the far side.
    pub far: i64,
}

/// A run of bytes in each element of a slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Where it is in the first element, on the near side.
    pub near: u64,
    /// Where it is in the first element, on the far side.
    pub far: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The order of every so many bytes is reversed; 1: they are copied as they are. Divides `bytes`.
    pub unit: u32,
}

impl Slab {
    /// Bytes that lie so: `dims` the outermost first, by the stride of the near side, each with more
    /// than one element; `fields` in ascending order on the near side, where they do not overlap.
    pub fn new(origin: Origin, dims: Vec<Dim>, fields: Vec<Field>) -> Self {
        Self { origin, dims, fields }
    }

    /// Where the bytes come from, or go to.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Its dimensions, the outermost first.
    pub fn dims(&self) -> &[Dim] {
        &self.dims
    }

    /// Its fields.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// How many bytes it moves.
    pub fn bytes(&self) -> u64 {
        let element: u64 = self.fields.iter().map(|field| field.bytes).sum();
        self.dims.iter().map(|dim| dim.count).product::<u64>() * element
    }

    /// The bytes of the near side that its elements lie between.
    pub fn near_span(&self) -> std::ops::Range<u64> {
        let extent: i64 = self.dims.iter().map(|dim| (dim.count as i64 - 1) * dim.near).sum();
        let first = self.fields.first().map_or(0, |field| field.near);
        let last = self.fields.last().map_or(0, |field| field.near + field.bytes);
        first..last + extent as u64
    }

    /// The bytes of the far side that its elements lie between.
    pub fn far_span(&self) -> std::ops::Range<u64> {
        let (mut low, mut high) = (0, 0);
        for dim in &self.dims {
            let extent = (dim.count as i64 - 1) * dim.far;
            low += extent.min(0);
            high += extent.max(0);
        }
        let first = self.fields.iter().map(|field| field.far).min();
        let last = self.fields.iter().map(|field| field.far + field.bytes).max();
        first.unwrap_or(0).wrapping_add_signed(low)..last.unwrap_or(0).wrapping_add_signed(high)
    }

    /// Whether it fills its [`far_span`](Self::far_span): whoever writes it to a file needs not
    /// read what is there.
    pub fn is_dense(&self) -> bool {
        // Neither fields nor elements overlap on the far side.
        let span = self.far_span();
        span.end - span.start == self.bytes()
    }

    /// The same with its sides exchanged. Only of slabs with one field.
    pub(crate) fn flipped(&self) -> Slab {
        let mut slab = Slab {
            origin: self.origin,
            dims: Vec::with_capacity(self.dims.len()),
            fields: (self.fields.iter())
                .map(|field| Field { near: field.far, far: field.near, ..*field })
                .collect(),
        };
        for dim in &self.dims {
            let mut flipped = Dim { count: dim.count, near: dim.far, far: dim.near };
            if flipped.near < 0 {
                // Count it from its other end.
                let last = dim.count as i64 - 1;
                for field in &mut slab.fields {
                    field.near = field.near.wrapping_add_signed(last * flipped.near);
                    field.far = field.far.wrapping_add_signed(last * flipped.far);
                }
                flipped.near = -flipped.near;
                flipped.far = -flipped.far;
            }
            slab.dims.push(flipped);
        }
        slab.dims.sort_by_key(|dim| std::cmp::Reverse(dim.near));
        slab
    }

    /// A slab for each field.
    pub(crate) fn singles(&self) -> impl Iterator<Item = Slab> {
        self.fields.iter().map(|&field| Slab {
            origin: self.origin,
            dims: self.dims.clone(),
            fields: vec![field],
        })
    }

    /// Sorts the dimensions and joins those that are one. Only of slabs with one field, which is
    /// made longer where its elements follow each other on both sides.
    fn normalise(&mut self) {
        self.dims.retain(|dim| dim.count > 1);
        self.dims.sort_by_key(|dim| std::cmp::Reverse(dim.near));
        if let [field] = &mut self.fields[..] {
            while let Some(dim) = self.dims.last()
                && dim.near == dim.far
                && dim.near == field.bytes as i64
            {
                field.bytes *= dim.count;
                self.dims.pop();
            }
        }
        let mut inner = self.dims.len();
        while inner > 1 {
            inner -= 1;
            let (outer, dim) = (self.dims[inner - 1], self.dims[inner]);
            let whole = |stride: i64| stride.checked_mul(dim.count as i64);
            if whole(dim.near) == Some(outer.near) && whole(dim.far) == Some(outer.far) {
                self.dims[inner - 1] = Dim { count: outer.count * dim.count, ..dim };
                self.dims.remove(inner);
                inner = self.dims.len().min(inner + 1);
            }
        }
    }
}

/// Joins slabs as far as they go together: neighbouring fields become one, arrays of structs that
/// are alike on both sides one run of bytes. All are of one near file and have one field.
pub(crate) fn joined(mut slabs: Vec<Slab>) -> Vec<Slab> {
    for slab in &mut slabs {
        slab.normalise();
    }
    if slabs.len() < 2 {
        return slabs;
    }
    loop {
        let before = slabs.len();
        let groups = alike(slabs);
        let mut changed = false;
        slabs = Vec::with_capacity(before);
        let layers = groups.into_iter().flat_map(|group| {
            let Slab { origin, dims, fields } = group;
            layers(fields).into_iter().map(move |layer| (origin, dims.clone(), layer))
        });
        for (origin, dims, fields) in layers {
            // All fields of a slab lie within one element of its innermost dimension.
            let cell = dims.last().map_or(u64::MAX, |dim| dim.near as u64);
            let mut rest = &fields[..];
            while let Some(first) = rest.first() {
                let within = |field: &Field| field.near + field.bytes - first.near <= cell;
                let count = rest.iter().take_while(|field| within(field)).count().max(1);
                let (element, others) = rest.split_at(count);
                rest = others;
                let mut slab = Slab { origin, dims: dims.clone(), fields: neighbours(element) };
                let (was_dims, was_bytes) = (slab.dims.len(), slab.fields[0].bytes);
                slab.normalise();
                changed |= slab.dims.len() != was_dims || slab.fields[0].bytes != was_bytes;
                slabs.push(slab);
            }
        }
        if !changed && slabs.len() == before || slabs.len() > before {
            break;
        }
    }
    sort(&mut slabs);
    slabs
}

/// Puts the fields of slabs together that are alike in everything else.
fn alike(slabs: Vec<Slab>) -> Vec<Slab> {
    /// A few are found faster one after the other.
    const FEW: usize = 16;
    let mut groups: Vec<Slab> = Vec::new();
    if slabs.len() <= FEW {
        for slab in slabs {
            let same = |group: &&mut Slab| group.origin == slab.origin && group.dims == slab.dims;
            match groups.iter_mut().find(same) {
                Some(group) => group.fields.extend(slab.fields),
                None => groups.push(slab),
            }
        }
        return groups;
    }
    let mut places: HashMap<(Origin, Vec<Dim>), usize> = HashMap::new();
    for slab in slabs {
        let next = groups.len();
        let place = *places.entry((slab.origin, slab.dims.clone())).or_insert(next);
        if place == next {
            groups.push(slab);
        } else {
            groups[place].fields.extend(slab.fields);
        }
    }
    groups
}

/// By where they begin on the near side.
pub(crate) fn sort(slabs: &mut [Slab]) {
    slabs.sort_by_cached_key(|slab| {
        let span = slab.near_span();
        (span.start, span.end)
    });
}

/// Brings one slab into its simplest form, without joining it with others.
pub(crate) fn normalised(mut slab: Slab) -> Slab {
    slab.normalise();
    slab
}

/// Fields in ascending order, in rows within which they do not overlap: what is written to two
/// places of a replica is one field for each.
fn layers(mut fields: Vec<Field>) -> Vec<Vec<Field>> {
    fields.sort_by_key(|field| (field.near, field.far));
    let mut layers: Vec<Vec<Field>> = Vec::new();
    for field in fields {
        let free = |layer: &&mut Vec<Field>| {
            layer.last().is_none_or(|last| last.near + last.bytes <= field.near)
        };
        match layers.iter_mut().find(free) {
            Some(layer) => layer.push(field),
            None => layers.push(vec![field]),
        }
    }
    layers
}

fn neighbours(fields: &[Field]) -> Vec<Field> {
    let mut joined: Vec<Field> = Vec::with_capacity(fields.len());
    for field in fields {
        match joined.last_mut() {
            Some(last)
                if last.unit == field.unit
                    && last.near + last.bytes == field.near
                    && last.far + last.bytes == field.far =>
            {
                last.bytes += field.bytes;
            }
            _ => joined.push(*field),
        }
    }
    joined
}
