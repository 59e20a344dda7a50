//! Definitions of layouts: no text panics, what is understood is printed and formatted without losing anything.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Files are parted by zero bytes; the first one may include the others by their numbers.
    let mut loader = drepl::MemoryLoader::default();
    for (number, bytes) in data.split(|&byte| byte == 0).enumerate() {
        loader.files.insert(number.to_string(), bytes.to_vec());
    }
    match drepl::compile("0", &mut loader) {
        Ok(compiled) => {
            let printed = drepl::print(&compiled.definition);
            let again = drepl::compile("x", &mut drepl::MemoryLoader::new("x", &printed));
            let again = again.unwrap_or_else(|wrong| panic!("{wrong}\n{printed}"));
            assert!(again.definition == compiled.definition, "{printed}");
        }
        Err(wrong) => {
            assert!(wrong.has_errors());
            assert!(!wrong.render(false).is_empty() && !wrong.to_string().is_empty());
        }
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(formatted) = drepl::format(text) {
        assert!(drepl::format(&formatted).as_deref() == Ok(&*formatted), "{formatted}");
        let meaning = |text: &str| {
            let compiled = drepl::compile("x", &mut drepl::MemoryLoader::new("x", text));
            compiled.map(|compiled| compiled.definition).ok()
        };
        assert!(meaning(text) == meaning(&formatted), "{formatted}");
    }
});
