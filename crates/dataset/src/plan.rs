//! Where everything lies at present, and how it gets from one place to another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use drepl::Definition;
use drepl::definition::{
    ByteOrder, Length, Order, Part, Placing, Scalar, Type, Update, View, ViewVariable,
};
use layout::{Conversion, Layout, Lengths, Placement, Slab};

use crate::error::{Error, Result};
use crate::hdf5;
use crate::member::{Member, Use};
use crate::replica::Files;

/// A definition with its lengths made visible.
///
/// While a dataset is open, views and replicas come and go, but a number once given to one is never
/// another's: what is removed stays in the lists, unseen (`crate::change`).
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) definition: Definition,
    /// By view: whether it is the user's, and was not removed.
    pub(crate) shown: Vec<bool>,
    /// The view of the lengths.
    lengths: Option<usize>,
    /// The variables that store lengths of arrays, in the order in which that view has them.
    pub(crate) stored: Vec<usize>,
}

impl Model {
    /// Adds a view of all variables that store lengths, if there are any, and the views that HDF5
    /// replicas hold.
    pub(crate) fn new(mut definition: Definition) -> Self {
        let mut stored = Vec::new();
        for variable in &definition.variables {
            if let Type::Array(array) = &variable.kind {
                for length in &array.lengths {
                    if let Length::Stored(variable) = length
                        && !stored.contains(variable)
                    {
                        stored.push(*variable);
                    }
                }
            }
        }
        let mut shown = vec![true; definition.views.len()];
        let lengths = (!stored.is_empty()).then_some(definition.views.len());
        if !stored.is_empty() {
            let variable = |source: &usize| ViewVariable {
                name: definition.variables[*source].name.clone(),
                source: *source,
                part: Part::Whole,
                placing: Placing::default(),
                record: None,
            };
            let variables = stored.iter().map(variable).collect();
            definition.views.push(View {
                name: "the lengths of arrays".to_owned(),
                read_only: true,
                order: Order::RowMajor,
                byte_order: ByteOrder::Little,
                packed: true,
                header: 0,
                variables,
            });
        }
        hdf5::add_stored_views(&mut definition);
        shown.resize(definition.views.len(), false);
        Self { definition, shown, lengths, stored }
    }

    /// The view of the lengths with all of them 1: then every element that an array of variable size can
    /// have is there once, since the dimension that varies is always taken whole.
    pub(crate) fn lengths_of_one(&self) -> Vec<u8> {
        self.length_sizes().flat_map(|size| (0..size).map(|at| u8::from(at == 0))).collect()
    }

    /// The view of the lengths.
    pub(crate) fn lengths_view(&self) -> Option<usize> {
        self.lengths
    }

    /// Adds a view, and says its number.
    pub(crate) fn add_view(&mut self, view: View, is_shown: bool) -> usize {
        self.definition.views.push(view);
        self.shown.push(is_shown);
        self.shown.len() - 1
    }

    /// The views that the user sees, with their numbers.
    pub(crate) fn views(&self) -> impl Iterator<Item = (usize, &View)> {
        let views = self.definition.views.iter().enumerate();
        views.filter(|(number, _)| self.shown[*number])
    }

    /// The number of the view of a name.
    pub(crate) fn view(&self, name: &str) -> Option<usize> {
        self.views().find(|(_, view)| view.name == name).map(|(number, _)| number)
    }

    /// The bytes of that view.
    pub(crate) fn lengths_bytes(&self) -> usize {
        self.length_sizes().sum()
    }

    /// The bytes of each length.
    fn length_sizes(&self) -> impl Iterator<Item = usize> {
        self.stored.iter().map(|variable| match self.definition.variables[*variable].kind {
            Type::Scalar(scalar) => scalar.size() as usize,
            Type::Text { .. } | Type::Struct(_) | Type::Array(_) => 0,
        })
    }

    /// A length that cannot be.
    pub(crate) fn bad_length(&self, why: String) -> Error {
        let name = |variable: &usize| self.definition.variables[*variable].name.as_str();
        let variable = self.stored.iter().map(name).collect::<Vec<_>>().join("`, `");
        Error::Length { variable, why }
    }

