//! The locale of the process: it decides what `.` and letters are in regular expressions (reference
//! 03 §4.5).

/// Takes the locale from the environment. To be called once, before there is a second thread.
pub fn set_from_environment() {
    // SAFETY: the string is an empty C string that lives for ever. No other thread runs yet that
    // could ask for the locale, by the promise of the only caller.
    unsafe { libc::setlocale(libc::LC_ALL, c"".as_ptr()) };
}
