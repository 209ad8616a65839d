//! Target `model`: the text of a system description. It must yield either a system, whose printed form reads back, or
//! problems located in the text.

use isolane_model::System;

/// Runs the target on a file of any bytes.
pub fn model(bytes: &[u8]) {
    match System::from_bytes(bytes, "input.toml", isolane::DATAPATHS) {
        Ok(system) => {
            let printed = system.to_toml();
            let again = System::from_toml(&printed, "printed.toml", isolane::DATAPATHS);
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