    /// What the bytes of that view say.
    pub(crate) fn lengths(&self, bytes: &[u8]) -> Result<Lengths> {
        let mut lengths = Lengths::new();
        let mut at = 0;
        for variable in &self.stored {
            let known = &self.definition.variables[*variable];
            let Type::Scalar(scalar) = known.kind else { continue };
            let size = scalar.size() as usize;
            let value = integer(scalar, &bytes[at..at + size]);
            at += size;
            let length = u64::try_from(value).map_err(|_| Error::Length {
                variable: known.name.clone(),
                why: format!("{value} is negative"),
            })?;
            lengths.set(*variable, length);
        }
        Ok(lengths)
    }
}

/// A length that a write changes.
struct Change {
    /// Where its bytes lie in the view that is written, and in that of the lengths.
    bytes: Vec<(u64, usize)>,
    /// Where it ends in the view that is written.
    end: u64,
}

/// The first length in the order of the near side that is another than before.
fn first_change(
    slabs: impl Iterator<Item = Slab>,
    lengths: &Placement,
    stored: &[u8],
    written: impl Fn(u64) -> u8,
) -> Option<Change> {
    let mut pairs: Vec<(u64, usize)> = slabs.flat_map(|slab| pairs(&slab)).collect();
    pairs.sort_unstable();
    let variable = |far: usize| {
        let before = |placed: &layout::Placed| placed.offset <= far as u64;
        lengths.variables().partition_point(before)
    };
    let differs = |(near, far): &(u64, usize)| written(*near) != stored[*far];
    let found = pairs.iter().position(differs)?;
    let its = variable(pairs[found].1);
    // Its bytes follow each other; elsewhere it may be once more.
    let follows = |pair: &[(u64, usize)]| pair[0].0 + 1 == pair[1].0 && variable(pair[0].1) == its;
    let mut first = found;
    while first > 0
        && follows(&pairs[first - 1..=first])
        && pairs[first..=found].iter().all(|(_, far)| *far != pairs[first - 1].1)
    {
        first -= 1;
    }
    let mut last = found;
    while last + 1 < pairs.len()
        && variable(pairs[last + 1].1) == its
        && pairs[last].0 + 1 == pairs[last + 1].0
        && pairs[first..=last].iter().all(|(_, far)| *far != pairs[last + 1].1)
    {
        last += 1;
    }
    Some(Change { bytes: pairs[first..=last].to_vec(), end: pairs[last].0 + 1 })
}

/// Each byte of the near side with that of the far side. Only for the few bytes that lengths are.
fn pairs(slab: &Slab) -> Vec<(u64, usize)> {
    let mut elements = vec![(0_i64, 0_i64)];
    for dim in slab.dims() {
        let all = elements.into_iter().flat_map(|(near, far)| {
            (0..dim.count as i64).map(move |i| (near + i * dim.near, far + i * dim.far))
        });
        elements = all.collect();
    }
    let mut pairs = Vec::new();
    for (near, far) in elements {
        for field in slab.fields() {
            let unit = u64::from(field.unit);
            for byte in 0..field.bytes {
                let there = byte / unit * unit + (unit - 1 - byte % unit);
                let far_byte = if unit == 1 { byte } else { there };
                pairs.push((
                    (field.near + byte).wrapping_add_signed(near),
                    (field.far + far_byte).wrapping_add_signed(far) as usize,
                ));
            }
        }
    }
    pairs
}

