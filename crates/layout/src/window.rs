//! Cutting slabs so that what each needs of the far side fits a window.

use crate::slab::{Dim, Field, Slab};

impl Slab {
    /// Hands to `each` slabs that together are this one, whose [`far_span`](Slab::far_span) is at
    /// most `window` bytes: for whoever reads or writes a replica's file through a buffer. Fields
    /// that lie in the same elements of the far side stay together; arrays that lie apart there do
    /// not. An error ends it.
    ///
    /// # Errors
    /// What `each` says.
    ///
    /// # Panics
    /// When `window` is less than 16 bytes.
    pub fn split<E>(
        &self,
        window: u64,
        each: &mut dyn FnMut(Slab) -> Result<(), E>,
    ) -> Result<(), E> {
        assert!(window >= 16, "a window of {window} bytes");
        if span(self) <= window {
            return each(self.clone());
        }
        for cluster in clusters(self, window) {
            if span(&cluster) <= window {
                each(cluster)?;
            } else {
                cut(&cluster, window, each)?;
            }
        }
        Ok(())
    }
}

fn span(slab: &Slab) -> u64 {
    let span = slab.far_span();
    span.end - span.start
}

/// The fields in groups that lie together on the far side.
fn clusters(slab: &Slab, window: u64) -> Vec<Slab> {
    // Within the densest dimension's stride, fields are parts of one element.
    let strides = slab.dims.iter().map(|dim| dim.far.unsigned_abs());
    let cell = strides.min().unwrap_or(window).clamp(1, window);
    let mut fields = slab.fields.clone();
    fields.sort_by_key(|field| field.far);
    let mut clusters: Vec<Vec<Field>> = Vec::new();
    for field in fields {
        match clusters.last_mut() {
            Some(cluster) if field.far + field.bytes <= cluster[0].far + cell => {
                cluster.push(field)
            }
            _ => clusters.push(vec![field]),
        }
    }
    let with_dims = |mut fields: Vec<Field>| {
        fields.sort_by_key(|field| field.near);
        Slab { origin: slab.origin, dims: slab.dims.clone(), fields }
    };
    clusters.into_iter().map(with_dims).collect()
}

/// Cuts along the dimension whose stride on the far side is the largest.
fn cut<E>(slab: &Slab, window: u64, each: &mut dyn FnMut(Slab) -> Result<(), E>) -> Result<(), E> {
    let widest = (0..slab.dims.len()).max_by_key(|&k| slab.dims[k].far.unsigned_abs());
    let Some(widest) = widest else {
        return fields(slab, window, each);
    };
    let dim = slab.dims[widest];
    let mut element = slab.clone();
    element.dims.remove(widest);
    let (inside, stride) = (span(&element), dim.far.unsigned_abs());
    let most = if inside > window { 1 } else { (window - inside) / stride + 1 };
    let mut first = 0;
    while first < dim.count {
        let count = most.min(dim.count - first);
        let mut piece = element.clone();
        for field in &mut piece.fields {
            field.near = field.near.wrapping_add_signed(dim.near * first as i64);
            field.far = field.far.wrapping_add_signed(dim.far * first as i64);
        }
        if count > 1 {
            piece.dims.insert(widest, Dim { count, ..dim });
        }
        if inside > window {
            cut(&piece, window, each)?;
        } else {
            each(piece)?;
        }
        first += count;
    }
    Ok(())
}

/// Cuts long runs of bytes.
fn fields<E>(
    slab: &Slab,
    window: u64,
    each: &mut dyn FnMut(Slab) -> Result<(), E>,
) -> Result<(), E> {
    for field in &slab.fields {
        let unit = u64::from(field.unit);
        let most = (window / unit).max(1) * unit;
        let mut at = 0;
        while at < field.bytes {
            let bytes = most.min(field.bytes - at);
            each(Slab {
                origin: slab.origin,
                dims: Vec::new(),
                fields: vec![Field { near: field.near + at, far: field.far + at, bytes, ..*field }],
            })?;
            at += bytes;
        }
    }
    Ok(())
}
