//! What a text says, as it says it: names are names, and expressions have not been computed.

use crate::definition::{ByteOrder, Marker, Order, Storage, Update};
use crate::source::Span;

/// A name where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// Something, and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct At<T> {
    pub(crate) what: T,
    pub(crate) span: Span,
}

/// What stands at the outermost level.
#[derive(Debug)]
pub(crate) enum Item {
    Dataset(Dataset),
    View(View),
    Replica(Replica),
    Include(Include),
}

/// The three sections of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Dataset,
    View,
    Replica,
}

impl Section {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Section::Dataset => "dataset",
            Section::View => "view",
            Section::Replica => "replica",
        }
    }
}

/// `view "file.drepl"`.
#[derive(Debug)]
pub(crate) struct Include {
    pub(crate) section: Section,
    pub(crate) path: Name,
}

#[derive(Debug)]
pub(crate) struct Dataset {
    pub(crate) keyword: Span,
    pub(crate) members: Vec<Member>,
}

#[derive(Debug)]
pub(crate) enum Member {
    Const { name: Name, value: Expr },
    Type { name: Name, kind: TypeExpr },
    Var { names: Vec<Name>, kind: TypeExpr },
}

#[derive(Debug)]
pub(crate) enum TypeExpr {
    Named(Name),
    Struct { fields: Vec<Fields>, span: Span },
    Array { lengths: Vec<Expr>, element: Box<TypeExpr>, span: Span },
}

impl TypeExpr {
    pub(crate) fn span(&self) -> Span {
        match self {
            TypeExpr::Named(name) => name.span,
            TypeExpr::Struct { span, .. } | TypeExpr::Array { span, .. } => *span,
        }
    }
}

/// `a, b float32`.
#[derive(Debug)]
pub(crate) struct Fields {
    pub(crate) names: Vec<Name>,
    pub(crate) kind: TypeExpr,
}

#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum ExprKind {
    Number(i128),
    Name(String),
    Negative(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    ShiftLeft,
    ShiftRight,
}

#[derive(Debug)]
pub(crate) struct View {
    pub(crate) name: Name,
    /// From its keyword to its closing brace.
    pub(crate) whole: Span,
    pub(crate) flags: Vec<At<ViewFlag>>,
    pub(crate) members: Vec<ViewMember>,
}

#[derive(Debug)]
pub(crate) enum ViewFlag {
    ReadOnly,
    Order(Order),
    ByteOrder(ByteOrder),
    Packed,
    Header(Expr),
    Records(Marker),
}

#[derive(Debug)]
pub(crate) enum ViewMember {
    Type(ViewType),
    Var(ViewVar),
    Record { keyword: Span, marker: Option<Marker>, vars: Vec<ViewVar> },
}

/// `type PointB { b } Point`.
#[derive(Debug)]
pub(crate) struct ViewType {
    pub(crate) name: Name,
    pub(crate) shape: Shape,
    pub(crate) base: Path,
}

/// `var d [i] { b } = data[i*3] at 16`.
#[derive(Debug)]
pub(crate) struct ViewVar {
    pub(crate) name: Name,
    pub(crate) shape: Option<Shape>,
    pub(crate) source: Path,
    pub(crate) placing: Vec<At<PlacingWord>>,
}

#[derive(Debug)]
pub(crate) enum PlacingWord {
    At(Expr),
    Align(Expr),
    Pad(Expr),
}

/// What the view makes of what it takes.
#[derive(Debug)]
pub(crate) enum Shape {
    Named(Name),
    Fields { fields: Vec<ShapeFields>, span: Span },
    Array { indexes: Indexes, element: Option<Box<Shape>> },
    Record { keyword: Span, marker: Option<Marker>, inner: Option<Box<Shape>> },
}

/// `b, a`, `position {…}` or `position [i] = position[i*2]` between the braces of a substruct.
#[derive(Debug)]
pub(crate) struct ShapeFields {
    pub(crate) names: Vec<Name>,
    pub(crate) shape: Option<Shape>,
    /// What is behind `=`, where there is one name.
    pub(crate) source: Option<Path>,
}

/// `[i, j*2]`; where nothing stands, all is meant.
#[derive(Debug)]
pub(crate) struct Indexes {
    pub(crate) list: Vec<Option<Expr>>,
    pub(crate) span: Span,
}

impl Indexes {
    /// `[]` and `[,]`: no index stands there.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.iter().all(Option::is_none)
    }
}

/// `data[i*3].position`.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) root: Name,
    pub(crate) steps: Vec<Step>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Step {
    Index(Indexes),
    Member(Name),
}

#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) name: Name,
    /// From its keyword to its closing brace.
    pub(crate) whole: Span,
    pub(crate) flags: Vec<At<ReplicaFlag>>,
    pub(crate) views: Vec<ReplicaView>,
}

#[derive(Debug)]
pub(crate) enum ReplicaFlag {
    Complete,
    Update(Update),
    Near(Expr),
    Storage(Storage),
}

#[derive(Debug)]
pub(crate) struct ReplicaView {
    pub(crate) name: Name,
    pub(crate) options: Vec<At<StorageOption>>,
}

#[derive(Debug)]
pub(crate) enum StorageOption {
    Group(String),
    Split,
    Chunk(Vec<Expr>),
    Deflate(Expr),
}
