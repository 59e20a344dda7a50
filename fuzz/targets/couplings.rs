//! Configurations of coupling, in DTF's grammar and in TOML: no text panics, and whatever is refused is explained.
#![no_main]

use coupling::Configuration;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for file in ["dtf.ini", "couple.toml", "sluice.toml"] {
        match Configuration::parse(text, file) {
            Ok(configuration) => {
                for rule in &configuration.rules {
                    // Each party is a component, and a pattern matches what it says.
                    assert!(
                        rule.parties
                            .names()
                            .all(|one| configuration.components.iter().any(|known| known == one))
                    );
                    assert!(rule.name.matches(&rule.name.as_str().replace('%', "x")));
                }
            }
            Err(errors) => {
                assert!(!errors.list.is_empty());
                let lines = text.lines().count() + 1;
                assert!(errors.list.iter().all(|one| (1..=lines).contains(&one.line)), "{errors}");
            }
        }
    }
});