/// A little-endian integer.
fn integer(scalar: Scalar, bytes: &[u8]) -> i128 {
    let signed = matches!(scalar, Scalar::Int8 | Scalar::Int16 | Scalar::Int32 | Scalar::Int64);
    let negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut all = if negative { [0xff; 16] } else { [0; 16] };
    all[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(all)
}

/// What there is and where everything lies, for certain lengths of arrays.
pub(crate) struct Plan {
    pub(crate) model: Arc<Model>,
    /// The replicas of the model, in its order.
    pub(crate) members: Vec<Arc<Member>>,
    /// Those of them that were removed.
    pub(crate) gone: BTreeSet<usize>,
    /// Who uses the views of the model, in its order.
    pub(crate) uses: Vec<Arc<Use>>,
    /// Whether a write can leave two places different that should be equal.
    pub(crate) needs_intents: bool,
    /// The bytes of the view of the lengths.
    pub(crate) stored: Vec<u8>,
    pub(crate) lengths: Lengths,
    /// The definition, for messages.
    pub(crate) path: PathBuf,
    views: Vec<Placement>,
    replicas: Vec<Placement>,
    /// By view: how it was read last, and from which replicas.
    reads: Vec<Mutex<Option<Reading>>>,
    /// By view: where writes go, by replica.
    writes: Vec<OnceLock<Vec<Arc<Conversion>>>>,
    /// By view: where the lengths that it holds go in the view of the lengths.
    to_lengths: Vec<OnceLock<Conversion>>,
}

/// How a view is read.
#[derive(Clone)]
struct Reading {
    sources: Vec<usize>,
    conversion: Arc<Conversion>,
}

impl Plan {
    /// Places everything for the lengths that these bytes are; none: all are 0. There are no members
    /// yet.
    pub(crate) fn new(model: &Arc<Model>, stored: Option<Vec<u8>>, path: &Path) -> Result<Self> {
        let stored = stored.unwrap_or_else(|| vec![0; model.lengths_bytes()]);
        let lengths = model.lengths(&stored)?;
        let wrong =
            |error: layout::Error| Error::Layout { path: path.into(), why: error.to_string() };
        let definition = &model.definition;
        let layout = Layout::new(definition).map_err(wrong)?;
        let views = (0..definition.views.len())
            .map(|view| layout.view(view, &lengths))
            .collect::<Result<Vec<_>, _>>()
            .map_err(wrong)?;
        let replicas = (0..definition.replicas.len())
            .map(|replica| layout.replica(replica, &lengths))
            .collect::<Result<Vec<_>, _>>()
            .map_err(wrong)?;
        let reads = views.iter().map(|_| Mutex::default()).collect();
        let writes = views.iter().map(|_| OnceLock::new()).collect();
        let to_lengths = views.iter().map(|_| OnceLock::new()).collect();
        Ok(Self {
            model: Arc::clone(model),
            members: Vec::new(),
            gone: BTreeSet::new(),
            uses: Vec::new(),
            needs_intents: false,
            stored,
            lengths,
            path: path.to_path_buf(),
            views,
            replicas,
            reads,
            writes,
            to_lengths,
        })
    }

    /// The same for other lengths.
    pub(crate) fn with_lengths(&self, stored: Vec<u8>) -> Result<Self> {
        Ok(Self {
            members: self.members.clone(),
            gone: self.gone.clone(),
            uses: self.uses.clone(),
            needs_intents: self.needs_intents,
            ..Self::new(&self.model, Some(stored), &self.path)?
        })
    }

    /// The replica of a name.
    pub(crate) fn member(&self, name: &str) -> Option<usize> {
        self.members().find(|(_, member)| member.place.name == name).map(|(index, _)| index)
    }

    /// The replicas that were not removed, with their numbers.
    pub(crate) fn members(&self) -> impl Iterator<Item = (usize, &Arc<Member>)> {
        self.members.iter().enumerate().filter(|(index, _)| !self.gone.contains(index))
    }

    /// The replicas that are written at once and up to date, in the order of the definition.
    pub(crate) fn primaries(&self) -> Vec<(usize, Arc<Files>)> {
        let members = self.members().filter(|(_, member)| member.update == Update::Sync);
        members.filter_map(|(index, member)| Some((index, member.files()?))).collect()
    }

    /// Whether all that a replica holds is in others, too, that are written at once.
    pub(crate) fn can_do_without(&self, index: usize) -> Result<bool> {
        let mut others: Vec<usize> = self.primaries().iter().map(|(other, _)| *other).collect();
        others.retain(|other| *other != index);
        let conversion = self.copy(index, &others)?;
        Ok(conversion.served().iter().all(|served| served.missing == 0))
    }

    /// The bytes of a view.
    pub(crate) fn size(&self, view: usize) -> u64 {
        self.views[view].size()
    }

    pub(crate) fn view(&self, view: usize) -> &Placement {
        &self.views[view]
    }

    /// The bytes of a replica's files.
    pub(crate) fn sizes(&self, replica: usize) -> Vec<u64> {
        self.replicas[replica].sizes().collect()
    }

    /// How to read a view from replicas, the preferred one first.
    pub(crate) fn read(&self, view: usize, sources: &[usize]) -> Result<Arc<Conversion>> {
        let mut last = self.reads[view].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reading) = last.as_ref().filter(|reading| reading.sources == sources) {
            return Ok(Arc::clone(&reading.conversion));
        }
        let conversion = Arc::new(self.conversion(&self.views[view], sources)?);
        let sources = sources.to_vec();
        *last = Some(Reading { sources, conversion: Arc::clone(&conversion) });
        Ok(conversion)
    }

    /// How to make a replica from others.
    pub(crate) fn copy(&self, replica: usize, sources: &[usize]) -> Result<Conversion> {
        self.conversion(&self.replicas[replica], sources)
    }

    fn conversion(&self, target: &Placement, sources: &[usize]) -> Result<Conversion> {
        let placements: Vec<&Placement> =
            sources.iter().map(|source| &self.replicas[*source]).collect();
        Conversion::read(target, &placements)
            .map_err(|error| Error::Layout { path: self.path.clone(), why: error.to_string() })
    }

    /// Where what is written to a view goes in a replica.
    pub(crate) fn write(&self, view: usize, replica: usize) -> &Conversion {
        let all = self.writes[view].get_or_init(|| {
            let write = |replica| Arc::new(Conversion::write(&self.views[view], replica));
            self.replicas.iter().map(write).collect()
        });
        &all[replica]
    }

    /// The lengths after a write to a view, as bytes of the view of the lengths.
    ///
    /// They are taken in the order in which the view has them: where one lies may depend on those
    /// before it.
    ///
    /// # Errors
    /// [`Error::Length`] for lengths that cannot be, and where what is written could be understood
    /// in two ways: a length that lies elsewhere because of what it is.
    pub(crate) fn stored_after(&self, view: usize, offset: u64, data: &[u8]) -> Result<Vec<u8>> {
        let model = &self.model;
        let Some(lengths) = model.lengths_view() else { return Ok(Vec::new()) };
        let end = offset.saturating_add(data.len() as u64);
        let now = self.to_lengths[view]
            .get_or_init(|| Conversion::write(&self.views[view], &self.views[lengths]));
        let (mut stored, mut at) = (self.stored.clone(), offset);
        let mut then: Option<(Conversion, u64)> = None;
        let mut taken: Vec<(u64, usize)> = Vec::new();
        // One after the other: behind the first that changes, all may lie elsewhere.
        while let Some(change) = first_change(
            then.as_ref().map_or(now, |(then, _)| then).clip(at..end),
            &self.views[lengths],
            &stored,
            |near| data[(near - offset) as usize],
        ) {
            for (near, far) in &change.bytes {
                stored[*far] = data[(near - offset) as usize];
            }
            taken.extend(change.bytes);
            at = change.end;
            let error = |error: layout::Error| model.bad_length(error.to_string());
            let layout = Layout::new(&model.definition).map_err(error)?;
            let placement = layout.view(view, &model.lengths(&stored)?).map_err(error)?;
            let conversion = Conversion::write(&placement, &self.views[lengths]);
            then = Some((conversion, placement.size()));
        }
        if let Some((then, size)) = then {
            let pairs: Vec<(u64, usize)> =
                then.clip(0..size).flat_map(|slab| pairs(&slab)).collect();
            let mut all: Vec<usize> = pairs.iter().map(|(_, far)| *far).collect();
            all.sort_unstable();
            if all.windows(2).any(|two| two[0] == two[1]) {
                let why = "this view has a length twice; write it through another view";
                return Err(model.bad_length(why.to_owned()));
            }
            let mut again = stored.clone();
            for slab in then.clip(offset..end) {
                slab.write(data, offset, &mut again, 0);
            }
            if again != stored || taken.iter().any(|pair| !pairs.contains(pair)) {
                let why = "in this view it lies behind an array that has it; write it through \
                           another view";
                return Err(model.bad_length(why.to_owned()));
            }
        }
        Ok(stored)
    }

    /// Where the variables of a replica lie.
    pub(crate) fn replica(&self, replica: usize) -> &Placement {
        &self.replicas[replica]
    }

    /// What stands in the files of a replica before anything was written.
    pub(crate) fn blanks(&self, replica: usize) -> Conversion {
        Conversion::blanks(&self.replicas[replica])
    }
}
