//! How the file of a dataset's view lies in memory.

use drepl::{LoadError, Loaded, Loader};
use pyo3::prelude::*;

use crate::error::Error;

/// A definition as a store gives it: with all that it includes.
struct Text<'a>(&'a str);

impl Loader for Text<'_> {
    fn load(&mut self, path: &str, from: Option<&str>) -> Result<Loaded, LoadError> {
        match from {
            None => Ok(Loaded { name: path.to_owned(), bytes: self.0.as_bytes().to_vec() }),
            Some(_) => Err(LoadError::NotFound),
        }
    }
}

/// Name, dtype as a literal, offset in the file, shape, and whether the first index varies fastest.
type Array = (String, String, u64, Vec<u64>, bool);

/// The arrays in the file of a view, by the text of the dataset's definition; and whether it is read-only.
#[pyfunction]
fn arrays_of_view(name: &str, definition: &str, view: &str) -> PyResult<(Vec<Array>, bool)> {
    let wrong = |reason: String| Error::Layout { name: name.to_owned(), reason };
    let compiled = drepl::compile(name, &mut Text(definition)).map_err(|e| wrong(e.to_string()))?;
    let definition = compiled.definition;
    let Some(index) = definition.views.iter().position(|known| known.name == view) else {
        let known: Vec<&str> = definition.views.iter().map(|view| &*view.name).collect();
        return Err(
            wrong(format!("there is no view {view:?}; there are: {}", known.join(", "))).into()
        );
    };
    let arrays = interchange::numpy_arrays(&definition, index).map_err(|e| wrong(e.to_string()))?;
    let arrays = arrays
        .into_iter()
        .map(|array| (array.name, array.dtype, array.offset, array.shape, array.is_fortran))
        .collect();
    Ok((arrays, definition.views[index].read_only))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(arrays_of_view, module)?)
}
