//! Keeps messages of panics off standard error, if the panics become errors.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The message of the last panic in [`quietly`]. `None` outside of it.
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Calls a function that catches panics of a library and returns them as errors. Their messages are not printed. The
/// message of a panic that the function does not catch is printed, and the panic goes on.
pub fn quietly<T>(read: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            MESSAGE.with_borrow_mut(|message| match message {
                Some(message) => *message = panic.to_string(),
                None => print(panic),
            });
        }));
    });
    // `read` may be inside of another call.
    let outer = MESSAGE.replace(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(read));
    let message = MESSAGE.replace(outer);
    result.unwrap_or_else(|panic| {
        // An inner call has printed the message, if it is empty.
        if let Some(message) = message.filter(|message| !message.is_empty()) {
            eprintln!("{message}");
        }
        resume_unwind(panic)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_caught_panic_ends_here() {
        let caught = || catch_unwind(|| panic!("inside")).is_err();
        assert!(quietly(caught));
        let after_an_inner_call = || {
            assert!(quietly(caught));
            MESSAGE.with_borrow(Option::is_some)
        };
        assert!(quietly(after_an_inner_call), "the outer call goes on");
        let escapes = || quietly(|| -> () { panic!("outside") });
        let panic = catch_unwind(escapes).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"outside"));
        assert!(MESSAGE.with_borrow(Option::is_none));
    }
}
