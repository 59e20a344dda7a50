//! Changes of a definition's text: sections that are added, views and replicas that are removed.
//!
//! The text is formatted afterwards; comments stay, also those of what is removed.

use std::ops::Range;
use std::path::Path;

use drepl::source::Span;

use crate::definition;
use crate::error::{Error, Result};

/// What is to become of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Sections of the language are added behind the others: `view NAME { … }`, `replica NAME { … }`.
    Add(String),
    /// The view of this name is removed.
    RemoveView(String),
    /// The replica of this name is removed.
    RemoveReplica(String),
}

/// The text of the definition at `path` after a change.
pub(crate) fn edited(path: &Path, text: &str, edit: &Edit) -> Result<String> {
    let text = match edit {
        Edit::Add(sections) => format!("{}\n\n{}\n", text.trim_end(), sections.trim()),
        Edit::RemoveView(_) | Edit::RemoveReplica(_) => {
            let range = range_of(path, text, edit)?;
            format!("{}{}", &text[..range.start], &text[range.end..])
        }
    };
    let name = path.to_string_lossy();
    drepl::format(&text)
        .map_err(|wrong| Error::Definition { text: wrong.named(&name).render(false) })
}

/// Where what is to be removed stands, with the `;` and the rest of the line if that is empty.
fn range_of(path: &Path, text: &str, edit: &Edit) -> Result<Range<usize>> {
    let compiled = definition::compiled(path, text.to_owned())?;
    let (definition, map) = (&compiled.definition, &compiled.map);
    let whole: Span = match edit {
        Edit::RemoveView(name) => {
            let views = &definition.views;
            let Some(number) = views.iter().position(|view| view.name == *name) else {
                let has: Vec<&str> = views.iter().map(|view| view.name.as_str()).collect();
                return Err(Error::NoSuchView { name: name.clone(), has: has.join(", ") });
            };
            let holders = definition.replicas.iter();
            let mut holders =
                holders.filter(|replica| replica.views.iter().any(|stored| stored.view == number));
            if let Some(holder) = holders.next() {
                let why = format!(
                    "replica `{}` stores view `{name}`; remove the replica first",
                    holder.name
                );
                return Err(Error::Change { path: path.to_path_buf(), why });
            }
            map.views[number].whole
        }
        Edit::RemoveReplica(name) => {
            let replicas = &definition.replicas;
            let Some(number) = replicas.iter().position(|replica| replica.name == *name) else {
                let has: Vec<&str> = replicas.iter().map(|one| one.name.as_str()).collect();
                return Err(Error::NoSuchReplica { name: name.clone(), has: has.join(", ") });
            };
            map.replicas[number].whole
        }
        Edit::Add(_) => return Ok(text.len()..text.len()),
    };
    if whole.source != 0 {
        let place = map.sources.position(whole).map(|place| place.name.to_owned());
        let why = format!(
            "it stands in {}, which is included; remove it there, and serve the dataset anew",
            place.as_deref().unwrap_or("another file")
        );
        return Err(Error::Change { path: path.to_path_buf(), why });
    }
    let (mut start, mut end) = (whole.start as usize, whole.end as usize);
    let blanks = |text: &str| text.len() - text.trim_start_matches([' ', '\t', '\r']).len();
    let behind = end + blanks(&text[end..]);
    if text[behind..].starts_with(';') {
        end = behind + 1;
    }
    // A line on which nothing else stands goes with it.
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let behind = end + blanks(&text[end..]);
    if text[line_start..start].trim().is_empty() && text[behind..].starts_with('\n') {
        (start, end) = (line_start, behind + 1);
    }
    Ok(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
// Points.
dataset {
    var x [3]int32 // coordinates
}

// All of them.
view all { var x = x }; view back {
    var x[i] = x[2 - i]
} // from the end
replica one { view all }
";

    fn edit(edit: &Edit) -> Result<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.drepl");
        std::fs::write(&path, TEXT).unwrap();
        edited(&path, TEXT, edit)
    }

    #[test]
    fn what_is_removed_is_gone_and_comments_stay() {
        let text = edit(&Edit::RemoveView("back".into())).unwrap();
        assert_eq!(
            text,
            "\
// Points.
dataset {
    var x [3]int32 // coordinates
}

// All of them.
view all { var x = x } // from the end
replica one { view all }
"
        );
        let error = edit(&Edit::RemoveView("all".into())).unwrap_err();
        assert!(error.to_string().contains("`one`"), "{error}");
        let error = edit(&Edit::RemoveReplica("two".into())).unwrap_err();
        assert!(
            error.to_string().contains("`two`") && error.to_string().contains("one"),
            "{error}"
        );
    }

    #[test]
    fn what_is_added_comes_last_and_is_formatted() {
        let text = edit(&Edit::Add("view   one { var x = x }".into())).unwrap();
        assert!(text.ends_with("replica one { view all }\n\nview one { var x = x }\n"), "{text}");
        assert!(edit(&Edit::Add("view {".into())).is_err());
    }
}
