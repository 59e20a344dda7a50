//! What streams into and out of commands, and who provides them.

/// What is said of the data of an input or output beside the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// What kind of data it is, ended by NULs: `text`, `data`, or a word of the program's own.
    pub format: [u8; 16],
    /// How many bytes it is in all, as far as is known.
    pub total: i64,
    /// How `total` is meant: `x` exactly, `l` at least, `m` at most, `n` not known.
    pub given: u8,
}

impl Default for Shape {
    fn default() -> Self {
        Self { format: [0; 16], total: 0, given: b'n' }
    }
}

/// Where the input of a command comes from, piece by piece.
pub trait Source {
    /// What is said of it.
    fn shape(&self) -> Shape {
        Shape::default()
    }

    /// Puts the next piece in the place of what is in `piece`; false: there was none, the input has ended.
    ///
    /// # Errors
    /// In words, when there should have been one.
    fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, String>;

    /// Whether the end is known without asking for the next piece.
    fn has_ended(&self) -> bool {
        false
    }
}

/// No input.
pub struct Nothing;

impl Source for Nothing {
    fn next(&mut self, _piece: &mut Vec<u8>) -> Result<bool, String> {
        Ok(false)
    }

    fn has_ended(&self) -> bool {
        true
    }
}

/// A piece of output.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Output {
    /// What is said of the whole.
    pub shape: Shape,
    /// This piece.
    pub data: Vec<u8>,
    /// There is more.
    pub more: bool,
}

/// What a command gives at once.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Given {
    /// Whether it was done.
    pub success: bool,
    /// What it says.
    pub text: Vec<u8>,
    /// The first piece of its output.
    pub output: Output,
}

impl Given {
    /// A command that was not done, and why.
    pub fn failed(text: impl Into<Vec<u8>>) -> Self {
        Self { success: false, text: text.into(), output: Output::default() }
    }
}

/// What answers commands of its own.
pub trait Provider: Send + Sync {
    /// Begins to use the dataset at `path`, which has no slash at its ends and may be empty.
    ///
    /// # Errors
    /// In words, if there is none.
    fn open(&self, path: &[u8]) -> Result<Box<dyn Served>, String>;

    /// Goes on with a dataset by what [`Served::suspend`] has told of it.
    ///
    /// # Errors
    /// In words, if that is not possible.
    fn resume(&self, state: &[u8]) -> Result<Box<dyn Served>, String> {
        let _ = state;
        Err("this provider keeps no states".to_owned())
    }
}

/// A dataset that somebody uses. What is dropped has been closed.
pub trait Served: Send {
    /// Carries out a command. `has_input` and `wants_output` tell whether the user gave such at all.
    fn run(
        &mut self,
        line: &[u8],
        input: &mut dyn Source,
        has_input: bool,
        wants_output: bool,
    ) -> Given;

    /// The next piece of output, after one that said that there is more.
    ///
    /// # Errors
    /// In words; then there is no more.
    fn next(&mut self, input: &mut dyn Source) -> Result<Output, String> {
        let _ = input;
        Ok(Output::default())
    }

    /// The command is over: its output was taken, or nobody wants it.
    fn end(&mut self) {}

    /// Everything that is to be known to go on later, if the dataset is to be closed meanwhile; `None`: it stays.
    fn suspend(&mut self) -> Option<Vec<u8>> {
        None
    }
}
