//! The text of a system description: it becomes a system, which reads back as it is printed, or
//! problems, which lie in the text.

use isolane_model::System;

/// A file, of whatever bytes.
pub fn model(bytes: &[u8]) {
    match System::from_bytes(bytes, "input.toml") {
        Ok(system) => {
            let printed = system.to_toml();
            let again = System::from_toml(&printed, "printed.toml");
            let again = again.expect("what is printed reads back");
            assert_eq!(again.to_toml(), printed);
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason");
            let text = String::from_utf8_lossy(bytes);
            for problem in problems {
                if let Some(span) = problem.span() {
                    assert!(
                        text.get(span.clone()).is_some(),
                        "{span:?} is not in the text"
                    );
                }
                assert!(!format!("{problem:#}").is_empty());
            }
        }
    }
}
