//! Profiles of `~/.aws`: keys that are written down, and the region. What has to be asked for (single sign-on, roles, processes)
//! is for the tools that export it to the environment, such as `aws configure export-credentials`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};

use crate::error::OpenError;

/// Fills in from the profile what the environment leaves open.
pub(super) fn apply(mut builder: AmazonS3Builder) -> Result<AmazonS3Builder, OpenError> {
    let name = std::env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_owned());
    let file = |variable, default: &str| {
        std::env::var_os(variable)
            .map(PathBuf::from)
            .or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(default)))
    };
    let mut found = HashMap::new();
    for (variable, default, section) in [
        ("AWS_CONFIG_FILE", ".aws/config", format!("profile {name}")),
        ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", name.clone()),
    ] {
        let Some(path) = file(variable, default) else { continue };
        match std::fs::read_to_string(&path) {
            Ok(text) => found.extend(section_of(&text, &[&section, &name])),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(OpenError::Profile { path, source }),
        }
    }
    let is_open = |builder: &AmazonS3Builder, key| builder.get_config_value(&key).is_none();
    // Never half of one pair of keys with half of another.
    let keys = [
        ("aws_access_key_id", Key::AccessKeyId),
        ("aws_secret_access_key", Key::SecretAccessKey),
        ("aws_session_token", Key::Token),
    ];
    if is_open(&builder, Key::AccessKeyId) && is_open(&builder, Key::SecretAccessKey) {
        for (name, key) in keys {
            if let Some(value) = found.get(name) {
                builder = builder.with_config(key, value);
            }
        }
    }
    for (name, key) in [("region", Key::Region), ("endpoint_url", Key::Endpoint)] {
        let also = std::env::var("AWS_DEFAULT_REGION").is_ok() && name == "region";
        if let Some(value) = found.get(name)
            && is_open(&builder, key)
            && !also
        {
            builder = builder.with_config(key, value);
        }
    }
    Ok(builder)
}

/// The keys of a section, by any of its names.
fn section_of(text: &str, names: &[&str]) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut is_ours = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_ours = names.contains(&section.trim());
        } else if let Some((key, value)) = line.split_once('=')
            && is_ours
        {
            found.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::section_of;

    #[test]
    fn a_section_is_found_and_others_are_left_out() {
        let text = "[default]\nregion = a\n# x = y\n[profile lab]\nregion=b\nAWS_Access_Key_Id = k=1\n[x]\nregion=c\n";
        let lab = section_of(text, &["profile lab", "lab"]);
        assert_eq!(lab["region"], "b");
        assert_eq!(lab["aws_access_key_id"], "k=1");
        assert_eq!(lab.len(), 2);
        assert_eq!(section_of(text, &["profile default", "default"])["region"], "a");
        assert!(section_of(text, &["none"]).is_empty());
    }
}
